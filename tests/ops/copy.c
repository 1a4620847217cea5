/* Copies and conversions. */
#include "ops/golden.h"

#include <paracord/random.h>

static void run_contiguous(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_contiguous(in[0]);
    assert_true(pc_tensor_is_contiguous(out[0]));
}

static void run_clone(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_clone(in[0]);
}

static void run_cast(const golden *g, pc_tensor **in, pc_tensor **out)
{
    static const pc_dtype numbers[] = {PC_BOOL, PC_U8, PC_I32, PC_I64, PC_F32, PC_F64}; /* the file's */
    out[0] = pc_cast(in[0], numbers[(int)g->args[0]]);
}

static const golden_op ops[] = {{"contiguous", run_contiguous}, {"clone", run_clone}, {"cast", run_cast}};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
        assert_fails(pc_cast(a, (pc_dtype)99), PC_ERR_DTYPE, "99");
        assert_fails(pc_to(a, (pc_device){-1, 0}, PC_F32, false), PC_ERR_DEVICE, "the devices are: cpu");
        assert_fails(pc_to(a, test_device(), (pc_dtype)-1, false), PC_ERR_DTYPE, "-1");
        assert_fails(pc_contiguous(NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_clone(NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_cast(NULL, PC_I32), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_to(NULL, test_device(), PC_I32, false), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_to(pc_cast(a, (pc_dtype)99), test_device(), PC_I32, false), PC_ERR_DTYPE, "99");
    }
    assert_no_leak();
}

/* With nothing to change, the tensor itself comes back with one more owner. */
static void nothing_to_change_is_the_tensor_itself(void **state)
{
    (void)state;
    pc_tensor *a = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
    pc_tensor *same[] = {pc_cast(a, PC_F32), pc_contiguous(a), pc_to(a, test_device(), PC_F32, true)};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(same[i], a);
        pc_tensor_free(same[i]);
    }
    float values[2] = {1, 1};
    assert_ok(pc_read(a, values, sizeof values));
    assert_true(values[0] == 0 && values[1] == 0);
    pc_tensor_free(a);
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(3), PC_F64, test_device()), *y = NULL;
        PC_SCOPE {
            y = pc_keep(pc_contiguous(pc_contiguous(t)));
        }
        assert_close(pc_item(pc_sum(y)), 3, 0);
    }
}

static void clone_keeps_the_memory_order(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(2, 4, 5, 3), PC_F32, test_device());
        pc_tensor *last = pc_permute(x, PC_SHAPE(0, 3, 1, 2));
        pc_tensor *copy = pc_clone(last);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pc_tensor_stride(copy, i), pc_tensor_stride(last, i));
        assert_close(pc_item(pc_sum(pc_cast(pc_ne(copy, last), PC_F32))), 0, 0);
    }
}

static void to_converts_on_the_way(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 6, 1, PC_I32, PC_DEVICE_CPU);
        pc_tensor *b = pc_to(pc_transpose(pc_reshape(a, PC_SHAPE(2, 3)), 0, 1), test_device(), PC_F64, false);
        double want[6] = {0, 3, 1, 4, 2, 5}, got[6];
        assert_int_equal(pc_tensor_dtype(b), PC_F64);
        assert_ok(pc_read(b, got, sizeof got));
        assert_memory_equal(got, want, sizeof got);
        pc_tensor *back = pc_to(b, PC_DEVICE_CPU, PC_F64, true);
        assert_ok(pc_read(back, got, sizeof got));
        assert_memory_equal(got, want, sizeof got);
    }
    assert_no_leak();
}

/* What is copied in pieces arrives whole, the last, smaller piece too; what overlaps as if it did not. */
static void large_ones_arrive_whole(void **state)
{
    (void)state;
    enum { N = (5 << 18) + 3, SHIFT = 100 };
    int32_t *got = malloc(N * sizeof *got);
    assert_non_null(got);
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, N, 1, PC_I32, test_device()), *b = pc_zeros(PC_SHAPE(N), PC_I32, test_device());
        assert_ok(pc_copy(b, a));
        assert_ok(pc_read(b, got, N * sizeof *got));
        for (int i = 0; i < N; i++)
            assert_int_equal(got[i], i);
        if (test_device().type == PC_CPU) {
            assert_ok(pc_copy(pc_slice(b, 0, SHIFT, PC_END_OF_DIM, 1), pc_slice(b, 0, 0, N - SHIFT, 1)));
            assert_ok(pc_read(b, got, N * sizeof *got));
            for (int i = 0; i < N; i++)
                assert_int_equal(got[i], i < SHIFT ? i : i - SHIFT);
        }
    }
    free(got);
    assert_no_leak();
}

/* The memory order turned round, with sides that are no multiples of a tile's. */
static void turned_ones_are_the_same(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_U8, PC_BF16, PC_F32, PC_I64}; /* 1, 2, 4, 8 bytes */
    static const int orders[][3] = {{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    enum { A = 35, B = 18, C = 50, N = A * B * C };
    static const int sides[] = {A, B, C}, steps[] = {B * C, C, 1};
    static int32_t numbers[N], got[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (int32_t)(pc_uniform(1, 2, (uint64_t)i) * 200);
    for (int i = 0; i < 16; i++)
        PC_SCOPE {
            const int *to = orders[i / 4];
            pc_tensor *x = pc_cast(pc_from_data(numbers, PC_SHAPE(A, B, C), PC_I32, test_device()), dtypes[i % 4]);
            pc_tensor *turned = pc_contiguous(pc_permute(x, PC_SHAPE(to[0], to[1], to[2])));
            assert_ok(pc_read(pc_cast(turned, PC_I32), got, sizeof got));
            const int32_t *at = got;
            for (int a = 0; a < sides[to[0]]; a++)
                for (int b = 0; b < sides[to[1]]; b++)
                    for (int c = 0; c < sides[to[2]]; c++)
                        assert_int_equal(*at++, numbers[a * steps[to[0]] + b * steps[to[1]] + c * steps[to[2]]]);
        }
    assert_no_leak();
}

/* A million elements, of which one side has few. */
static void narrow_ones_are_turned(void **state)
{
    (void)state;
    enum { MANY = 1 << 20, KINDS = 201 };
    static const pc_dtype dtypes[] = {PC_U8, PC_BF16, PC_F32, PC_F64};
    static const int sides[] = {16, 19, 33};
    int32_t *got = malloc((MANY + 64 * 33) * sizeof *got);
    assert_non_null(got);
    for (int i = 0; i < 3 * 2 * 4; i++)
        PC_SCOPE {
            const int narrow = sides[i % 3], wide = MANY / narrow + 37, n = narrow * wide;
            const int high = i / 3 % 2 ? narrow : wide, across = n / high;
            for (int k = 0; k < n; k++)
                got[k] = k % KINDS;
            pc_tensor *x = pc_from_data(got, PC_SHAPE(high, across), PC_I32, test_device());
            pc_tensor *turned = pc_contiguous(pc_permute(pc_cast(x, dtypes[i / 6]), PC_SHAPE(1, 0)));
            assert_ok(pc_read(pc_cast(turned, PC_I32), got, (size_t)n * sizeof *got));
            for (int k = 0; k < n; k++)
                if (got[k] != (k % high * across + k / high) % KINDS)
                    fail_msg("%d x %d of %s: element %d is %d", high, across, pc_dtype_name(dtypes[i / 6]), k, got[k]);
        }
    free(got);
    assert_no_leak();
}

/* Rows of odd widths with gaps between them, in one dimension or two, or repeated: a GPU writes what lies side by side together. */
static void rows_of_odd_widths_are_the_same(void **state)
{
    enum { A = 5, ROWS = 131, WIDE = 211, ODD = 107 };
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_U8, PC_I32, PC_F64};
    (void)state;
    for (int i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++)
        PC_SCOPE {
            pc_tensor *x = pc_mul_scalar(pc_rand(PC_SHAPE(A, ROWS, WIDE), PC_F32, test_device()), 251);
            x = pc_cast(x, dtypes[i]);
            pc_tensor *narrow = pc_slice(x, 2, 3, 3 + ODD, 1), *few = pc_slice(narrow, 1, 1, ROWS, 2);
            pc_tensor *one = pc_slice(x, 0, 1, 2, 1), *row = pc_slice(narrow, 1, 7, 8, 1);
            pc_tensor *views[] = {narrow,
                                  few,
                                  pc_slice(narrow, 0, 1, 5, 2),
                                  pc_expand(one, PC_SHAPE(A, ROWS, WIDE)),
                                  pc_expand(row, PC_SHAPE(A, ROWS, ODD)),
                                  pc_expand(pc_slice(row, 0, 2, 3, 1), PC_SHAPE(8 * A, ROWS, ODD))};
            for (int v = 0; v < (int)(sizeof views / sizeof *views); v++) {
                pc_tensor *same = pc_contiguous(views[v]);
                assert_not_null_ok(same);
                assert_close(pc_item(pc_sum(pc_ne(same, views[v]))), 0, 0);
            }
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_input),
    cmocka_unit_test(nothing_to_change_is_the_tensor_itself),
    cmocka_unit_test(clone_keeps_the_memory_order),
    cmocka_unit_test(to_converts_on_the_way),
    cmocka_unit_test(large_ones_arrive_whole),
    cmocka_unit_test(turned_ones_are_the_same),
    cmocka_unit_test(narrow_ones_are_turned),
    cmocka_unit_test(rows_of_odd_widths_are_the_same),
};

int main(void)
{
    return golden_main("ops.copy", ops, tests);
}
