/* Making tensors, and asking them about themselves. */
#include "ops/golden.h"

#include <paracord/random.h>

static void constants(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++)
        PC_SCOPE {
            pc_dtype d = (pc_dtype)dtype;
            pc_tensor *made[] = {pc_zeros(PC_SHAPE(2, 3), d, test_device()), pc_ones(PC_SHAPE(2, 3), d, test_device()),
                                 pc_full(PC_SHAPE(2, 3), 7, d, test_device())};
            const double want[] = {0, 1, d == PC_BOOL ? 1 : 7};
            for (int i = 0; i < 3; i++) {
                double got[6];
                golden_read(made[i], got);
                assert_int_equal(pc_tensor_dtype(made[i]), d);
                assert_int_equal(pc_tensor_count(made[i]), 6);
                assert_true(pc_tensor_is_contiguous(made[i]) && pc_is_leaf(made[i]) && !pc_requires_grad(made[i]));
                for (int k = 0; k < 6; k++)
                    assert_close(got[k], want[i], 0);
            }
            assert_close(pc_item(pc_scalar(1, d, test_device())), 1, 0);
            assert_int_equal(pc_tensor_ndim(pc_empty(PC_SHAPE_SCALAR, d, test_device())), 0);
        }
    assert_no_leak();
}

static void ranges(void **state)
{
    (void)state;
    const struct {
        double start, end, step;
        pc_dtype dtype;
        int count;
        double last;
    } cases[] = {
        {0, 5, 1, PC_I64, 5, 4},
        {1, 7, 2, PC_I32, 3, 5},
        {0, 1, 0.25, PC_F32, 4, 0.75},
        {5, 0, -2, PC_I64, 3, 1},
        {0, 1, 0.3, PC_F64, 4, 0.9},
        {3, 3, 1, PC_I64, 0, 0},
        {0, -1, -0.5, PC_F32, 2, -0.5},
        {250, 256, 1, PC_U8, 6, 255},
        {0, 1e-9, 1, PC_F32, 1, 0},
        {-3, 3, 1, PC_I32, 6, 2},
        {0, 100000, 1, PC_F32, 100000, 99999},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        PC_SCOPE {
            pc_tensor *t = pc_arange(cases[i].start, cases[i].end, cases[i].step, cases[i].dtype, test_device());
            assert_not_null_ok(t);
            assert_int_equal(pc_tensor_count(t), cases[i].count);
            assert_int_equal(pc_tensor_dtype(t), cases[i].dtype);
            if (cases[i].count)
                assert_close(pc_item(pc_slice(t, 0, -1, PC_END_OF_DIM, 1)), cases[i].last, 1e-6);
        }
    PC_SCOPE {
        assert_fails(pc_arange(0, 5, 0, PC_I64, test_device()), PC_ERR_ARGUMENT, "steps of 0");
        assert_fails(pc_arange(0, 5, -1, PC_I64, test_device()), PC_ERR_ARGUMENT, "0 to 5");
        assert_fails(pc_arange(5, 0, 1, PC_I64, test_device()), PC_ERR_ARGUMENT, "5 to 0");
        assert_fails(pc_arange(0, NAN, 1, PC_I64, test_device()), PC_ERR_ARGUMENT, "nan");
        assert_fails(pc_arange(0, INFINITY, 1, PC_F32, test_device()), PC_ERR_ARGUMENT, "inf");
        assert_fails(pc_arange(0, 1e300, 1, PC_F32, test_device()), PC_ERR_ARGUMENT, "1e+300");
        assert_fails(pc_arange(1e300, 2e300, 1e299, PC_I64, test_device()), PC_ERR_ARGUMENT, "int64");
        assert_fails(pc_zeros(PC_SHAPE(1ll << 62, 4, 0), PC_U8, test_device()), PC_ERR_MEMORY, "any memory");
        assert_fails(pc_arange(0, 2, 1, PC_BOOL, test_device()), PC_ERR_ARGUMENT, "bool");
        assert_fails(pc_arange(0, 2, 1, (pc_dtype)42, test_device()), PC_ERR_DTYPE, "42");
    }
    assert_no_leak();
}

static void random_numbers(void **state)
{
    (void)state;
    enum { N = 100003 };
    static float u[N], again[N], z[N];
    PC_SCOPE {
        pc_seed(42);
        assert_ok(pc_read(pc_rand(PC_SHAPE(N), PC_F32, test_device()), u, sizeof u));
        assert_ok(pc_read(pc_randn(PC_SHAPE(N), PC_F32, test_device()), z, sizeof z));
        assert_int_equal(pc_generator_get().step, 2);
        pc_seed(42);
        assert_ok(pc_read(pc_rand(PC_SHAPE(N), PC_F32, test_device()), again, sizeof again));
        assert_memory_equal(u, again, sizeof u);
        assert_ok(pc_read(pc_rand(PC_SHAPE(N), PC_F32, test_device()), again, sizeof again));
        assert_memory_not_equal(u, again, sizeof u);
        double mean = 0, square = 0, normal = 0, normal_square = 0;
        for (int i = 0; i < N; i++) {
            assert_true(u[i] >= 0 && u[i] < 1 && isfinite(z[i]));
            mean += (double)u[i] / N, square += (double)u[i] * (double)u[i] / N;
            normal += (double)z[i] / N, normal_square += (double)z[i] * (double)z[i] / N;
        }
        assert_close(mean, 0.5, 5e-3);
        assert_close(square - mean * mean, 1.0 / 12, 3e-3);
        assert_close(normal, 0, 2e-2);
        assert_close(normal_square, 1, 3e-2);
        pc_generator before = pc_generator_get();
        assert_fails(pc_rand(PC_SHAPE(2), PC_I32, test_device()), PC_ERR_DTYPE, "int32");
        assert_fails(pc_randn(PC_SHAPE(2), PC_BOOL, test_device()), PC_ERR_DTYPE, "pc_randn");
        assert_int_equal(pc_generator_get().step, before.step);
        assert_int_equal(pc_tensor_count(pc_randn(PC_SHAPE(0, 3), PC_F64, test_device())), 0);
    }
    assert_no_leak();
}

static void from_host_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        int32_t data[] = {1, 2, 3, 4, 5, 6};
        pc_tensor *t = pc_from_data(data, PC_SHAPE(2, 3), PC_I32, test_device());
        data[0] = 99; /* a copy was made */
        assert_close(pc_item(pc_sum(t)), 21, 0);
        assert_int_equal(pc_tensor_count(pc_from_data(NULL, PC_SHAPE(0, 3), PC_F32, test_device())), 0);
        assert_fails(pc_from_data(NULL, PC_SHAPE(2), PC_F32, test_device()), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_from_data(data, PC_SHAPE(2), (pc_dtype)9, test_device()), PC_ERR_DTYPE, "9");
        assert_fails(pc_from_data(data, PC_SHAPE(-1), PC_I32, test_device()), PC_ERR_SHAPE, "negative");
        assert_fails(pc_from_data(data, PC_SHAPE(1), PC_I32, (pc_device){-1, 0}), PC_ERR_DEVICE, "pc_from_data");
        assert_fails(pc_zeros(PC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), PC_F32, test_device()), PC_ERR_SHAPE, "0 to 8");
        assert_fails(pc_full(PC_SHAPE(2), 1, (pc_dtype)-1, test_device()), PC_ERR_DTYPE, "pc_full");
        assert_fails(pc_ones(PC_SHAPE(2, -3), PC_F32, test_device()), PC_ERR_SHAPE, "[2, -3]");
    }
    assert_no_leak();
}

static int released;

static void note_release(void *context)
{
    released += *(int *)context;
}

/* Memory in place: read and written through, and given back after the last view is gone. */
static void from_memory_in_place(void **state)
{
    (void)state;
    float memory[6] = {0, 1, 2, 3, 4, 5};
    int one = 1;
    released = 0;
    pc_tensor *t = pc_from_memory(memory, PC_SHAPE(2, 3), PC_F32, note_release, &one);
    assert_not_null_ok(t);
    assert_ptr_equal(pc_data(t), memory);
    assert_int_equal(pc_tensor_device(t).type, PC_CPU);
    pc_tensor *row = pc_slice(t, 0, 1, 2, 1);
    pc_tensor_free(t);
    assert_int_equal(released, 0);
    assert_ok(pc_fill(row, 7));
    assert_true(memory[2] == 2 && memory[3] == 7 && memory[5] == 7);
    memory[4] = 8;
    double got[3];
    golden_read(row, got);
    assert_close(got[1], 8, 0);
    pc_tensor_free(row);
    assert_int_equal(released, 1);
    t = pc_from_memory(memory, PC_SHAPE(6), PC_F32, NULL, NULL);
    pc_tensor_free(t);
    assert_fails(pc_from_memory(NULL, PC_SHAPE(6), PC_F32, note_release, &one), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_from_memory(memory, PC_SHAPE(-6), PC_F32, note_release, &one), PC_ERR_SHAPE, "negative");
    assert_int_equal(released, 1); /* what fails leaves the memory with the caller */
    assert_no_leak();
}

static void questions(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(2, 3, 4), PC_F64, test_device());
        assert_int_equal(pc_tensor_ndim(t), 3);
        assert_int_equal(pc_tensor_size(t, 1), 3);
        assert_int_equal(pc_tensor_size(t, -1), 4);
        assert_int_equal(pc_tensor_size(t, 3), -1);
        assert_int_equal(pc_tensor_size(t, -4), -1);
        assert_int_equal(pc_tensor_stride(t, 3), -1);
        pc_shape shape = pc_tensor_shape(t);
        assert_true(shape.ndim == 3 && shape.dim[0] == 2 && shape.dim[2] == 4);
        assert_true(pc_device_equal(pc_tensor_device(t), test_device()));
        assert_string_equal(pc_dtype_name(PC_F64), "float64");
        assert_string_equal(pc_dtype_name((pc_dtype)77), "unknown");
        assert_int_equal(pc_dtype_size(PC_I64), 8);
        assert_int_equal(pc_dtype_size((pc_dtype)77), 0);
    }
    assert_int_equal(pc_tensor_dtype(NULL), PC_F32);
    assert_int_equal(pc_tensor_shape(NULL).ndim, 0);
    assert_int_equal(pc_tensor_ndim(NULL), 0);
    assert_int_equal(pc_tensor_size(NULL, 0), -1);
    assert_int_equal(pc_tensor_stride(NULL, 0), -1);
    assert_int_equal(pc_tensor_count(NULL), 0);
    assert_false(pc_tensor_is_contiguous(NULL));
    assert_int_equal(pc_shape_of(9, (int64_t[9]){0}).ndim, -1);
    assert_int_equal(PC_SHAPE(1, 2, 3).ndim, 3);
    assert_int_equal(PC_SHAPE_SCALAR.ndim, 0);
}

static void reading_back(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_reshape(pc_arange(0, 6, 1, PC_I32, test_device()), PC_SHAPE(2, 3));
        int32_t host[6];
        assert_ok(pc_read(pc_transpose(t, 0, 1), host, sizeof host));
        assert_memory_equal(host, ((int32_t[]){0, 3, 1, 4, 2, 5}), sizeof host);
        assert_ok(pc_read(pc_expand(pc_slice(t, 1, 2, 3, 1), PC_SHAPE(2, 3)), host, sizeof host));
        assert_memory_equal(host, ((int32_t[]){2, 2, 2, 5, 5, 5}), sizeof host);
        assert_fails(pc_read(t, host, 20), PC_ERR_ARGUMENT, "24 bytes, the buffer 20");
        assert_fails(pc_read(NULL, host, 24), PC_ERR_ARGUMENT, "NULL");
        assert_ok(pc_read(pc_slice(t, 0, 0, 0, 1), NULL, 0));
        assert_close(pc_item(pc_slice(pc_slice(t, 0, 1, 2, 1), 1, 1, 2, 1)), 4, 0);
        assert_fails(pc_item(t), PC_ERR_SHAPE, "[2, 3]");
        assert_fails(pc_item(NULL), PC_ERR_ARGUMENT, "NULL");
        assert_true(isnan(pc_item(NULL)));
        pc_error_clear();
        assert_fails(pc_data(NULL), PC_ERR_ARGUMENT, "NULL");
        const double want[PC_DTYPE_COUNT] = {1, 200, -3, 1e15, 65504, 0x1p-133, 0.5, 0.1};
        for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++)
            assert_close(pc_item(pc_scalar(want[dtype], (pc_dtype)dtype, test_device())), want[dtype], 0);
    }
    assert_no_leak();
}

static void ownership(void **state)
{
    (void)state;
    pc_tensor *kept = NULL, *shared = NULL;
    PC_SCOPE {
        PC_SCOPE {
            pc_tensor *a = pc_ones(PC_SHAPE(4), PC_F32, test_device());
            kept = pc_keep(pc_mul_scalar(a, 3));
            shared = pc_tensor_retain(a);
        }
        kept = pc_keep(kept); /* on to the caller */
    }
    float got[4];
    assert_ok(pc_read(kept, got, sizeof got));
    assert_true(got[0] == 3 && got[3] == 3);
    assert_null(pc_keep(NULL));
    assert_null(pc_tensor_retain(NULL));
    pc_tensor_free(NULL);
    pc_tensor_free(kept);
    pc_tensor_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants),
        cmocka_unit_test(ranges),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(from_host_memory),
        cmocka_unit_test(from_memory_in_place),
        cmocka_unit_test(questions),
        cmocka_unit_test(reading_back),
        cmocka_unit_test(ownership),
    };
    return run_with_golden("tensor.factory", NULL, 0, tests, GOLDEN_COUNT(tests));
}
