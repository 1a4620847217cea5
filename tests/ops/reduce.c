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

/* Long rows whose elements lie apart, one and several, whole and from the middle on; `numbers` are small and whole. */
static void long_sums_of_gapped_rows(void **state)
{
    (void)state;
    enum { MOST = MOST_ROWS * LONGEST };
    static const int rows[] = {1, 1, 3, 20, 66}, lengths[] = {4097, 300001, 100003, 9001, 8192},
                     steps[] = {2, 3, 4, 5, 2};
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64, PC_I64};
    for (int k = 0; k < MOST; k++)
        numbers[k] = (float)(k * 7 % 5 - 2);
    for (int i = 0; i < PC__COUNT(rows) * PC__COUNT(dtypes); i++) {
        const int r = rows[i % PC__COUNT(rows)], n = lengths[i % PC__COUNT(rows)], step = steps[i % PC__COUNT(rows)];
        const int width = n * step < MOST / r ? n * step : MOST / r, kept = (width - 1 - i % 2) / step + 1;
        PC_SCOPE {
            pc_tensor *x = pc_cast(pc_from_data(numbers, PC_SHAPE(r, width), PC_F32, test_device()), dtypes[i / 5]);
            double sums[MOST_ROWS];
            pc_tensor *gapped = pc_slice(x, 1, i % 2, width, step);
            assert_ok(
                pc_read(pc_cast(pc_sum_dims(gapped, PC_SHAPE(1), false), PC_F64), sums, (size_t)r * sizeof *sums));
            double all = 0;
            for (int row = 0; row < r; row++) {
                double sum = 0;
                for (int k = 0; k < kept; k++)
                    sum += (double)numbers[row * width + i % 2 + k * step];
                assert_close(sums[row], sum, fabs(sum) * 0x1p-8);
                all += sum;
            }
            assert_close(pc_item(pc_cast(pc_sum(pc_cast(gapped, PC_F32)), PC_F64)), all, 0);
            if (r == 1)
                assert_close(pc_item(pc_cast(pc_sum(gapped), PC_F64)), all, fabs(all) * 0x1p-8);
        }
    }
    assert_no_leak();
}

/* Sums of every n-th row, plane or number, over all dimensions there are to go over: those of a copy without gaps. */
static void sums_of_gapped_views(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{3, 5, 4, 300}, {2, 7, 60, 20}, {4, 1, 9, 64}, {1, 3, 50, 1}, {2, 0, 3, 70}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64, PC_I64};
    for (int i = 0; i < PC__COUNT(shapes) * PC__COUNT(dtypes) * 4; i++)
        for (int mask = 1; mask < 16; mask++)
            PC_SCOPE {
                const int64_t *s = shapes[i / 4 / PC__COUNT(dtypes)];
                pc_shape shape = pc_shape_of(4, s), dims = {0};
                shape.dim[i % 4] = 2 * s[i % 4] + 1;
                for (int d = 0; d < 4; d++)
                    if (mask >> d & 1)
                        dims.dim[dims.ndim++] = d;
                pc_seed((uint64_t)i);
                pc_tensor *x = pc_floor(pc_mul_scalar(pc_rand(shape, PC_F32, test_device()), 3));
                x = pc_slice(pc_cast(x, dtypes[i / 4 % PC__COUNT(dtypes)]), i % 4, 1, shape.dim[i % 4], 2);
                pc_tensor *sum = pc_sum_dims(x, dims, i % 2), *other = pc_sum_dims(pc_contiguous(x), dims, i % 2);
                assert_true(pc_tensor_ndim(sum) == pc_tensor_ndim(other));
                assert_true(pc_tensor_count(sum) == pc_tensor_count(other));
                if (pc_tensor_count(sum) > 0)
                    assert_close(pc_item(pc_sum(pc_cast(pc_ne(sum, other), PC_F32))), 0, 0);
            }
    assert_no_leak();
}

/* Columns of all heights and widths, side by side and several times over: sums, maxima and the first's places. */
static void columns_of_any_size(void **state)
{
    (void)state;
    static const int heights[] = {1, 7, 70, 300, 1000, 2500}, widths[] = {2, 3, 8, 34, 70, 136};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64, PC_I64};
    enum { MOST = 2500 * 136 };
    for (int i = 0; i < PC__COUNT(heights) * PC__COUNT(widths); i++) {
        const int height = heights[i / PC__COUNT(widths)], width = widths[i % PC__COUNT(widths)];
        const int slabs = height * width <= MOST / 3 ? 3 : 1, columns = slabs * width;
        static double sums[3 * 136], places[3 * 136];
        for (int k = 0; k < slabs * height * width; k++) /* which are whole in bfloat16 too */
            numbers[k] = (float)(k % width % 16 + k / width * 7 % 11 * (k / width % 3 - 1));
        for (int c = 0; c < columns; c++) {
            const float *x = numbers + c / width * height * width + c % width;
            int best = 0;
            sums[c] = 0;
            for (int r = 0; r < height; r++) {
                best = x[r * width] > x[best * width] ? r : best;
                sums[c] += (double)x[r * width];
            }
            places[c] = best;
        }
        for (int d = 0; d < PC__COUNT(dtypes); d++)
            PC_SCOPE {
                pc_tensor *x = pc_from_data(numbers, PC_SHAPE(slabs, height, width), PC_F32, test_device());
                x = pc_cast(x, dtypes[d]);
                double sum[3 * 136];
                int64_t place[3 * 136];
                assert_ok(
                    pc_read(pc_cast(pc_sum_dims(x, PC_SHAPE(1), false), PC_F64), sum, (size_t)columns * sizeof *sum));
                assert_ok(pc_read(pc_argmax(x, 1, false), place, (size_t)columns * sizeof *place));
                for (int c = 0; c < columns; c++) {
                    assert_close(sum[c], sums[c], dtypes[d] == PC_BF16 ? fabs(sums[c]) * 0x1p-8 : 0);
                    assert_int_equal(place[c], places[c]);
                }
            }
    }
    assert_no_leak();
}

/* So many results that a thread has several, which lie on whole accesses or do not; means too. */
static void few_rows_over_each_other(void **state)
{
    (void)state;
    static const int heights[] = {1, 2, 4, 5, 8, 9}, widths[] = {22000, 33001};
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_F64, PC_I64, PC_U8};
    enum { OUTER = 3, MOST = OUTER * 33001 };
    for (int i = 0; i < PC__COUNT(heights) * PC__COUNT(widths) * PC__COUNT(dtypes); i++) {
        const int height = heights[i / PC__COUNT(widths) / PC__COUNT(dtypes)];
        const int width = widths[i / PC__COUNT(dtypes) % PC__COUNT(widths)], count = OUTER * width;
        const pc_dtype dtype = dtypes[i % PC__COUNT(dtypes)];
        const bool real = dtype != PC_I64 && dtype != PC_U8;
        static float means[MOST], sums[MOST];
        static int64_t places[MOST];
        for (int k = 0; k < count * height; k++)
            numbers[k] = (float)(k % 1009 * 7 % 13);
        PC_SCOPE {
            pc_tensor *x = pc_from_data(numbers, PC_SHAPE(OUTER, height, width), PC_F32, test_device());
            x = pc_cast(x, dtype);
            pc_tensor *sum = dtype == PC_U8 ? NULL : pc_cast(pc_sum_dims(x, PC_SHAPE(1), false), PC_F32);
            assert_ok(pc_read(pc_argmax(x, 1, false), places, (size_t)count * sizeof *places));
            if (sum)
                assert_ok(pc_read(sum, sums, (size_t)count * sizeof *sums));
            if (real)
                assert_ok(pc_read(pc_cast(pc_mean_dims(x, PC_SHAPE(1), false), PC_F32), means,
                                  (size_t)count * sizeof *means));
            for (int c = 0; c < count; c++) {
                const float *from = numbers + c / width * height * width + c % width;
                float wanted = 0;
                int best = 0;
                for (int r = 0; r < height; r++) {
                    best = from[r * width] > from[best * width] ? r : best;
                    wanted += from[r * width];
                }
                assert_int_equal(places[c], best);
                if (sum)
                    assert_close(sums[c], wanted, 0);
                if (real)
                    assert_close(means[c], wanted / height, dtype == PC_F16 ? wanted * 0x1p-11F : 0);
            }
        }
    }
    assert_no_leak();
}

/* The first of equals, NaN above all, in rows that lie anywhere. */
static void places_of_the_first(void **state)
{
    (void)state;
    static const int lengths[] = {1, 3, 9, 17, 37, 130, 515, 1031, 4097, LONGEST - 1};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64, PC_U8, PC_I64};
    enum { ROWS = 3 };
    for (int i = 0; i < ROWS * LONGEST; i++)
        numbers[i] = (float)(i * 7919 % 19);
    for (int i = 0; i < PC__COUNT(lengths) * PC__COUNT(dtypes); i++) {
        const int n = lengths[i / PC__COUNT(dtypes)];
        const pc_dtype dtype = dtypes[i % PC__COUNT(dtypes)];
        const bool real = dtype == PC_F32 || dtype == PC_BF16 || dtype == PC_F64;
        float *x = numbers + 1, saved[2] = {x[n + n / 3], x[n + n / 2]};
        if (real && n > 1)
            x[n + n / 3] = x[n + n / 2] = NAN;
        PC_SCOPE {
            pc_tensor *all = pc_cast(pc_from_data(numbers, PC_SHAPE(ROWS * n + 1), PC_F32, test_device()), dtype);
            pc_tensor *rows = pc_reshape(pc_slice(all, 0, 1, ROWS * n + 1, 1), PC_SHAPE(ROWS, n));
            int64_t places[ROWS];
            assert_ok(pc_read(pc_argmax(rows, 1, false), places, sizeof places));
            for (int r = 0; r < ROWS; r++) {
                int best = 0;
                for (int k = 1; k < n; k++)
                    if (x[r * n + k] > x[r * n + best] || (isnan(x[r * n + k]) && !isnan(x[r * n + best])))
                        best = k;
                assert_int_equal(places[r], best);
            }
        }
        x[n + n / 3] = saved[0], x[n + n / 2] = saved[1];
    }
    assert_no_leak();
}

/* --- every set of dimensions, in several memory orders --- */

enum { DIMS = 4, OF_DIMS = 3 * 5 * 1 * 18 };
static const int64_t shapes[][DIMS] = {{3, 5, 1, 18}, {1, 15, 1, 18}, {1, 270, 1, 1}};
static const int64_t *sizes = shapes[0];

/* Sums and maxima over the dimensions in `mask`; results in C order of what is left. */
static int plain_over(unsigned mask, const float *x, float *sums, float *most)
{
    int count = 0;
    int64_t step[DIMS] = {0};
    for (int d = DIMS - 1, n = 1; d >= 0; d--)
        if (!(mask >> d & 1)) {
            step[d] = n;
            n *= (int)sizes[d];
        }
    for (int i = 0; i < OF_DIMS; i++)
        sums[i] = 0, most[i] = -INFINITY;
    for (int i = 0; i < OF_DIMS; i++) {
        int64_t to = 0;
        for (int d = DIMS - 1, rest = i; d >= 0; rest /= (int)sizes[d--])
            to += rest % (int)sizes[d] * step[d];
        sums[to] += x[i];
        most[to] = fmaxf(most[to], x[i]);
        count = to >= count ? (int)to + 1 : count;
    }
    return count;
}

static int plain_count(unsigned mask)
{
    int count = 1;
    for (int d = 0; d < DIMS; d++)
        count *= mask >> d & 1 ? 1 : (int)sizes[d];
    return count;
}

static void assert_values(pc_tensor *t, const float *wanted, int count, double factor)
{
    float got[OF_DIMS];
    assert_int_equal(pc_tensor_count(t), count);
    assert_true(pc_tensor_is_contiguous(t));
    assert_ok(pc_read(pc_cast(t, PC_F32), got, (size_t)count * sizeof *got));
    for (int i = 0; i < count; i++)
        assert_close((double)got[i], (double)wanted[i] * factor, factor == 1 ? 0 : 2e-2 * fabs((double)wanted[i]));
}

static void check_dims(pc_tensor *t, unsigned mask, const float *x)
{
    float sums[OF_DIMS], most[OF_DIMS];
    const int count = plain_over(mask, x, sums, most), gone = __builtin_popcount(mask);
    pc_shape dims = {0}, kept = {.ndim = DIMS};
    for (int d = 0; d < DIMS; d++) {
        kept.dim[d] = mask >> d & 1 ? 1 : sizes[d];
        if (mask >> d & 1)
            dims.dim[dims.ndim++] = d;
    }
    assert_values(pc_sum_dims(t, dims, false), sums, count, 1);
    pc_tensor *with = pc_sum_dims(t, dims, true);
    assert_int_equal(pc_tensor_ndim(with), DIMS);
    for (int d = 0; d < DIMS; d++)
        assert_int_equal(pc_tensor_size(with, d), kept.dim[d]);
    assert_values(with, sums, count, 1);
    assert_values(pc_mean_dims(t, dims, false), sums, count, (double)count / OF_DIMS);
    if (gone == 1) {
        pc_tensor *places, *values = pc_max_dim(t, (int)dims.dim[0], true, &places);
        assert_values(values, most, count, 1);
        assert_true(pc_tensor_is_contiguous(places));
        pc_tensor *along = pc_arange(0, (double)sizes[dims.dim[0]], 1, PC_I64, test_device());
        for (int64_t d = dims.dim[0] + 1; d < DIMS; d++)
            along = pc_unsqueeze(along, -1);
        pc_tensor *chosen = pc_where(pc_eq(along, places), t, pc_scalar(0, pc_tensor_dtype(t), test_device()));
        assert_values(pc_sum_dims(chosen, dims, false), most, count, 1);
    }
    if (gone == DIMS)
        assert_close(pc_item(pc_max(t)), (double)most[0], 0);
}

static void any_dims_in_any_order(void **state)
{
    (void)state;
    static const int64_t orders[][DIMS] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    float x[OF_DIMS];
    for (int i = 0; i < OF_DIMS; i++)
        x[i] = (float)(i * 37 % 5); /* sums up to 256 are whole in bfloat16 */
    for (int k = 0; k < PC__COUNT(shapes) * PC__COUNT(orders) * PC__COUNT(dtypes); k++)
        for (unsigned mask = 1; mask < 1u << DIMS; mask++)
            PC_SCOPE {
                const int64_t *o = orders[k / PC__COUNT(dtypes) % PC__COUNT(orders)];
                sizes = shapes[k / PC__COUNT(dtypes) / PC__COUNT(orders)];
                pc_shape order = PC_SHAPE(o[0], o[1], o[2], o[3]), back = {.ndim = DIMS};
                for (int d = 0; d < DIMS; d++)
                    back.dim[o[d]] = d;
                pc_tensor *t = pc_from_data(x, PC_SHAPE(sizes[0], sizes[1], sizes[2], sizes[3]), PC_F32, test_device());
                t = pc_cast(t, dtypes[k % PC__COUNT(dtypes)]);
                if (pc_tensor_dtype(t) != PC_BF16 || plain_count(mask) > 1)
                    check_dims(pc_permute(pc_contiguous(pc_permute(t, order)), back), mask, x);
            }
    assert_no_leak();
}

/* The gradient of a sum over several runs of dimensions, of numbers of 16 bits too. */
static void gradients_reach_every_order(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16};
    for (int k = 0; k < 2; k++)
        PC_SCOPE {
            pc_tensor *t = pc_ones(PC_SHAPE(2, 5, 3, 4), dtypes[k], test_device());
            pc_tensor *last = pc_detach(pc_permute(t, PC_SHAPE(0, 3, 1, 2)));
            assert_ok(pc_require_grad(last, true));
            pc_tensor *sums = pc_sum_dims(last, PC_SHAPE(0, 2), false), *weight;
            weight = pc_reshape(pc_arange(0, 12, 1, dtypes[k], test_device()), PC_SHAPE(4, 3));
            assert_ok(pc_backward(pc_sum(pc_mul(sums, weight))));
            float got[120];
            assert_int_equal(pc_tensor_dtype(pc_grad(last)), dtypes[k]);
            assert_ok(pc_read(pc_cast(pc_grad(last), PC_F32), got, sizeof got));
            for (int i = 0; i < 120; i++)
                assert_close((double)got[i], i / 15 % 4 * 3 + i % 3, 0);
        }
    assert_no_leak();
}

/* The gradient goes to the greatest alone, whichever way tasks are cut: all that is reduced, some columns of it, or some rows. */
static void gradients_of_maxima(void **state)
{
    static const int64_t list[][3] = {{2, 13, 3001}, {3, 20000, 2}, {700, 5, 3}, {1, 300, 130}, {40, 7, 64}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F64};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        PC_SCOPE {
            pc_seed(5);
            pc_tensor *x = pc_cast(pc_randn(pc_shape_of(3, list[i]), PC_F32, test_device()), dtypes[i % 2]);
            pc_tensor *leaf = pc_detach(x), *most = NULL;
            assert_ok(pc_require_grad(leaf, true));
            most = pc_max_dim(leaf, 1, true, NULL);
            pc_tensor *g = pc_cast(pc_randn(pc_tensor_shape(most), PC_F32, test_device()), dtypes[i % 2]);
            assert_ok(pc_backward_with(most, g));
            pc_tensor *wanted = pc_mul(pc_cast(pc_eq(x, pc_detach(most)), dtypes[i % 2]), g);
            assert_close(pc_item(pc_sum(pc_ne(pc_grad(leaf), wanted))), 0, 0);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(places_of_the_first),
    cmocka_unit_test(any_dims_in_any_order),
    cmocka_unit_test(gradients_reach_every_order),
    cmocka_unit_test(bad_input),
    cmocka_unit_test(null_flows),
    cmocka_unit_test(long_sums_are_exact_enough),
    cmocka_unit_test(every_length_is_whole),
    cmocka_unit_test(long_sums_of_gapped_rows),
    cmocka_unit_test(sums_of_gapped_views),
    cmocka_unit_test(columns_of_any_size),
    cmocka_unit_test(few_rows_over_each_other),
    cmocka_unit_test(max_dim_keeps_what_was_asked_for),
    cmocka_unit_test(gradients_of_maxima),
};

int main(void)
{
    return golden_main("ops.reduce", ops, tests);
}
