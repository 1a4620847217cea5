/* Tensors put together and taken apart by other ops. */
#include "ops/golden.h"

static void run_stack(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_stack(in, g->n_in, (int)g->args[0]);
}

enum { MOST = 8 };

/* The last piece. */
static void run_split(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *pieces[MOST];
    const int64_t size = (int64_t)g->args[0], n = pc_tensor_size(in[0], (int)g->args[1]);
    const int count = n > size ? (int)((n + size - 1) / size) : 1;
    assert_ok(pc_split_dim(in[0], (int)g->args[1], size, pieces, count));
    out[0] = pieces[count - 1];
}

static void run_chunk(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *pieces[MOST];
    const int count = (int)g->args[0];
    assert_ok(pc_chunk(in[0], (int)g->args[1], pieces, count));
    out[0] = pieces[count - 1];
}

static void run_masked_fill(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_masked_fill(in[0], in[1], g->args[0]);
}

static void run_outer(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_outer(in[0], in[1]);
}

static void run_addmm(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_addmm(in[0], in[1], in[2]);
}

static const golden_op ops[] = {{"stack", run_stack}, {"split_dim", run_split},
                                {"chunk", run_chunk}, {"masked_fill", run_masked_fill},
                                {"outer", run_outer}, {"addmm", run_addmm}};

static void refuses(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device()),
                  *row = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *zero = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device()), *pieces[3];
        pc_tensor *whole = pc_zeros(PC_SHAPE(3), PC_I32, test_device()),
                  *yes = pc_ones(PC_SHAPE(3), PC_BOOL, test_device());
        assert_fails(pc_stack((pc_tensor *[]){a, row}, 2, 0), PC_ERR_SHAPE, "stack: the shapes [2, 3] and [3]");
        assert_fails(pc_stack((pc_tensor *[]){a, a}, 2, 3), PC_ERR_RANGE, "dimension 3");
        assert_fails(pc_stack((pc_tensor *[]){a, NULL}, 2, 0), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_stack(NULL, 0, 0), PC_ERR_ARGUMENT, "at least one");
        assert_int_equal(pc_split_dim(a, 0, 0, pieces, 1), PC_ERR_ARGUMENT);
        pc_error_clear();
        assert_int_equal(pc_split_dim(a, 1, 2, pieces, 3), PC_ERR_ARGUMENT);
        assert_non_null(strstr(pc_error_last()->message, "3 entries by 2 are 2"));
        pc_error_clear();
        assert_int_equal(pc_chunk(row, 0, pieces, 4), PC_ERR_ARGUMENT);
        pc_error_clear();
        assert_int_equal(pc_chunk(a, 2, pieces, 1), PC_ERR_RANGE);
        pc_error_clear();
        assert_int_equal(pc_split_dim(zero, 0, 1, pieces, 1), PC_ERR_SHAPE);
        pc_error_clear();
        assert_int_equal(pc_chunk(NULL, 0, pieces, 1), PC_ERR_ARGUMENT);
        pc_error_clear();
        assert_fails(pc_masked_fill(a, row, 1), PC_ERR_DTYPE, "bool");
        assert_fails(pc_masked_fill(whole, yes, 1e20), PC_ERR_ARGUMENT, "1e+20");
        assert_fails(pc_masked_fill(a, pc_ones(PC_SHAPE(2), PC_BOOL, test_device()), 1), PC_ERR_SHAPE, "where");
        assert_fails(pc_outer(a, row), PC_ERR_SHAPE, "outer: the shapes [2, 3] and [3]");
        assert_fails(pc_addmm(row, row, a), PC_ERR_SHAPE, "addmm");
        assert_fails(pc_addmm(a, a, a), PC_ERR_SHAPE, "matmul");
        assert_fails(pc_outer(NULL, row), PC_ERR_ARGUMENT, "outer");
    }
    assert_no_leak();
}

/* Pieces are views: what is written through one is in the whole. Without a scope each is the caller's. */
static void pieces_are_views(void **state)
{
    (void)state;
    float got[7];
    pc_tensor *a = pc_zeros(PC_SHAPE(7), PC_F32, test_device()), *pieces[3];
    assert_ok(pc_split_dim(a, 0, 3, pieces, 3));
    for (int i = 0; i < 3; i++)
        assert_ok(pc_fill(pieces[i], i + 1));
    assert_ok(pc_read(a, got, sizeof got));
    assert_memory_equal(got, ((float[]){1, 1, 1, 2, 2, 2, 3}), sizeof got);
    for (int i = 0; i < 3; i++)
        pc_tensor_free(pieces[i]);
    pc_tensor_free(a);
    assert_no_leak();
}

/* A sum that float16 holds, of a product that it does not. */
static void products_are_not_rounded(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *c = pc_full(PC_SHAPE(4), -61440, PC_F16, test_device());
        pc_tensor *a = pc_full(PC_SHAPE(3, 5), 128, PC_F16, test_device());
        pc_tensor *b = pc_full(PC_SHAPE(5, 4), 128, PC_F16, test_device());
        pc_tensor *leaves[] = {c, a, b};
        for (int i = 0; i < 3; i++)
            assert_ok(pc_require_grad(leaves[i], true));
        pc_tensor *sum = pc_addmm(c, a, b);
        assert_int_equal(pc_tensor_dtype(sum), PC_F16);
        assert_close(pc_item(pc_min(sum)), 20480, 0);
        assert_int_equal(pc_tensor_dtype(pc_addmm(pc_cast(c, PC_F64), a, b)), PC_F64);
        assert_int_equal(pc_tensor_dtype(pc_addmm(pc_cast(c, PC_BF16), a, b)), PC_F32);
        assert_ok(pc_backward_with(sum, pc_ones(PC_SHAPE(3, 4), PC_F16, test_device())));
        assert_close(pc_item(pc_max(pc_grad(c))), 3, 0);
        assert_close(pc_item(pc_max(pc_grad(a))), 512, 0);
        assert_close(pc_item(pc_max(pc_grad(b))), 384, 0);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(pieces_are_views),
                                          cmocka_unit_test(products_are_not_rounded)};

int main(void)
{
    return golden_main("ops.arrange", ops, tests);
}
