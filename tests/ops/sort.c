/* Order: sort, argsort, topk, searchsorted; and places drawn by their weights. */
#include "ops/golden.h"

#include <paracord/random.h>

static void run_sort(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_sort(in[0], (int)g->args[0], g->args[1] != 0, &out[1]);
}

static void run_argsort(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_argsort(in[0], (int)g->args[0], g->args[1] != 0);
}

static void run_topk(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_topk(in[0], (int64_t)g->args[0], (int)g->args[1], g->args[2] != 0, &out[1]);
}

static void run_searchsorted(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_searchsorted(in[0], in[1], g->args[0] != 0);
}

static const golden_op ops[] = {
    {"sort", run_sort}, {"argsort", run_argsort}, {"topk", run_topk}, {"searchsorted", run_searchsorted}};

static void refuses(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device()), *places = a;
        assert_fails(pc_sort(NULL, 0, false, NULL), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_sort(a, 2, false, &places), PC_ERR_RANGE, "dimension 2");
        assert_null(places);
        assert_fails(pc_argsort(a, -3, false), PC_ERR_RANGE, "argsort");
        assert_fails(pc_topk(a, 4, 1, true, &places), PC_ERR_RANGE, "topk: 4 elements of the 3 along dimension 1");
        assert_fails(pc_topk(a, -1, 1, true, NULL), PC_ERR_RANGE, "topk: -1");
        assert_fails(pc_searchsorted(pc_isnan(a), pc_isnan(a), false), PC_ERR_DTYPE, "bools have no order");
        assert_fails(pc_searchsorted(a, pc_zeros(PC_SHAPE(3, 3), PC_F32, test_device()), false), PC_ERR_SHAPE,
                     "[3, 3]");
        assert_fails(pc_searchsorted(pc_sum(a), a, false), PC_ERR_SHAPE, "searchsorted");
        assert_fails(pc_multinomial(NULL, 1, true), PC_ERR_ARGUMENT, "weights is NULL");
        assert_fails(pc_multinomial(pc_cast(a, PC_I64), 1, true), PC_ERR_DTYPE, "int64");
        assert_fails(pc_multinomial(pc_sum(a), 1, true), PC_ERR_SHAPE, "[n] or [rows, n]");
        pc_tensor *many = pc_expand(pc_ones(PC_SHAPE(1), PC_F32, test_device()), PC_SHAPE((1 << 24) + 1));
        assert_fails(pc_multinomial(many, 2, true), PC_ERR_RANGE, "16777217 places");
        assert_fails(pc_multinomial(a, 4, false), PC_ERR_RANGE, "4 places of 3 without replacement");
        assert_fails(pc_multinomial(a, 0, true), PC_ERR_RANGE, "0 places of 3");
    }
    assert_no_leak();
}

/* Lists of many lengths, with many equals: each value is where its place says, in order, and equals by their places. */
static void long_lists(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 5000}, {4, 513},  {2, 4096}, {3, 2049},
                                        {40, 33},  {2, 2048}, {1, 7000}, {300, 2}};
    pc_seed(8);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = 0; kind < 4; kind++)
            PC_SCOPE {
                const int64_t rows = shapes[s][0], n = shapes[s][1], k = kind % 2 ? (n < 37 ? n : 37) : n;
                const bool down = kind / 2;
                pc_tensor *t = pc_floor(pc_mul_scalar(pc_randn(PC_SHAPE(rows, n), PC_F32, test_device()), 50)), *at,
                          *sorted;
                t = s % 2 ? pc_cast(t, PC_F64) : t;
                sorted = k < n ? pc_topk(t, k, 1, down, &at) : pc_sort(t, 1, down, &at);
                assert_not_null_ok(sorted);
                assert_true(pc_item(pc_max(pc_abs(pc_sub(sorted, pc_gather(t, 1, at))))) == 0);
                double *values = malloc((size_t)(rows * k) * sizeof *values);
                int64_t *places = malloc((size_t)(rows * k) * sizeof *places);
                assert_true(values && places);
                assert_ok(pc_read(pc_cast(sorted, PC_F64), values, (size_t)(rows * k) * sizeof *values));
                assert_ok(pc_read(at, places, (size_t)(rows * k) * sizeof *places));
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t i = 1; i < k; i++) {
                        const int64_t here = r * k + i;
                        const double step = down ? values[here - 1] - values[here] : values[here] - values[here - 1];
                        assert_true(step > 0 || (step == 0 && places[here] > places[here - 1]));
                    }
                /* what is left out is behind what is kept */
                pc_tensor *last = pc_slice(sorted, 1, k - 1, k, 1);
                pc_tensor *ahead = down ? pc_gt(t, last) : pc_lt(t, last);
                assert_true(pc_item(pc_max(pc_sum_dims(ahead, PC_SHAPE(1), false))) < (double)k);
                free(values);
                free(places);
            }
    assert_no_leak();
}

/* The same order and bits as on the CPU: tiles, many of them, lists that are no neighbours, equals, NaN, both zeros. */
static void as_on_cpu(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[3];
        int dim;
        int64_t kept;
    } cases[] = {
        {{1, 300000, 1}, 1, 300000}, {{2, 9000, 1}, 1, 9000},  {{2, 4100, 3}, 1, 3000},  {{5, 2100, 2}, 1, 2100},
        {{3000, 2, 1}, 1, 2},        {{900, 3, 7}, 1, 3},      {{30, 40, 11}, 0, 29},    {{700, 1, 3}, 1, 1},
        {{3, 1025, 5}, 1, 1000},     {{6000, 2, 2}, 0, 5000},  {{3, 600, 1}, 1, 27},     {{2, 4096, 1}, 1, 256},
        {{1500, 3, 4}, 0, 30},       {{4, 2049, 1}, 1, 1},     {{9, 800, 2}, 1, 200},    {{1, 300000, 1}, 1, 96},
        {{3, 9001, 1}, 1, 256},      {{1, 70000, 1}, 1, 1},    {{2, 4097, 1}, 1, 10},    {{1, 400000, 1}, 1, 3000},
        {{1, 900000, 1}, 1, 100000}, {{3, 200001, 1}, 1, 700}, {{1, 1600000, 1}, 1, 300}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64, PC_I32, PC_U8, PC_I64};
    const pc_device cpu = {PC_CPU, 0};
    pc_seed(9);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        PC_SCOPE {
            pc_tensor *drawn = pc_randn(PC_SHAPE(cases[c].shape[0], cases[c].shape[1], cases[c].shape[2]), PC_F32, cpu);
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                PC_SCOPE {
                    if (sampled() && cases[c].shape[cases[c].dim] > 50000 && (c + d) % 3) /* of each dtype some */
                        continue;
                    const bool down = (c + d) % 2, whole = cases[c].kept == cases[c].shape[cases[c].dim];
                    pc_tensor *x = pc_mul_scalar(drawn, d % 2 ? 1e4 : 20), *found[2][2];
                    if (dtypes[d] == PC_U8)
                        x = pc_abs(pc_clamp(x, -255, 255));
                    if (c % 3 && dtypes[d] >= PC_F16)
                        x = pc_mul(pc_round(x), pc_log(pc_add_scalar(x, 30)));
                    x = pc_cast(x, dtypes[d]);
                    for (int i = 0; i < 2; i++) {
                        pc_tensor *t = i ? pc_to(x, test_device(), dtypes[d], false) : x, *at;
                        pc_tensor *sorted = whole ? pc_sort(t, cases[c].dim, down, &at)
                                                  : pc_topk(t, cases[c].kept, cases[c].dim, down, &at);
                        assert_not_null_ok(sorted);
                        found[i][0] = pc_to(sorted, cpu, dtypes[d], false);
                        found[i][1] = pc_to(at, cpu, PC_I64, false);
                    }
                    for (int i = 0; i < 2; i++) {
                        const size_t bytes =
                            (size_t)pc_tensor_count(found[0][i]) * pc_dtype_size(i ? PC_I64 : dtypes[d]);
                        assert_memory_equal(pc_data(found[0][i]), pc_data(found[1][i]), bytes);
                    }
                }
        }
    assert_no_leak();
}

/* Each gradient is where its value came from, and zeros where none did. */
static void gradients(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 3000}, {500, 3}, {2, 70}};
    pc_seed(10);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int dim = 0; dim < 2; dim++)
            PC_SCOPE {
                pc_tensor *x = pc_randn(PC_SHAPE(sizes[s][0], sizes[s][1]), PC_F32, test_device()), *at;
                const int64_t k = s == 1 ? sizes[s][dim] : (sizes[s][dim] + 1) / 2;
                assert_ok(pc_require_grad(x, true));
                pc_tensor *sorted = pc_topk(x, k, dim, s % 2, &at);
                pc_tensor *change = pc_randn(pc_tensor_shape(sorted), PC_F32, test_device());
                assert_ok(pc_backward_with(sorted, change));
                assert_true(pc_item(pc_max(pc_abs(pc_sub(pc_gather(pc_grad(x), dim, at), change)))) == 0);
                assert_true(pc_item(pc_count_nonzero(pc_grad(x))) == (double)pc_tensor_count(sorted));
            }
    assert_no_leak();
}

/* Of lists whose elements lie side by side though their dimension is not the last one. */
static void few_of_turned_lists(void **state)
{
    (void)state;
    pc_seed(11);
    for (int wanted = 0; wanted < 2; wanted++)
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(5, 700, 3), PC_F32, test_device()), *at = NULL, *want_at, *grad[2];
            for (int i = 0; i < 2; i++) {
                pc_tensor *leaf = pc_detach(x), *turned;
                assert_ok(pc_require_grad(leaf, true));
                turned = pc_permute(leaf, PC_SHAPE(1, 0, 2));
                turned = i ? pc_contiguous(turned) : pc_transpose(pc_contiguous(pc_transpose(turned, 0, 2)), 0, 2);
                pc_tensor *kept = pc_topk(turned, 9, 0, wanted, i ? &want_at : wanted ? &at : NULL);
                assert_not_null_ok(kept);
                assert_ok(pc_backward(pc_sum(pc_square(kept))));
                grad[i] = pc_grad(leaf);
            }
            assert_true(pc_item(pc_all(pc_eq(grad[0], grad[1]))) == 1);
            assert_true(!wanted || pc_item(pc_all(pc_eq(at, want_at))) == 1);
        }
    assert_no_leak();
}

/* Nothing to compare: also of a dimension that lies between others, and of turned memory. */
static void lists_of_one(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_I64, PC_U8};
    for (int i = 0; i < 8; i++)
        PC_SCOPE {
            pc_tensor *x = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(6, 1, 5), PC_F32, test_device()), 99), dtypes[i / 2]);
            pc_tensor *turned = i % 2 ? pc_transpose(x, 0, 2) : x, *at = NULL;
            pc_tensor *most = pc_topk(turned, 1, 1, true, &at);
            assert_not_null_ok(most);
            assert_true(pc_item(pc_all(pc_eq(most, turned))) == 1);
            assert_true(pc_tensor_dtype(at) == PC_I64 && pc_item(pc_any(at)) == 0);
            assert_true(pc_item(pc_any(pc_argsort(turned, 1, true))) == 0);
        }
    assert_no_leak();
}

/* Shares of what is drawn are those of the weights; without replacement all that have a weight come, once. */
static void draws(void **state)
{
    (void)state;
    enum { N = 5, COUNT = 20000 };
    static const float weights[N] = {1, 0, 4, 2, 3};
    static int64_t drawn[COUNT];
    pc_seed(4);
    PC_SCOPE {
        pc_tensor *w = pc_from_data(weights, PC_SHAPE(N), PC_F32, test_device());
        pc_tensor *rows = pc_expand(w, PC_SHAPE(COUNT, N)), *ways[2];
        ways[0] = pc_multinomial(w, COUNT, true);
        ways[1] = pc_multinomial(rows, 1, true);
        for (int way = 0; way < 2; way++) {
            int counts[N] = {0};
            assert_ok(pc_read(ways[way], drawn, sizeof drawn));
            for (int i = 0; i < COUNT; i++) {
                assert_in_range(drawn[i], 0, N - 1);
                counts[drawn[i]]++;
            }
            for (int i = 0; i < N; i++)
                assert_true(fabs((double)counts[i] / COUNT - (double)weights[i] / 10) < 0.02);
            assert_int_equal(counts[1], 0);
        }
        pc_tensor *apart = pc_multinomial(pc_slice(rows, 0, 0, 50, 1), 4, false);
        assert_int_equal(pc_tensor_size(apart, 1), 4);
        assert_ok(pc_read(pc_sort(apart, 1, false, NULL), drawn, 200 * sizeof *drawn));
        for (int r = 0; r < 50; r++)
            assert_memory_equal(drawn + 4 * r, ((int64_t[]){0, 2, 3, 4}), 4 * sizeof *drawn);
        pc_seed(4);
        pc_tensor *again = pc_multinomial(w, COUNT, true);
        assert_true(pc_item(pc_sum(pc_ne(ways[0], again))) == 0);
    }
    assert_no_leak();
}

/* One weight is the sum of the many others: half of the draws are its, and those of others are anywhere. */
static void many_places(void **state)
{
    (void)state;
    enum { MOST = 1 << 23, DRAWS = 40, LATER = 8192, LATE_DRAWS = 2000 };
    static float weights[MOST + 1];
    const int N = sampled() ? MOST / 1024 : MOST;
    pc_seed(3);
    for (int i = 0; i < N; i++)
        weights[i] = 1;
    weights[N] = N;
    PC_SCOPE {
        pc_tensor *w = pc_from_data(weights, PC_SHAPE(N + 1), PC_F32, test_device());
        int heavy = 0, low = 0;
        for (int i = 0; i < DRAWS; i++)
            PC_SCOPE {
                int64_t at;
                assert_ok(pc_read(pc_multinomial(w, 1, i % 2), &at, sizeof at));
                heavy += at == N;
                low += at < N / 2;
            }
        assert_in_range(heavy, DRAWS / 4, DRAWS - DRAWS / 4);
        assert_in_range(low, DRAWS / 10, DRAWS / 2);
    }
    /* without replacement: of many even places the first that comes is anywhere, and lists have no place twice */
    PC_SCOPE {
        pc_tensor *w = pc_ones(PC_SHAPE(LATER), PC_F32, test_device());
        double sum = 0;
        for (int i = 0; i < LATE_DRAWS / 100; i++)
            PC_SCOPE {
                int64_t at[100];
                assert_ok(pc_read(pc_multinomial(w, 100, false), at, sizeof at));
                for (int k = 0; k < 100; k++) {
                    sum += (double)at[k];
                    for (int m = 0; m < k; m++)
                        assert_true(at[k] != at[m]);
                }
            }
        assert_true(fabs(sum / LATE_DRAWS / LATER - 0.5) < 0.03);
    }
    assert_no_leak();
}

/* Weights of any size: what counts is what they are of each other. */
static void weights_of_any_size(void **state)
{
    (void)state;
    enum { DRAWS = 2000 };
    static const double wide[][2] = {{1e-60, 3e-60}, {1e300, 3e300}, {5e307, 1.5e308}, {5e-324, 15e-324}, {1, 3}};
    static const float narrow[][2] = {{1e-42F, 3e-42F}, {1e38F, 3e38F}};
    for (int i = 0; i < 2 * (5 + 2); i++)
        PC_SCOPE {
            static int64_t drawn[DRAWS];
            const bool is_wide = i / 2 < 5;
            pc_tensor *w = is_wide ? pc_from_data(wide[i / 2], PC_SHAPE(2), PC_F64, test_device())
                                   : pc_from_data(narrow[i / 2 - 5], PC_SHAPE(2), PC_F32, test_device());
            pc_tensor *rows = pc_expand(w, PC_SHAPE(DRAWS, 2));
            pc_seed(5);
            /* of all places the first that comes is drawn by its weight, too */
            pc_tensor *t =
                i % 2 ? pc_slice(pc_multinomial(rows, 2, false), 1, 0, 1, 1) : pc_multinomial(w, DRAWS, true);
            int second = 0;
            assert_ok(pc_read(t, drawn, sizeof drawn));
            for (int k = 0; k < DRAWS; k++)
                second += drawn[k] == 1;
            assert_true(fabs((double)second / DRAWS - 0.75) < 0.04);
        }
    assert_no_leak();
}

/* PyTorch refuses most of these, too. Where work is done later it is told when the places are read. */
static void weights_to_draw_from(void **state)
{
    (void)state;
    static const struct {
        float weights[2][3];
        int count;
        bool replacement, good;
    } cases[] = {
        {{{1, 1, 1}, {0, 0, 0}}, 1, false, false},       {{{0, 0, 0}, {1, 1, 1}}, 2, true, false},
        {{{-1, 2, 1}, {1, 1, 1}}, 2, false, false},      {{{1, 1, 1}, {2, -1, 1}}, 2, true, false},
        {{{1, 1, 1}, {NAN, 1, 1}}, 1, true, false},      {{{NAN, 1, 1}, {1, 1, 1}}, 2, true, false},
        {{{1, INFINITY, 1}, {1, 1, 1}}, 2, true, false}, {{{3e38F, 3e38F, 0}, {1, 1, 1}}, 2, true, true},
        {{{0, 1, 0}, {1, 1, 1}}, 2, false, false},       {{{0, 1, 0}, {1, 0, 0}}, 2, true, true},
        {{{0, 1, 1e-30F}, {1, 2, 0}}, 2, false, true},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        PC_SCOPE {
            int64_t drawn[4];
            pc_tensor *w = pc_from_data(cases[i].weights, PC_SHAPE(2, 3), PC_F32, test_device());
            pc_tensor *t = pc_multinomial(w, cases[i].count, cases[i].replacement);
            const size_t bytes = 2 * (size_t)cases[i].count * sizeof *drawn;
            const pc_status status = t ? pc_read(t, drawn, bytes) : pc_error_last()->status;
            if (status != (cases[i].good ? PC_OK : PC_ERR_RANGE))
                fail_msg("case %d: %s", i, pc_failed() ? pc_error_last()->message : "no error");
            for (int k = 0; cases[i].good && k < 2 * cases[i].count; k++)
                assert_true(cases[i].weights[k / cases[i].count][drawn[k]] > 0);
            if (test_device().type == PC_CPU && !cases[i].good)
                assert_non_null(strstr(pc_error_last()->message, "multinomial: the weights"));
            pc_error_clear();
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(refuses),
                                          cmocka_unit_test(long_lists),
                                          cmocka_unit_test(as_on_cpu),
                                          cmocka_unit_test(gradients),
                                          cmocka_unit_test(few_of_turned_lists),
                                          cmocka_unit_test(lists_of_one),
                                          cmocka_unit_test(draws),
                                          cmocka_unit_test(weights_to_draw_from),
                                          cmocka_unit_test(many_places),
                                          cmocka_unit_test(weights_of_any_size)};

int main(void)
{
    return golden_main("ops.sort", ops, tests);
}
