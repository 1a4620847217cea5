/* Sums, means and maxima. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <paracord/random.h>

static pc_shape dims_of(const golden *g)
{
    pc_shape dims = {.ndim = g->n_args - 1};
    for (int i = 0; i < dims.ndim; i++)
        dims.dim[i] = (int64_t)g->args[i + 1];
    return dims;
}

static void run_sum(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_sum(in[0]);
}

static void run_mean(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_mean(in[0]);
}

static void run_max(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_max(in[0]);
}

static void run_sum_dims(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_sum_dims(in[0], dims_of(g), g->args[0] != 0);
}

static void run_mean_dims(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_mean_dims(in[0], dims_of(g), g->args[0] != 0);
}

static void run_max_dim(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_max_dim(in[0], (int)g->args[1], g->args[0] != 0, &out[1]);
}

static void run_argmax(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_argmax(in[0], (int)g->args[1], g->args[0] != 0);
}

static const golden_op ops[] = {
    {"sum", run_sum},           {"mean", run_mean},           {"max", run_max},
    {"sum_dims", run_sum_dims}, {"mean_dims", run_mean_dims}, {"max_dim", run_max_dim},
    {"argmax", run_argmax},
};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *none = pc_zeros(PC_SHAPE(0, 3), PC_F32, test_device());
        pc_tensor *whole = pc_zeros(PC_SHAPE(2), PC_I32, test_device());
        assert_fails(pc_sum_dims(a, PC_SHAPE(2), false), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_mean_dims(a, PC_SHAPE(-3), false), PC_ERR_RANGE, "dimension -3");
        assert_fails(pc_sum_dims(a, PC_SHAPE(1, -1), false), PC_ERR_ARGUMENT, "twice");
        assert_fails(pc_sum_dims(a, PC_SHAPE(0, 1, 2, 3, 4, 5, 6, 7, 8), false), PC_ERR_SHAPE, "sum");
        assert_fails(pc_sum_dims(a, PC_SHAPE((int64_t)1 << 32), false), PC_ERR_RANGE, "4294967296");
        assert_fails(pc_mean(whole), PC_ERR_DTYPE, "int32");
        assert_fails(pc_mean_dims(whole, PC_SHAPE(0), false), PC_ERR_DTYPE, "pc_cast");
        assert_fails(pc_max(none), PC_ERR_SHAPE, "[0, 3]");
        assert_fails(pc_max_dim(none, 0, false, NULL), PC_ERR_SHAPE, "[0, 3]");
        assert_fails(pc_argmax(none, 0, true), PC_ERR_SHAPE, "[0, 3]");
        assert_fails(pc_argmax(a, 5, true), PC_ERR_RANGE, "dimension 5");
        pc_tensor *indices = a;
        assert_fails(pc_max_dim(a, 5, true, &indices), PC_ERR_RANGE, "dimension 5");
        assert_null(indices);
    }
    assert_no_leak();
}

static void null_flows(void **state)
{
    (void)state;
    pc_tensor *indices;
    assert_fails(pc_sum(NULL), PC_ERR_ARGUMENT, "sum");
    assert_fails(pc_mean(NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_max(NULL), PC_ERR_ARGUMENT, "max");
    assert_fails(pc_sum_dims(NULL, PC_SHAPE(0), false), PC_ERR_ARGUMENT, "sum");
    assert_fails(pc_mean_dims(NULL, PC_SHAPE(0), false), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_max_dim(NULL, 0, false, &indices), PC_ERR_ARGUMENT, "max");
    assert_fails(pc_argmax(NULL, 0, false), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_mean(pc_sum(pc_max(pc_reshape(NULL, PC_SHAPE(1))))), PC_ERR_ARGUMENT, "reshape");
}

/* Many terms: a running float32 sum would stop growing at 2^24 ones, or lose digits on the way. */
static void long_sums_are_exact_enough(void **state)
{
    (void)state;
    enum { N = 3000000 };
    PC_SCOPE {
        pc_tensor *a = pc_full(PC_SHAPE(N), 0.1, PC_F32, test_device());
        assert_close(pc_item(pc_sum(a)) / (0.1 * N), 1, 1e-6);
        pc_tensor *columns = pc_sum_dims(pc_reshape(a, PC_SHAPE(-1, 2)), PC_SHAPE(0), false);
        assert_close(pc_item(pc_slice(columns, 0, 0, 1, 1)) / (0.05 * N), 1, 1e-6);
        assert_close(pc_item(pc_slice(columns, 0, 1, 2, 1)) / (0.05 * N), 1, 1e-6);
        assert_close(pc_item(pc_slice(pc_mean_dims(pc_reshape(a, PC_SHAPE(-1, 3)), PC_SHAPE(0), true), 1, 2, 3, 1)),
                     0.1, 1e-7);
    }
    assert_no_leak();
}

static void max_dim_keeps_what_was_asked_for(void **state)
{
    (void)state;
    pc_tensor *indices = NULL;
    pc_tensor *a = pc_arange(0, 6, 1, PC_F32, test_device());
    pc_tensor *value = pc_max_dim(a, 0, false, &indices);
    assert_close(pc_item(value), 5, 0);
    assert_close(pc_item(indices), 5, 0);
    pc_tensor_free(indices);
    pc_tensor_free(value);
    pc_tensor_free(a);
    assert_no_leak();
}

enum { MOST_ROWS = 66, LONGEST = 20000 };
static float numbers[MOST_ROWS * LONGEST]; /* small and whole, so that sums are exact in any order */

static void assert_rows(pc_tensor *sums, pc_tensor *most, int count, int length)
{
    float sum[MOST_ROWS], highest[MOST_ROWS];
    assert_ok(pc_read(sums, sum, (size_t)count * sizeof *sum));
    assert_ok(pc_read(most, highest, (size_t)count * sizeof *highest));
    for (int r = 0; r < count; r++) {
        double all = 0, best = -INFINITY;
        for (const float *x = numbers + r * length; x < numbers + (r + 1) * length; x++) {
            all += (double)*x;
            best = fmax(best, (double)*x);
        }
        assert_close((double)sum[r], all, 0);
        assert_close((double)highest[r], best, 0);
    }
}

/* Rows and columns of lengths that a device goes over in different ways. */
static void every_length_is_whole(void **state)
{
    (void)state;
    static const int lengths[] = {1, 2, 31, 33, 128, 129, 255, 1000, 1025, 4099, LONGEST};
    static const int counts[] = {1, 3, MOST_ROWS};
    for (int i = 0; i < MOST_ROWS * LONGEST; i++)
        numbers[i] = (float)((int)(pc_uniform(1, 2, (uint64_t)i) * 19) - 9);
    for (int i = 0; i < PC__COUNT(lengths) * PC__COUNT(counts); i++)
        PC_SCOPE {
            const int length = lengths[i / PC__COUNT(counts)], count = counts[i % PC__COUNT(counts)];
            pc_tensor *rows = pc_from_data(numbers, PC_SHAPE(count, length), PC_F32, test_device());
            pc_tensor *columns = pc_contiguous(pc_transpose(rows, 0, 1));
            assert_rows(pc_sum_dims(rows, PC_SHAPE(1), false), pc_max_dim(rows, 1, false, NULL), count, length);
            assert_rows(pc_sum_dims(columns, PC_SHAPE(0), false), pc_max_dim(columns, 0, false, NULL), count, length);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_input),
    cmocka_unit_test(null_flows),
    cmocka_unit_test(long_sums_are_exact_enough),
    cmocka_unit_test(every_length_is_whole),
    cmocka_unit_test(max_dim_keeps_what_was_asked_for),
};

int main(void)
{
    return golden_main("ops.reduce", ops, tests);
}
