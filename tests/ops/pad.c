/* Tensors made larger, turned, moved and repeated; triangles; running sums. */
#include "ops/golden.h"
#include "tensor/tensor.h"

#include <paracord/autograd.h>
#include <paracord/random.h>

static pc_shape list_of(const double *numbers, int n)
{
    pc_shape list = {.ndim = n};
    for (int i = 0; i < n; i++)
        list.dim[i] = (int64_t)numbers[i];
    return list;
}

static void run_pad(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const int n = (int)g->args[2];
    out[0] = pc_pad(in[0], list_of(g->args + 3, n), list_of(g->args + 3 + n, n), (pc_pad_mode)g->args[0], g->args[1]);
}

static void run_flip(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_flip(in[0], list_of(g->args, g->n_args));
}

static void run_roll(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const int n = (int)g->args[0];
    out[0] = pc_roll(in[0], list_of(g->args + 1, n ? n : 1), list_of(g->args + 1 + n, n));
}

static void run_repeat(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_repeat(in[0], list_of(g->args, g->n_args));
}

static void run_tile(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_tile(in[0], list_of(g->args, g->n_args));
}

static void run_tril(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_tril(in[0], (int64_t)g->args[0]);
}

static void run_triu(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_triu(in[0], (int64_t)g->args[0]);
}

static void run_cumsum(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_cumsum(in[0], (int)g->args[0]);
}

static const golden_op ops[] = {{"pad", run_pad},   {"flip", run_flip}, {"roll", run_roll}, {"repeat", run_repeat},
                                {"tile", run_tile}, {"tril", run_tril}, {"triu", run_triu}, {"cumsum", run_cumsum}};

static void refuses(void **state)
{
    (void)state;
    const pc_shape none = {0};
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device()), *whole = pc_cast(a, PC_I32);
        pc_tensor *nothing = pc_zeros(PC_SHAPE(0, 3), PC_F32, test_device());
        assert_fails(pc_pad(NULL, none, none, PC_PAD_CONSTANT, 0), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_pad(a, PC_SHAPE(1), none, PC_PAD_CONSTANT, 0), PC_ERR_SHAPE, "1 numbers in front and 0 behind");
        assert_fails(pc_pad(a, PC_SHAPE(1, 1, 1), PC_SHAPE(1, 1, 1), PC_PAD_CONSTANT, 0), PC_ERR_SHAPE, "[2, 3]");
        assert_fails(pc_pad(a, PC_SHAPE(-2), PC_SHAPE(-2), PC_PAD_CONSTANT, 0), PC_ERR_SHAPE, "leave nothing");
        assert_fails(pc_pad(a, PC_SHAPE(-4), PC_SHAPE(4), PC_PAD_CONSTANT, 0), PC_ERR_SHAPE, "leave nothing");
        assert_fails(pc_pad(a, PC_SHAPE(INT64_MAX), PC_SHAPE(1), PC_PAD_CONSTANT, 0), PC_ERR_SHAPE, "pad");
        assert_fails(pc_pad(a, PC_SHAPE(1ll << 61), PC_SHAPE(1), PC_PAD_CONSTANT, 0), PC_ERR_MEMORY, "");
        assert_fails(pc_pad(whole, PC_SHAPE(1), PC_SHAPE(1), PC_PAD_CONSTANT, 1e20), PC_ERR_ARGUMENT, "1e+20");
        assert_fails(pc_pad(a, PC_SHAPE(1), PC_SHAPE(1), (pc_pad_mode)7, 0), PC_ERR_ARGUMENT, "mode 7");
        assert_fails(pc_pad(a, PC_SHAPE(3), PC_SHAPE(0), PC_PAD_REFLECT, 0), PC_ERR_SHAPE, "no 4 elements to reflect");
        assert_fails(pc_pad(nothing, PC_SHAPE(1, 0), PC_SHAPE(0, 0), PC_PAD_REPLICATE, 0), PC_ERR_SHAPE, "to repeat");
        assert_fails(pc_flip(a, PC_SHAPE(0, -2)), PC_ERR_ARGUMENT, "dimension 0 is named twice");
        assert_fails(pc_flip(a, PC_SHAPE(2)), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_flip(NULL, none), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_roll(a, none, none), PC_ERR_ARGUMENT, "0 shifts");
        assert_fails(pc_roll(a, PC_SHAPE(1, 2), none), PC_ERR_ARGUMENT, "2 shifts for 0 dimensions");
        assert_fails(pc_roll(a, PC_SHAPE(1), PC_SHAPE(0, 1)), PC_ERR_ARGUMENT, "1 shifts for 2 dimensions");
        assert_fails(pc_roll(a, PC_SHAPE(1), PC_SHAPE(2)), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_repeat(a, PC_SHAPE(2)), PC_ERR_SHAPE, "pc_tile");
        assert_fails(pc_repeat(a, PC_SHAPE(2, -1)), PC_ERR_ARGUMENT, "-1 times");
        assert_fails(pc_repeat(a, PC_SHAPE(INT64_MAX, 1)), PC_ERR_ARGUMENT, "dimension 0");
        assert_fails(pc_repeat(a, PC_SHAPE(1ll << 61, 1)), PC_ERR_MEMORY, "");
        assert_fails(pc_tile(NULL, none), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_tril(pc_zeros(PC_SHAPE(3), PC_F32, test_device()), 0), PC_ERR_SHAPE, "rows and columns");
        assert_fails(pc_triu(NULL, 0), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_cumsum(a, 2), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_cumsum(NULL, 0), PC_ERR_ARGUMENT, "a is NULL");
    }
    assert_no_leak();
}

/* Running sums of whole numbers, which any order gives, of lists that are cut and of such that are not. */
static void long_sums(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 5000, 1}, {2, 1500, 3},  {3, 33, 70},   {40, 31, 1},    {1, 1025, 1},
                                        {1, 129, 2},  {1500, 20, 1}, {1100, 77, 1}, {4100, 257, 1}, {1030, 1100, 1}};
    pc_seed(3);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        PC_SCOPE {
            const int64_t outer = shapes[s][0], n = shapes[s][1], inner = shapes[s][2];
            float *x = malloc((size_t)(outer * n * inner) * sizeof *x),
                  *y = malloc((size_t)(outer * n * inner) * sizeof *y);
            const size_t bytes = (size_t)(outer * n * inner) * sizeof *x;
            assert_true(x && y);
            pc_tensor *t = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(outer, n, inner), PC_F32, test_device()), 5));
            assert_ok(pc_require_grad(t, true));
            pc_tensor *sums = pc_cumsum(t, 1);
            assert_ok(pc_read(t, x, bytes));
            assert_ok(pc_read(sums, y, bytes));
            for (int64_t o = 0; o < outer; o++)
                for (int64_t c = 0; c < inner; c++) {
                    float sum = 0;
                    for (int64_t i = 0; i < n; i++) {
                        const int64_t at = (o * n + i) * inner + c;
                        sum += x[at];
                        assert_true(y[at] == sum);
                    }
                }
            assert_ok(pc_backward_with(sums, pc_ones(PC_SHAPE(outer, n, inner), PC_F32, test_device())));
            assert_ok(pc_read(pc_grad(t), y, bytes));
            for (int64_t at = 0; at < outer * n * inner; at++)
                assert_true(y[at] == (float)(n - at / inner % n));
            free(x);
            free(y);
        }
    assert_no_leak();
}

/* Every set of dimensions, in any memory order, with gaps, and with dimensions of one element between them. */
static void any_order(void **state)
{
    (void)state;
    enum { SIDE = 3, COUNT = SIDE * 1 * 5 * 4 };
    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(0, COUNT, 1, PC_I32, test_device()), PC_SHAPE(SIDE, 1, 5, 4));
        pc_tensor *gaps = pc_slice(pc_cat((pc_tensor *[]){x, x}, 2, 2), 2, 0, 10, 2);
        pc_tensor *const views[] = {x, pc_permute(x, PC_SHAPE(2, 0, 3, 1)), pc_permute(x, PC_SHAPE(3, 2, 1, 0)), gaps,
                                    pc_permute(gaps, PC_SHAPE(1, 3, 0, 2))};
        for (int v = 0; v < 5; v++)
            for (unsigned mask = 0; mask < 16; mask++) {
                pc_shape dims = {.ndim = 0};
                const pc_shape shape = pc_tensor_shape(views[v]);
                int32_t from[COUNT], to[COUNT];
                for (int d = 0; d < 4; d++)
                    if (mask >> d & 1)
                        dims.dim[dims.ndim++] = d;
                assert_ok(pc_read(views[v], from, sizeof from));
                assert_ok(pc_read(pc_flip(views[v], dims), to, sizeof to));
                for (int i = 0; i < COUNT; i++) {
                    int64_t place = 0, stride = 1, rest = i;
                    for (int d = 3; d >= 0; d--) {
                        const int64_t at = rest % shape.dim[d];
                        place += (mask >> d & 1 ? shape.dim[d] - 1 - at : at) * stride;
                        stride *= shape.dim[d];
                        rest /= shape.dim[d];
                    }
                    assert_int_equal(to[i], from[place]);
                }
            }
    }
    assert_no_leak();
}

/* A mask that lies as its matrix does; rows that are expanded lie in no other order. */
static void triangles_of_views(void **state)
{
    (void)state;
    enum { N = 5, M = 7 };
    PC_SCOPE {
        pc_tensor *x = pc_add_scalar(pc_reshape(pc_arange(0, N * M, 1, PC_F32, test_device()), PC_SHAPE(N, M)), 1);
        pc_tensor *turned = pc_transpose(pc_contiguous(pc_transpose(x, 0, 1)), 0, 1);
        pc_tensor *row = pc_slice(x, 0, 0, 1, 1), *const views[] = {x, turned, pc_expand(row, PC_SHAPE(N, M))};
        for (int v = 0; v < 3; v++)
            for (int upper = 0; upper < 2; upper++)
                for (int k = -6; k <= 8; k++) {
                    pc_tensor *y = upper ? pc_triu(views[v], k) : pc_tril(views[v], k);
                    float from[N * M], to[N * M];
                    assert_ok(pc_read(views[v], from, sizeof from));
                    assert_ok(pc_read(y, to, sizeof to));
                    assert_true(pc__is_contiguous(y) == (v != 1));
                    for (int i = 0; i < N * M; i++) {
                        const int off = i % M - i / M;
                        assert_true(to[i] == ((upper ? off >= k : off <= k) ? from[i] : 0));
                    }
                }
    }
    assert_no_leak();
}

/* More repeated dimensions than one copy takes, with single ones between them. */
static void many_repeated(void **state)
{
    (void)state;
    static const int64_t times[][6] = {
        {2, 2, 3, 2, 2, 2}, {1, 2, 1, 3, 1, 2}, {3, 1, 1, 1, 2, 1}, {2, 1, 0, 2, 2, 2}, {1, 1, 1, 1, 1, 1}};
    const pc_shape shape = PC_SHAPE(2, 3, 1, 2, 1, 2);
    for (int k = 0; k < 5; k++)
        PC_SCOPE {
            pc_shape by = {.ndim = 6}, whole = {.ndim = 6};
            int64_t count = 1;
            for (int d = 0; d < 6; d++) {
                by.dim[d] = times[k][d];
                whole.dim[d] = shape.dim[d] * by.dim[d];
                count *= whole.dim[d];
            }
            pc_tensor *x = pc_reshape(pc_arange(0, 24, 1, PC_I32, test_device()), shape), *y = pc_repeat(x, by);
            int32_t to[24 * 96];
            assert_int_equal(pc_tensor_count(y), count);
            assert_ok(pc_read(y, to, (size_t)count * sizeof *to));
            for (int64_t i = 0; i < count; i++) {
                int64_t place = 0, stride = 1, rest = i;
                for (int d = 5; d >= 0; d--) {
                    place += rest % whole.dim[d] % shape.dim[d] * stride;
                    stride *= shape.dim[d];
                    rest /= whole.dim[d];
                }
                assert_int_equal(to[i], place);
            }
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(long_sums),
                                          cmocka_unit_test(any_order), cmocka_unit_test(many_repeated),
                                          cmocka_unit_test(triangles_of_views)};

int main(void)
{
    return golden_main("ops.pad", ops, tests);
}
