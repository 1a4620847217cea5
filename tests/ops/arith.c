/* add, sub, mul, div, with tensors and with numbers. */
#include "ops/golden.h"

#define BINARY(name)                                                                                                   \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0], in[1]);                                                                              \
    }                                                                                                                  \
    static void run_##name##_scalar(const golden *g, pc_tensor **in, pc_tensor **out)                                  \
    {                                                                                                                  \
        out[0] = pc_##name##_scalar(in[0], g->args[0]);                                                                \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)

static const golden_op ops[] = {
    {"add", run_add},
    {"sub", run_sub},
    {"mul", run_mul},
    {"div", run_div},
    {"add_scalar", run_add_scalar},
    {"sub_scalar", run_sub_scalar},
    {"mul_scalar", run_mul_scalar},
    {"div_scalar", run_div_scalar},
};

static void shapes_that_do_not_broadcast_are_named(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        assert_fails(pc_add(a, b), PC_ERR_SHAPE, "[2, 3] and [4]");
        assert_fails(pc_sub(a, b), PC_ERR_SHAPE, "sub");
        assert_fails(pc_mul(b, a), PC_ERR_SHAPE, "[4] and [2, 3]");
        assert_fails(pc_div(a, b), PC_ERR_SHAPE, "div");
        pc_tensor *one = pc_ones(PC_SHAPE(1), PC_F32, test_device()),
                  *wide = pc_expand(one, PC_SHAPE(1, (int64_t)1 << 40));
        assert_fails(pc_add(wide, pc_transpose(wide, 0, 1)), PC_ERR_MEMORY, "add");
    }
    assert_no_leak();
}

static void bools_cannot_be_subtracted(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(2), PC_BOOL, test_device());
        assert_fails(pc_sub(a, a), PC_ERR_DTYPE, "bool");
    }
}

static void null_flows_and_the_first_error_stays(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_mul_scalar(pc_sub(pc_div(pc_add(a, b), a), b), 2), PC_ERR_SHAPE, "add: the shapes [2] and [3]");
        assert_fails(pc_add(NULL, a), PC_ERR_ARGUMENT, "pc_add: a is NULL");
        assert_fails(pc_div(a, NULL), PC_ERR_ARGUMENT, "pc_div: b is NULL");
        assert_fails(pc_sub_scalar(NULL, 1), PC_ERR_ARGUMENT, "NULL");
    }
}

/* Enough elements for several threads, in every layout of a run: dense, one repeated value, strided. */
static void large_tensors(void **state)
{
    (void)state;
    enum { ROWS = 1200, COLUMNS = 900 };
    PC_SCOPE {
        pc_tensor *a = pc_randn(PC_SHAPE(ROWS, COLUMNS), PC_F32, test_device());
        pc_tensor *b = pc_randn(PC_SHAPE(COLUMNS, ROWS), PC_F32, test_device());
        pc_tensor *row = pc_randn(PC_SHAPE(COLUMNS), PC_F32, test_device());
        pc_tensor *y = pc_add_scalar(pc_mul(pc_add(a, pc_transpose(b, 0, 1)), row), 0.5);
        size_t n = (size_t)ROWS * COLUMNS;
        float *ha = malloc(n * sizeof *ha), *hb = malloc(n * sizeof *hb), *hy = malloc(n * sizeof *hy), hr[COLUMNS];
        assert_ok(pc_read(a, ha, n * sizeof *ha));
        assert_ok(pc_read(b, hb, n * sizeof *hb));
        assert_ok(pc_read(y, hy, n * sizeof *hy));
        assert_ok(pc_read(row, hr, sizeof hr));
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLUMNS; j++)
                assert_close(hy[i * COLUMNS + j], (ha[i * COLUMNS + j] + hb[j * ROWS + i]) * hr[j] + 0.5f, 1e-5);
        free(ha);
        free(hb);
        free(hy);
    }
    assert_no_leak();
}

/* A number that integers cannot hold makes the result float32. */
static void numbers_beyond_integers(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 3, 1, PC_I32, test_device());
        pc_tensor *y = pc_add_scalar(a, INFINITY);
        assert_int_equal(pc_tensor_dtype(y), PC_F32);
        assert_true(isinf(pc_item(pc_slice(y, 0, 1, 2, 1))));
        assert_true(isnan(pc_item(pc_slice(pc_mul_scalar(a, NAN), 0, 0, 1, 1))));
        assert_close(pc_item(pc_slice(pc_mul_scalar(a, 1e30), 0, 2, 3, 1)), 2e30, 1e24);
    }
}

/* Operands of different memory orders, as a matrix and the transpose of another, large and small, with sides that are no
 * multiples of a tile's: which one is turned, and what stands beside it, a row for all or of another batch. */
static void turned(int batches, int height, int width, int way)
{
    enum { MOST = 2 * 517 * 1031 };
    static float a[MOST], b[MOST], got[MOST];
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_I32};
    const int n = batches * height * width;
    for (int i = 0; i < n; i++) {
        a[i] = (float)(i % 4099 * 7919 % 97);
        b[i] = (float)(i % 31 + 1);
    }
    PC_SCOPE {
        const pc_dtype dtype = dtypes[way / 3];
        const bool row = way % 3 == 2, first = way % 3 == 1;
        pc_tensor *x = pc_cast(pc_from_data(a, PC_SHAPE(batches, height, width), PC_F32, test_device()), dtype);
        pc_tensor *y = pc_cast(pc_from_data(b, PC_SHAPE(batches, width, height), PC_F32, test_device()), dtype);
        pc_tensor *other = pc_transpose(y, 1, 2),
                  *out = pc_empty(PC_SHAPE(batches, height, width), dtype, test_device());
        if (row)
            x = pc_slice(pc_slice(x, 0, 0, 1, 1), 1, 0, 1, 1);
        assert_ok(pc_copy(out, first ? pc_sub(other, x) : pc_sub(x, other)));
        assert_ok(pc_read(pc_cast(out, PC_F32), got, (size_t)n * sizeof *got));
        for (int i = 0; i < n; i++) {
            const int batch = i / (height * width), h = i / width % height, w = i % width;
            const float beside = b[(batch * width + w) * height + h], own = a[row ? w : i];
            const float wanted = first ? beside - own : own - beside;
            if (got[i] != wanted)
                fail_msg("%d x %d, way %d: element %d is %g, not %g", height, width, way, i, (double)got[i],
                         (double)wanted);
        }
    }
}

static void operands_turned(void **state)
{
    (void)state;
    static const int sizes[][3] = {{2, 517, 1031}, {3, 35, 50}, {1, 16, 33}, {2, 64, 32}, {5, 17, 16}};
    for (int k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++)
        for (int way = 0; way < 9; way++)
            turned(sizes[k][0], sizes[k][1], sizes[k][2], way);
    assert_no_leak();
}

/* As many elements as come by packs, and some behind the last one; and few, which come one by one. */
static void packs_and_what_is_left(void **state)
{
    (void)state;
    enum { MANY = 8192 + 29 };
    static const pc_dtype dtypes[] = {PC_F64, PC_F32, PC_BF16, PC_U8, PC_I64};
    static float a[MANY], b[MANY], got[MANY];
    for (int i = 0; i < MANY; i++)
        a[i] = (float)(i % 7), b[i] = (float)(i % 11);
    for (int k = 0; k < (int)(sizeof dtypes / sizeof *dtypes); k++)
        for (int count = MANY; count > 0; count -= MANY - 31)
            PC_SCOPE {
                pc_tensor *x = pc_cast(pc_from_data(a, PC_SHAPE(count), PC_F32, test_device()), dtypes[k]);
                pc_tensor *y = pc_cast(pc_from_data(b, PC_SHAPE(count), PC_F32, test_device()), dtypes[k]);
                assert_ok(pc_read(pc_cast(pc_add(x, y), PC_F32), got, (size_t)count * sizeof *got));
                for (int i = 0; i < count; i++)
                    assert_close((double)got[i], i % 7 + i % 11, 0);
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(packs_and_what_is_left),
    cmocka_unit_test(operands_turned),
    cmocka_unit_test(shapes_that_do_not_broadcast_are_named),
    cmocka_unit_test(bools_cannot_be_subtracted),
    cmocka_unit_test(null_flows_and_the_first_error_stays),
    cmocka_unit_test(large_tensors),
    cmocka_unit_test(numbers_beyond_integers),
};

int main(void)
{
    return golden_main("ops.arith", ops, tests);
}
