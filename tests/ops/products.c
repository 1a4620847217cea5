/* Products of drawn shapes in drawn memory orders, against the CPU's in float64: few rows, few columns, short and long
 * sums, batches, one of which may serve for all. On CUDA each kind has a kernel of its own, and tests/CMakeLists.txt has
 * this program run by each (PARACORD_ONLY). */
#include "device.h"

#include "base/base.h"

#include <math.h>
#include <paracord/ops.h>
#include <paracord/random.h>

static uint64_t drawn;

static int64_t draw(int64_t most)
{
    return 1 + (int64_t)(pc_uniform(17, 3, drawn++) * (double)most);
}

/* The same numbers on the test's device, in one of seven memory orders; NaN lies around them. */
static pc_tensor *placed(pc_tensor *exact, pc_dtype dtype, int order)
{
    pc_tensor *t = pc_to(exact, test_device(), dtype, false);
    const int last = pc_tensor_ndim(t) - 1;
    pc_shape shape = pc_tensor_shape(t);
    switch (order) {
    case 1:
        return pc_transpose(pc_contiguous(pc_transpose(t, last, last - 1)), last, last - 1);
    case 2: /* batches inside */
        return last == 2 ? pc_transpose(pc_contiguous(pc_transpose(t, 0, 2)), 0, 2) : t;
    case 3: /* packs that do not begin on whole ones */
    case 4:
    case 5: {
        const int dim = order == 3 ? last : last - 1, step = order == 5 ? 2 : 1;
        shape.dim[dim] = shape.dim[dim] * step + 1;
        pc_tensor *larger = pc_full(shape, NAN, dtype, test_device());
        pc_tensor *part = pc_slice(larger, dim, 1, PC_END_OF_DIM, step);
        assert_ok(pc_copy(part, t));
        return part;
    }
    case 6: /* rows on whole packs, whose lengths are not */
        shape.dim[last] = (shape.dim[last] + 7) / 8 * 8;
        pc_tensor *wider = pc_full(shape, NAN, dtype, test_device());
        pc_tensor *front = pc_slice(wider, last, 0, pc_tensor_shape(t).dim[last], 1);
        assert_ok(pc_copy(front, t));
        return front;
    default:
        return t;
    }
}

static double tolerance_of(pc_dtype dtype)
{
    return dtype == PC_F64 ? 1e-12 : dtype == PC_F32 ? 4e-6 : dtype == PC_F16 ? 2e-3 : 1.2e-2;
}

typedef struct product {
    int64_t batch, m, k, n;
    bool one_b; /* for all of the batch */
    pc_dtype dtype;
    int order_a, order_b;
} product;

static pc_tensor *numbers(pc_shape shape, pc_dtype dtype)
{
    return pc_cast(pc_cast(pc_randn(shape, PC_F32, PC_DEVICE_CPU), dtype), PC_F64);
}

static void check(product p)
{
    PC_SCOPE {
        pc_tensor *a = numbers(PC_SHAPE(p.batch, p.m, p.k), p.dtype);
        pc_tensor *b = numbers(p.one_b ? PC_SHAPE(p.k, p.n) : PC_SHAPE(p.batch, p.k, p.n), p.dtype);
        pc_tensor *got = pc_matmul(placed(a, p.dtype, p.order_a), placed(b, p.dtype, p.order_b));
        pc_tensor *want = pc_matmul(a, b);
        assert_not_null_ok(got);
        const int64_t count = pc_tensor_count(want);
        double *x = malloc((size_t)count * sizeof *x + 1), *y = malloc((size_t)count * sizeof *y + 1), most = 1e-3;
        assert_true(x && y);
        assert_ok(pc_read(want, x, (size_t)count * sizeof *x));
        assert_ok(pc_read(pc_to(got, PC_DEVICE_CPU, PC_F64, false), y, (size_t)count * sizeof *y));
        for (int64_t i = 0; i < count; i++)
            most = fmax(most, fabs(x[i]));
        for (int64_t i = 0; i < count; i++)
            if (!(fabs(x[i] - y[i]) <= tolerance_of(p.dtype) * most))
                fail_msg("%lld x [%lld, %lld] . [%lld, %lld]%s, %s, orders %d and %d: element %lld is %g, want %g",
                         (long long)p.batch, (long long)p.m, (long long)p.k, (long long)p.k, (long long)p.n,
                         p.one_b ? " for all" : "", pc_dtype_name(p.dtype), p.order_a, p.order_b, (long long)i, y[i],
                         x[i]);
        free(x);
        free(y);
    }
}

/* Sizes are drawn up to these; few products on a GPU that a CPU plays. */
static void drawn_ones(int64_t batch, int64_t m, int64_t k, int64_t n, int count)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    for (int i = 0; i < count; i++) {
        product p = {.batch = draw(batch), .m = draw(m), .k = draw(k), .n = draw(n), .dtype = dtypes[i % 3]};
        p.one_b = draw(3) == 1, p.order_a = (int)draw(7) - 1, p.order_b = (int)draw(7) - 1;
        check(p);
    }
    assert_no_leak();
}

static void few_columns(void **state)
{
    (void)state;
    drawn_ones(3, 300, 300, 16, 40);
}

static void few_rows(void **state)
{
    (void)state;
    drawn_ones(2, 16, 300, 300, 40);
}

static void vectors(void **state)
{
    (void)state;
    drawn_ones(2, 500, 900, 1, 20);
    drawn_ones(2, 1, 900, 500, 20);
}

static void long_sums(void **state)
{
    (void)state;
    drawn_ones(2, 20, 9000, 8, 12);
    drawn_ones(2, 40, 5000, 40, 12);
}

static void short_sums(void **state)
{
    (void)state;
    drawn_ones(3, 150, 16, 300, 60);
    drawn_ones(1, 3, 5, 3000, 9);
    drawn_ones(1, 3, 16, 2000, 9);
    drawn_ones(1, 3000, 5, 3, 9);
}

static void middling(void **state)
{
    (void)state;
    drawn_ones(3, 64, 200, 64, 30);
}

static void sizes_on_packs(void **state)
{
    (void)state;
    for (int order = 0; order < 4; order++)
        for (int dtype = 0; dtype < 3; dtype++) {
            static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
            const pc_dtype of = dtypes[dtype];
            check((product){1, 64, 512, 8, false, of, order & 1, order >> 1});
            check((product){2, 16, 256, 128, false, of, order & 1, order >> 1});
            check((product){2, 64, 8, 128, true, of, order & 1, order >> 1});
        }
    assert_no_leak();
}

/* Nothing to write, and nothing to add up. */
static void empty(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(5, 0), PC_F32, test_device()),
                  *b = pc_ones(PC_SHAPE(0, 4), PC_F32, test_device());
        float y[20];
        assert_ok(pc_read(pc_matmul(a, b), y, sizeof y));
        for (int i = 0; i < 20; i++)
            assert_true(y[i] == 0);
        assert_int_equal(pc_tensor_count(pc_matmul(b, a)), 0);
    }
    assert_no_leak();
}

/* The same of so many outputs that threads share them. */
static void nothing_to_add_up(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{20000, 12}, {900, 1300}, {3, 400000}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    for (int i = 0; i < 12; i++)
        PC_SCOPE {
            const int64_t m = sizes[i / 4][0], n = sizes[i / 4][1];
            pc_tensor *a = pc_ones(PC_SHAPE(m, 0), dtypes[i % 4], test_device());
            pc_tensor *y = pc_matmul(a, pc_ones(PC_SHAPE(0, n), dtypes[i % 4], test_device()));
            assert_not_null_ok(y);
            assert_false(pc_item(pc_any(y)) != 0);
        }
    assert_no_leak();
}

/* An infinite factor is as it is, and only in its row. */
static void infinite(void **state)
{
    (void)state;
    enum { M = 3, K = 40, N = 5 };
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(M, K), PC_F32, test_device()),
                  *b = pc_ones(PC_SHAPE(K, N), PC_F32, test_device());
        float y[M * N];
        assert_ok(pc_fill(pc_slice(pc_slice(a, 0, 1, 2, 1), 1, 7, 8, 1), INFINITY));
        assert_ok(pc_read(pc_matmul(a, b), y, sizeof y));
        for (int i = 0; i < M * N; i++)
            assert_true(y[i] == (i / N == 1 ? INFINITY : K));
    }
    assert_no_leak();
}

/* NaN and infinity at the end of sums and of rows stay in their row and column, whatever was computed before: a product
 * that is padded adds nothing but zeros. */
static void nothing_spreads(void **state)
{
    (void)state;
    enum { M = 5, K = 41, N = 7 };
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    for (int i = 0; i < 3 * 2 * 2; i++)
        PC_SCOPE {
            const pc_dtype dtype = dtypes[i % 3];
            pc_tensor *before = pc_full(PC_SHAPE(64, 64), NAN, dtype, test_device());
            assert_not_null_ok(pc_matmul(before, before));
            pc_tensor *a = pc_ones(PC_SHAPE(M, K), PC_F32, PC_DEVICE_CPU),
                      *b = pc_ones(PC_SHAPE(K, N), PC_F32, PC_DEVICE_CPU);
            float y[M * N];
            assert_ok(pc_fill(pc_slice(pc_slice(a, 0, M - 1, M, 1), 1, K - 1, K, 1), NAN));
            assert_ok(pc_fill(pc_slice(pc_slice(b, 0, K - 1, K, 1), 1, N - 1, N, 1), INFINITY));
            pc_tensor *got = pc_matmul(placed(a, dtype, i / 3 % 2), placed(b, dtype, i / 6));
            assert_ok(pc_read(pc_to(got, PC_DEVICE_CPU, PC_F32, false), y, sizeof y));
            for (int j = 0; j < M * N; j++)
                if (j / N == M - 1)
                    assert_true(isnan(y[j]));
                else
                    assert_true(y[j] == (j % N == N - 1 ? INFINITY : K));
        }
    assert_no_leak();
}

/* The same bits every time, whatever the order in which blocks come. */
static void same_bits(void **state)
{
    (void)state;
    enum { M = 9, K = 7001, N = 5 };
    PC_SCOPE {
        pc_tensor *a = pc_randn(PC_SHAPE(M, K), PC_F32, test_device()),
                  *b = pc_randn(PC_SHAPE(K, N), PC_F32, test_device());
        float first[M * N], again[M * N];
        assert_ok(pc_read(pc_matmul(a, b), first, sizeof first));
        for (int i = 0; i < 5; i++) {
            assert_ok(pc_read(pc_matmul(a, b), again, sizeof again));
            assert_memory_equal(again, first, sizeof first);
        }
    }
    assert_no_leak();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_columns),     cmocka_unit_test(few_rows),   cmocka_unit_test(vectors),
        cmocka_unit_test(long_sums),       cmocka_unit_test(short_sums), cmocka_unit_test(middling),
        cmocka_unit_test(sizes_on_packs),  cmocka_unit_test(empty),      cmocka_unit_test(infinite),
        cmocka_unit_test(nothing_spreads), cmocka_unit_test(same_bits),  cmocka_unit_test(nothing_to_add_up),
    };
    return cmocka_run_group_tests_name("ops.products", tests, NULL, NULL);
}
