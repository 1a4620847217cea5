/* Rows by an index: embedding, index_add, index_copy, index_put. */
#include "ops/golden.h"

#include <paracord/autograd.h>
#include <paracord/random.h>

static void run_embedding(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const pc_fn_embedding_options options = {.padded = g->args[0] != 0, .padding_idx = (int64_t)g->args[1]};
    out[0] = pc_fn_embedding(in[0], in[1], options);
}

static void run_index_add(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_index_add(in[0], (int)g->args[0], in[1], in[2]);
}

static void run_index_copy(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_index_copy(in[0], (int)g->args[0], in[1], in[2]);
}

static void run_index_put(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_index_put(in[0], in[1], in[2], g->args[0] != 0);
}

static const golden_op ops[] = {{"embedding", run_embedding},
                                {"index_add", run_index_add},
                                {"index_copy", run_index_copy},
                                {"index_put", run_index_put}};

static pc_tensor *zeros(pc_shape shape, pc_dtype dtype)
{
    return pc_zeros(shape, dtype, test_device());
}

static void refuses(void **state)
{
    (void)state;
    const pc_fn_embedding_options plain = {0};
    PC_SCOPE {
        pc_tensor *table = zeros(PC_SHAPE(4, 3), PC_F32), *row = zeros(PC_SHAPE(1, 3), PC_F32);
        pc_tensor *first = zeros(PC_SHAPE(1), PC_I64), *deep = zeros(PC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), PC_I64);
        assert_fails(pc_fn_embedding(NULL, first, plain), PC_ERR_ARGUMENT, "weight is NULL");
        assert_fails(pc_fn_embedding(table, NULL, plain), PC_ERR_ARGUMENT, "indices is NULL");
        assert_fails(pc_fn_embedding(zeros(PC_SHAPE(4), PC_F32), first, plain), PC_ERR_SHAPE, "[rows, columns]");
        assert_fails(pc_fn_embedding(table, table, plain), PC_ERR_ARGUMENT, "embedding: the index is float32");
        assert_fails(pc_fn_embedding(table, deep, plain), PC_ERR_SHAPE, "one more");
        for (int64_t i = -5; i <= 4; i += 9)
            assert_fails(pc_fn_embedding(table, first, (pc_fn_embedding_options){.padded = true, .padding_idx = i}),
                         PC_ERR_RANGE, "it must be -4 to 3");
        assert_fails(pc_index_add(table, 2, first, row), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_index_add(table, 0, first, pc_cast(row, PC_F64)), PC_ERR_DTYPE, "float64 rows into a float32");
        assert_fails(pc_index_add(table, 1, first, row), PC_ERR_SHAPE, "by 1 indices along dimension 1");
        assert_fails(pc_index_add(table, 0, deep, row), PC_ERR_ARGUMENT, "one dimension");
        assert_fails(pc_index_copy(table, 0, row, row), PC_ERR_ARGUMENT, "index_copy: the index is float32");
        assert_fails(pc_index_copy(table, 0, first, NULL), PC_ERR_ARGUMENT, "source is NULL");
        assert_fails(pc_index_put(table, first, zeros(PC_SHAPE(2, 3), PC_F32), false), PC_ERR_SHAPE, "expand");
        assert_fails(pc_index_put(zeros(PC_SHAPE_SCALAR, PC_F32), first, row, false), PC_ERR_SHAPE, "no rows");
        assert_fails(pc_index_put(table, deep, row, false), PC_ERR_SHAPE, "no rows");
        assert_fails(pc_index_put(table, row, row, true), PC_ERR_ARGUMENT, "index_put: the index is float32");
    }
    assert_no_leak();
}

static void out_of_range(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *table = zeros(PC_SHAPE(4, 3), PC_F32), *rows = zeros(PC_SHAPE(3, 3), PC_F32);
        pc_tensor *far = pc_arange(2, 5, 1, PC_I64, test_device()), *below = pc_sub_scalar(far, 3);
        pc_tensor *nobody = zeros(PC_SHAPE(0, 3), PC_F32);
        const pc_fn_embedding_options plain = {0};
        assert_fails_on_device(pc_fn_embedding(table, far, plain), PC_ERR_RANGE,
                               "embedding: entry 2 of the index is 4; it must be 0 to 3");
        assert_fails_on_device(pc_fn_embedding(table, below, plain), PC_ERR_RANGE, "entry 0 of the index is -1");
        assert_fails_on_device(pc_index_add(table, 0, far, rows), PC_ERR_RANGE,
                               "index_add: entry 2 of the index is 4; it must be 0 to 3");
        assert_fails_on_device(pc_index_copy(table, 0, below, rows), PC_ERR_RANGE,
                               "index_copy: entry 0 of the index is -1");
        assert_fails_on_device(pc_index_put(table, pc_sub_scalar(far, 7), rows, true), PC_ERR_RANGE,
                               "entry 0 of the index is -5; it must be 0 to 3");
        assert_fails_on_device(pc_index_add(nobody, 0, far, rows), PC_ERR_RANGE, "it must be 0 to -1");
    }
    assert_no_leak();
}

/* Of several rows for one place the last one is there, wherever they are. */
static void last_one_stays(void **state)
{
    (void)state;
    enum { ROWS = 3, COUNT = 700 };
    float got[ROWS];
    PC_SCOPE {
        pc_tensor *places = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(COUNT), PC_F32, test_device()), ROWS), PC_I64);
        pc_tensor *values = pc_arange(0, COUNT, 1, PC_F32, test_device());
        int64_t at[COUNT];
        assert_ok(pc_read(places, at, sizeof at));
        assert_ok(pc_read(pc_index_copy(zeros(PC_SHAPE(ROWS), PC_F32), 0, places, values), got, sizeof got));
        for (int row = 0; row < ROWS; row++) {
            int last = -1;
            for (int i = 0; i < COUNT; i++)
                last = at[i] == row ? i : last;
            assert_int_equal((int)got[row], last);
        }
    }
    assert_no_leak();
}

/* Sums of whole numbers, which any order gives, of tables and rows of many sizes, some of whose rows are frequent. */
static void sums_of_many(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, columns, count;
    } sizes[] = {{1, 1, 1000},   {700, 1, 300}, {1030, 4, 64}, {37, 65, 500},
                 {130, 260, 90}, {5, 8, 2000},  {600, 3, 1},   {5000, 3, 70}};
    pc_seed(5);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        PC_SCOPE {
            const int64_t rows = sizes[s].rows, columns = sizes[s].columns, count = sizes[s].count;
            /* squares of fractions: the first rows are the frequent ones */
            pc_tensor *places = pc_cast(
                pc_mul_scalar(pc_square(pc_rand(PC_SHAPE(count), PC_F64, test_device())), (double)rows), PC_I64);
            pc_tensor *values = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(count, columns), PC_F32, test_device()), 9));
            pc_tensor *table = zeros(PC_SHAPE(rows, columns), PC_F32);
            assert_ok(pc_require_grad(table, true));
            assert_ok(pc_backward_with(pc_fn_embedding(table, places, (pc_fn_embedding_options){0}), values));
            pc_tensor *hot = pc_cast(pc_one_hot(places, rows), PC_F32);
            pc_tensor *want = pc_matmul(pc_transpose(hot, 0, 1), values);
            assert_true(pc_item(pc_max(pc_abs(pc_sub(pc_grad(table), want)))) == 0);
        }
    assert_no_leak();
}

/* The same along the last dimension, and along one with few elements behind it. */
static void sums_of_columns(void **state)
{
    (void)state;
    enum { ROWS = 30, PLACES = 50, COUNT = 200 };
    pc_seed(6);
    for (int inner = 1; inner <= 3; inner += 2)
        PC_SCOPE {
            pc_tensor *places = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(COUNT), PC_F64, test_device()), PLACES), PC_I64);
            pc_tensor *values =
                pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(ROWS, COUNT, inner), PC_F32, test_device()), 9));
            pc_tensor *to = pc_ones(PC_SHAPE(ROWS, PLACES, inner), PC_F32, test_device());
            pc_tensor *hot = pc_cast(pc_one_hot(places, PLACES), PC_F32);
            pc_tensor *want = pc_add(to, pc_matmul(pc_transpose(hot, 0, 1), values));
            assert_true(pc_item(pc_max(pc_abs(pc_sub(pc_index_add(to, 1, places, values), want)))) == 0);
        }
    assert_no_leak();
}

static pc_tensor *there(pc_tensor *t, pc_device device)
{
    return pc_to(t, device, pc_tensor_dtype(t), false);
}

/* The CPU's sums of whole numbers: long lists of few places and of many, one of them with most entries, one left out; and short
 * ones, which leave most places as they are. */
static void long_lists(void **state)
{
    (void)state;
    static const struct {
        int64_t outer, rows, columns, count;
    } sizes[] = {{1, 5, 8, 20000},  {2, 5, 70, 6500},   {1, 400, 2, 30000},   {1, 70000, 1, 40000}, {3, 300, 3, 7000},
                 {1, 60000, 8, 40}, {1, 300, 7, 250},   {3, 2100, 8, 200},    {7, 40, 3, 60},       {400, 3, 1, 20},
                 {1, 255, 8, 5001}, {1, 256, 68, 2500}, {1, 1000, 1, 140000}, {2, 9, 9, 3000}};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_I64, PC_U8};
    const pc_device cpu = {PC_CPU, 0};
    pc_seed(7);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            PC_SCOPE {
                const int64_t outer = sizes[s].outer, rows = sizes[s].rows, columns = sizes[s].columns;
                pc_tensor *draws = pc_pow_scalar(pc_rand(PC_SHAPE(sizes[s].count), PC_F64, cpu), s % 2 ? 1 : 6);
                pc_tensor *places = pc_cast(pc_mul_scalar(draws, (double)rows), PC_I64);
                pc_tensor *values = pc_rand(PC_SHAPE(outer, sizes[s].count, columns), PC_F32, cpu);
                values = pc_cast(pc_floor(pc_mul_scalar(values, 9)), dtypes[d]);
                pc_tensor *to = pc_mul_scalar(pc_rand(PC_SHAPE(outer, rows, columns), PC_F32, cpu), 9);
                to = pc_cast(pc_floor(to), dtypes[d]);
                pc_tensor *want = pc_index_add(to, 1, places, values), *got;
                got = pc_index_add(there(to, test_device()), 1, there(places, test_device()),
                                   there(values, test_device()));
                assert_not_null_ok(got);
                assert_true(pc_item(pc_min(pc_eq(there(got, cpu), want))) == 1);
                if (d > 0 || outer > 1)
                    continue;
                pc_tensor *grads[2], *change = pc_reshape(values, PC_SHAPE(-1, columns));
                for (int i = 0; i < 2; i++) {
                    const pc_device device = i ? test_device() : cpu;
                    pc_tensor *table = pc_zeros(PC_SHAPE(rows, columns), PC_F32, device);
                    assert_ok(pc_require_grad(table, true));
                    pc_tensor *picked = pc_fn_embedding(table, there(places, device),
                                                        (pc_fn_embedding_options){.padded = true, .padding_idx = 2});
                    assert_ok(pc_backward_with(picked, there(change, device)));
                    grads[i] = there(pc_grad(table), cpu);
                }
                assert_true(pc_item(pc_min(pc_eq(grads[0], grads[1]))) == 1);
            }
    assert_no_leak();
}

/* An index out of range at the end of a long list. */
static void far_out_of_range(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *places = pc_arange(0, 20000, 1, PC_I64, test_device());
        pc_tensor *table = zeros(PC_SHAPE(19999, 1), PC_F32), *rows = zeros(PC_SHAPE(20000, 1), PC_F32);
        assert_fails_on_device(pc_index_add(table, 0, places, rows), PC_ERR_RANGE,
                               "index_add: entry 19999 of the index is 19999; it must be 0 to 19998");
        places = pc_cast(pc_floor(pc_div_scalar(pc_arange(0, 20000, 1, PC_F64, test_device()), 2000)), PC_I64);
        assert_fails_on_device(pc_index_add(zeros(PC_SHAPE(9, 1), PC_F32), 0, places, rows), PC_ERR_RANGE,
                               "of the index is 9; it must be 0 to 8");
    }
    assert_no_leak();
}

/* The same bits twice, of numbers whose sums depend on the order. */
static void same_bits(void **state)
{
    (void)state;
    enum { ROWS = 40, COLUMNS = 24, COUNT = 3000 };
    static float once[ROWS * COLUMNS], twice[ROWS * COLUMNS];
    PC_SCOPE {
        pc_tensor *places = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(COUNT), PC_F32, test_device()), ROWS), PC_I32);
        pc_tensor *values = pc_randn(PC_SHAPE(COUNT, COLUMNS), PC_F32, test_device());
        pc_tensor *to = pc_randn(PC_SHAPE(ROWS, COLUMNS), PC_F32, test_device());
        assert_ok(pc_read(pc_index_add(to, 0, places, values), once, sizeof once));
        assert_ok(pc_read(pc_index_add(to, 0, places, values), twice, sizeof twice));
        assert_memory_equal(once, twice, sizeof once);
    }
    assert_no_leak();
}

/* Few entries are added in the order of the index to what is there. */
static void in_order(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 3, COUNT = 200 };
    int64_t at[COUNT];
    float sums[ROWS * COLUMNS], values[COUNT * COLUMNS], got[ROWS * COLUMNS];
    PC_SCOPE {
        pc_tensor *places = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(COUNT), PC_F32, test_device()), ROWS), PC_I64);
        pc_tensor *rows = pc_randn(PC_SHAPE(COUNT, COLUMNS), PC_F32, test_device());
        pc_tensor *to = pc_randn(PC_SHAPE(ROWS, COLUMNS), PC_F32, test_device());
        assert_ok(pc_read(places, at, sizeof at));
        assert_ok(pc_read(rows, values, sizeof values));
        assert_ok(pc_read(to, sums, sizeof sums));
        for (int i = 0; i < COUNT * COLUMNS; i++)
            sums[at[i / COLUMNS] * COLUMNS + i % COLUMNS] += values[i];
        assert_ok(pc_read(pc_index_add(to, 0, places, rows), got, sizeof got));
        assert_memory_equal(sums, got, sizeof got);
    }
    assert_no_leak();
}

/* Rows of views, along each dimension: the same as of copies of them. */
static void picks_from_views(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(0, 960, 1, PC_F32, test_device()), PC_SHAPE(6, 5, 8, 4));
        pc_tensor *large = pc_reshape(pc_arange(0, 90000, 1, PC_F32, test_device()), PC_SHAPE(300, 300));
        pc_tensor *views[] = {pc_permute(x, PC_SHAPE(2, 0, 3, 1)), pc_slice(x, 2, 1, 8, 3),
                              pc_expand(pc_slice(x, 1, 2, 3, 1), PC_SHAPE(6, 5, 8, 4)), pc_transpose(x, 1, 3),
                              pc_transpose(large, 0, 1)};
        for (int v = 0; v < 5; v++)
            for (int dim = 0; dim < pc_tensor_ndim(views[v]); dim++) {
                const double n = (double)pc_tensor_shape(views[v]).dim[dim];
                pc_tensor *index = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(3), PC_F32, test_device()), n), PC_I64);
                pc_tensor *want = pc_index_select(pc_contiguous(views[v]), dim, index);
                pc_tensor *picked = pc_index_select(views[v], dim, index);
                assert_not_null_ok(picked);
                assert_close(pc_item(pc_sum(pc_ne(picked, want))), 0, 0);
                if (v < 4)
                    continue;
                const pc_fn_embedding_options options = {0};
                assert_close(pc_item(pc_sum(pc_ne(pc_fn_embedding(views[v], index, options),
                                                  pc_fn_embedding(pc_contiguous(views[v]), index, options)))),
                             0, 0);
            }
        pc_tensor *far = pc_full(PC_SHAPE(2), 8, PC_I64, test_device());
        assert_fails_on_device(pc_index_select(views[0], 0, far), PC_ERR_RANGE, "of the index is 8; it must be 0 to 7");
    }
    assert_no_leak();
}

/* So many rows of a few numbers that a GPU writes what lies side by side together, and what is left by an index out of range. */
static void many_short_rows(void **state)
{
    enum { COUNT = 20011, TABLE = 37 };
    static const struct {
        pc_dtype dtype;
        int width;
    } kinds[] = {{PC_F32, 9}, {PC_F32, 1}, {PC_BF16, 7}, {PC_F16, 2}, {PC_F64, 5}, {PC_BOOL, 13}};
    (void)state;
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        PC_SCOPE {
            const int width = kinds[k].width;
            pc_tensor *all = pc_arange(0, (double)TABLE * width, 1, PC_I32, test_device());
            pc_tensor *table = pc_cast(pc_reshape(all, PC_SHAPE(TABLE, width)), kinds[k].dtype);
            pc_tensor *draws = pc_mul_scalar(pc_rand(PC_SHAPE(COUNT), PC_F32, test_device()), TABLE);
            pc_tensor *index = pc_cast(draws, PC_I64), *column = pc_arange(0, width, 1, PC_I64, test_device());
            pc_tensor *want = pc_add(pc_mul_scalar(pc_reshape(index, PC_SHAPE(COUNT, 1)), width), column);
            pc_tensor *picked = pc_index_select(table, 0, index);
            assert_not_null_ok(picked);
            assert_close(pc_item(pc_sum(pc_ne(picked, pc_cast(want, kinds[k].dtype)))), 0, 0);
            assert_ok(pc_copy(pc_slice(index, 0, 7001, 7002, 1), pc_full(PC_SHAPE(1), TABLE, PC_I64, test_device())));
            assert_fails_on_device(pc_index_select(table, 0, index), PC_ERR_RANGE, "entry 7001 of the index is 37;");
        }
    assert_no_leak();
}

/* The most that was asked for at once. */
static size_t most_at_once;

static void *watched_alloc(void *context, size_t bytes, size_t alignment)
{
    void *block;
    (void)context;
    most_at_once = bytes > most_at_once ? bytes : most_at_once;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *watched_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return realloc(block, bytes);
}

static void watched_free(void *context, void *block)
{
    (void)context;
    free(block);
}

/* What a few entries take has not the size of all places. */
static void few_of_many_places(void **state)
{
    (void)state;
    only_on_the_cpu();
    enum { PLACES = 1 << 20, OUTER = 2 };
    const int64_t at[] = {PLACES - 1, 70000, 0, 70000, PLACES - 1, 65536};
    const uint8_t values[] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    assert_no_leak();
    assert_ok(pc_allocator_set(&(pc_allocator){watched_alloc, watched_resize, watched_free, NULL}));
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(OUTER, PLACES), PC_U8, test_device());
        pc_tensor *index = pc_from_data(at, PC_SHAPE(6), PC_I64, test_device());
        pc_tensor *rows = pc_from_data(values, PC_SHAPE(OUTER, 6), PC_U8, test_device());
        most_at_once = 0;
        pc_tensor *sums = pc_index_add(x, 1, index, rows), *last = pc_index_copy(x, 1, index, rows);
        assert_not_null_ok(sums);
        assert_not_null_ok(last);
        assert_true(most_at_once < 2 * OUTER * PLACES);
        const uint8_t *got = pc_data(sums), *put = pc_data(last);
        for (int64_t i = 0; i < OUTER * PLACES; i++) {
            const int64_t place = i % PLACES;
            const int more = place == 0 ? 3 : place == 65536 ? 6 : place == 70000 || place == PLACES - 1 ? 6 : 0;
            const int newest = place == 0 ? 3 : place == 65536 ? 6 : place == 70000 ? 4 : place == PLACES - 1 ? 5 : 0;
            const int times = i < PLACES ? 1 : 10;
            if (got[i] != 1 + more * times || put[i] != (newest ? newest * times : 1))
                fail_msg("place %lld: %d and %d", (long long)i, got[i], put[i]);
        }
    }
    assert_no_leak();
    assert_ok(pc_allocator_set(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(refuses),      cmocka_unit_test(out_of_range),     cmocka_unit_test(last_one_stays),
    cmocka_unit_test(sums_of_many), cmocka_unit_test(sums_of_columns),  cmocka_unit_test(same_bits),
    cmocka_unit_test(long_lists),   cmocka_unit_test(far_out_of_range), cmocka_unit_test(picks_from_views),
    cmocka_unit_test(in_order),     cmocka_unit_test(many_short_rows),  cmocka_unit_test(few_of_many_places)};

int main(void)
{
    return golden_main("ops.index", ops, tests);
}
