/* Single elements by indices: gather, scatter_add, one_hot. */
#include "ops/golden.h"

#include <paracord/random.h>

static void run_gather(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_gather(in[0], (int)g->args[0], in[1]);
}

static void run_scatter_add(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_scatter_add(in[0], (int)g->args[0], in[1], in[2]);
}

static void run_one_hot(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_one_hot(in[0], (int64_t)g->args[0]);
}

static const golden_op ops[] = {{"gather", run_gather}, {"scatter_add", run_scatter_add}, {"one_hot", run_one_hot}};

static pc_tensor *zeros(pc_shape shape, pc_dtype dtype)
{
    return pc_zeros(shape, dtype, test_device());
}

static void refuses(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = zeros(PC_SHAPE(2, 3), PC_F32), *index = zeros(PC_SHAPE(2, 2), PC_I64);
        assert_fails(pc_gather(NULL, 0, index), PC_ERR_ARGUMENT, "a is NULL");
        assert_fails(pc_gather(a, 0, NULL), PC_ERR_ARGUMENT, "index is NULL");
        assert_fails(pc_gather(a, 2, index), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_gather(a, 0, a), PC_ERR_ARGUMENT, "gather: the index is float32");
        assert_fails(pc_gather(a, 0, zeros(PC_SHAPE(2), PC_I64)), PC_ERR_SHAPE, "gather: an index of shape [2]");
        assert_fails(pc_gather(a, 0, zeros(PC_SHAPE(2, 4), PC_I64)), PC_ERR_SHAPE, "[2, 4] along dimension 0");
        assert_fails(pc_scatter_add(a, 0, index, pc_cast(a, PC_F64)), PC_ERR_DTYPE, "float64 source into a float32");
        assert_fails(pc_scatter_add(a, 0, index, zeros(PC_SHAPE(1, 3), PC_F32)), PC_ERR_SHAPE, "[1, 3]");
        assert_fails(pc_scatter_add(a, 1, zeros(PC_SHAPE(3, 3), PC_I64), a), PC_ERR_SHAPE, "[3, 3]");
        assert_fails(pc_scatter_add(a, 1, a, a), PC_ERR_ARGUMENT, "scatter_add: the index is float32");
        assert_fails(pc_scatter_add(a, 1, index, NULL), PC_ERR_ARGUMENT, "source is NULL");
        assert_fails(pc_one_hot(index, 0), PC_ERR_ARGUMENT, "at least one class");
        assert_fails(pc_one_hot(a, 2), PC_ERR_ARGUMENT, "one_hot: the index is float32");
        assert_fails(pc_one_hot(zeros(PC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), PC_I64), 2), PC_ERR_SHAPE, "one more");
    }
    assert_no_leak();
}

static void out_of_range(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = zeros(PC_SHAPE(2, 3), PC_F32), *far = pc_full(PC_SHAPE(2, 1), 3, PC_I64, test_device());
        pc_tensor *many = pc_full(PC_SHAPE(2, 99), -2, PC_I64, test_device());
        assert_fails_on_device(pc_gather(a, 1, far), PC_ERR_RANGE, "gather: entry ");
        assert_fails_on_device(pc_gather(a, 1, many), PC_ERR_RANGE, "of the index is -2; it must be 0 to 2");
        assert_fails_on_device(pc_gather(pc_transpose(a, 0, 1), 0, pc_transpose(far, 0, 1)), PC_ERR_RANGE, "is 3;");
        assert_fails_on_device(pc_scatter_add(a, 1, far, zeros(PC_SHAPE(2, 1), PC_F32)), PC_ERR_RANGE,
                               "of the index is 3; it must be 0 to 2");
        assert_fails_on_device(pc_scatter_add(a, 1, many, zeros(PC_SHAPE(2, 99), PC_F32)), PC_ERR_RANGE, "scatter_add");
        assert_fails_on_device(pc_one_hot(far, 3), PC_ERR_RANGE, "of the index is 3; it must be 0 to 2");
        assert_fails_on_device(pc_one_hot(many, 3), PC_ERR_RANGE, "one_hot: entry ");
    }
    assert_no_leak();
}

/* Sums of whole numbers, which any order gives, for lists of many lengths, against what one_hot makes of them. */
static void sums_of_many(void **state)
{
    (void)state;
    static const struct {
        int64_t lists, places, count;
    } sizes[] = {{1, 1, 1000}, {1, 700, 300}, {1, 700, 200}, {3, 40, 64},    {3, 40, 65},   {70, 2, 130},
                 {2, 600, 1},  {5, 3, 300},   {2, 9, 9000},  {1, 300, 9000}, {300, 17, 11}, {129, 1, 3},
                 {128, 64, 8}, {257, 40, 40}, {2, 94, 1},    {2, 95, 1}};
    pc_seed(5);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int dim = 0; dim < 2; dim++)
            PC_SCOPE {
                const int64_t lists = sizes[s].lists, n = sizes[s].places, count = sizes[s].count;
                pc_tensor *places =
                    pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(lists, count), PC_F64, test_device()), (double)n), PC_I64);
                pc_tensor *values = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(lists, count), PC_F32, test_device()), 9));
                pc_tensor *hot = pc_cast(pc_one_hot(places, n), PC_F32);
                pc_tensor *want = pc_sum_dims(pc_mul(hot, pc_unsqueeze(values, 2)), PC_SHAPE(1), false), *got;
                if (dim == 1)
                    got = pc_scatter_add(zeros(PC_SHAPE(lists, n), PC_F32), 1, places, values);
                else
                    got = pc_transpose(pc_scatter_add(zeros(PC_SHAPE(n, lists), PC_F32), 0, pc_transpose(places, 0, 1),
                                                      pc_transpose(values, 0, 1)),
                                       0, 1);
                assert_true(pc_item(pc_max(pc_abs(pc_sub(got, want)))) == 0);
            }
    assert_no_leak();
}

/* Views are picked from where they lie: the same as from copies of them. */
static void picks_from_views(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_I64, PC_U8};
    for (int k = 0; k < 4; k++)
        PC_SCOPE {
            pc_seed(6);
            pc_tensor *x = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(6, 5, 8, 4), PC_F32, test_device()), 100), dtypes[k]);
            pc_tensor *views[] = {pc_permute(x, PC_SHAPE(2, 0, 3, 1)),
                                  pc_slice(x, 2, 1, 8, 3),
                                  pc_slice(pc_permute(x, PC_SHAPE(0, 2, 1, 3)), 0, 1, 6, 2),
                                  pc_expand(pc_slice(x, 3, 2, 3, 1), PC_SHAPE(6, 5, 8, 4)),
                                  pc_expand(pc_slice(x, 1, 2, 3, 1), PC_SHAPE(6, 5, 8, 4)),
                                  pc_transpose(x, 1, 3)};
            for (int v = 0; v < 6; v++)
                for (int dim = 0; dim < 4; dim++) {
                    pc_shape shape = pc_tensor_shape(views[v]);
                    const double n = (double)shape.dim[dim];
                    shape.dim[dim] = 3;
                    pc_tensor *index = pc_cast(pc_mul_scalar(pc_rand(shape, PC_F32, test_device()), n * 0.999), PC_I64);
                    pc_tensor *picked = pc_gather(views[v], dim, index);
                    assert_not_null_ok(picked);
                    assert_close(pc_item(pc_sum(pc_ne(picked, pc_gather(pc_contiguous(views[v]), dim, index)))), 0, 0);
                }
        }
    assert_no_leak();
}

/* Of a large view a copy is read where most of it is, and the view where little is. */
static void picks_much_or_little(void **state)
{
    (void)state;
    for (int much = 0; much < 2; much++)
        PC_SCOPE {
            pc_tensor *x = pc_reshape(pc_arange(0, 90000, 1, PC_F32, test_device()), PC_SHAPE(300, 300));
            const pc_shape shape = PC_SHAPE(much ? 300 : 7, 300);
            pc_tensor *index = pc_cast(pc_mul_scalar(pc_rand(shape, PC_F32, test_device()), 299), PC_I64);
            pc_tensor *columns = pc_reshape(pc_arange(0, 300, 1, PC_I64, test_device()), PC_SHAPE(1, 300));
            pc_tensor *want = pc_add(index, pc_mul_scalar(columns, 300));
            pc_tensor *picked = pc_gather(pc_transpose(x, 0, 1), 0, index);
            assert_not_null_ok(picked);
            assert_close(pc_item(pc_sum(pc_ne(pc_cast(picked, PC_I64), want))), 0, 0);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(refuses),          cmocka_unit_test(out_of_range),         cmocka_unit_test(sums_of_many),
    cmocka_unit_test(picks_from_views), cmocka_unit_test(picks_much_or_little),
};

int main(void)
{
    return golden_main("ops.scatter", ops, tests);
}
