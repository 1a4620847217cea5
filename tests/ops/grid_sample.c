/* Pictures read at places of one's own. */
#include "ops/golden.h"

#include <math.h>
#include <paracord/random.h>
#include <paracord/sample.h>
#include <paracord/threads.h>

#define GRID(...) ((pc_fn_grid_sample_options){__VA_ARGS__})

static void check_order(const golden *g, const pc_tensor *y)
{
    assert_not_null_ok(y);
    if (pc_tensor_size(y, 1) == 1 || pc_tensor_size(y, 2) * pc_tensor_size(y, 3) == 1)
        return;
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_int_equal(pc_tensor_stride(y, 1), 1);
    else
        assert_true(pc_tensor_is_contiguous(y));
}

static void run_grid_sample(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const pc_fn_grid_sample_options options = {
        .nearest = g->args[0] > 0, .padding = (pc_grid_padding)g->args[1], .align_corners = g->args[2] > 0};
    check_order(g, out[0] = pc_fn_grid_sample(in[0], in[1], options));
}

static const golden_op ops[] = {{"grid_sample", run_grid_sample}};

static void bad_grids(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(1, 2, 4, 3), PC_F32, test_device());
        pc_tensor *grid = pc_zeros(PC_SHAPE(1, 2, 2, 2), PC_F32, test_device());
        assert_fails(pc_fn_grid_sample(x, pc_reshape(grid, PC_SHAPE(2, 2, 2)), GRID(0)), PC_ERR_SHAPE,
                     "grid [2, 2, 2]");
        assert_fails(pc_fn_grid_sample(x, pc_reshape(grid, PC_SHAPE(2, 1, 2, 2)), GRID(0)), PC_ERR_SHAPE, "[n, h'");
        assert_fails(pc_fn_grid_sample(x, pc_reshape(grid, PC_SHAPE(1, 2, 1, 4)), GRID(0)), PC_ERR_SHAPE, "[n, h'");
        assert_fails(pc_fn_grid_sample(x, pc_cast(grid, PC_I64), GRID(0)), PC_ERR_DTYPE, "int64");
        pc_tensor *wide = pc_expand(pc_zeros(PC_SHAPE(1, 1, 1, 1), PC_F32, test_device()), PC_SHAPE(1, 1, 1, 16777217));
        assert_fails(pc_fn_grid_sample(wide, pc_slice(grid, 0, 0, 1, 1), GRID(0)), PC_ERR_SHAPE,
                     "float32 does not count");
        assert_fails(pc_fn_grid_sample(x, grid, GRID(.padding = (pc_grid_padding)3)), PC_ERR_ARGUMENT, "padding 3");
        assert_fails(pc_fn_grid_sample(NULL, grid, GRID(0)), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_fn_grid_sample(x, NULL, GRID(0)), PC_ERR_ARGUMENT, "NULL");
    }
    assert_no_leak();
}

/* What is beyond x is not read: no infinity comes from there. */
static void places_that_are_nowhere(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(1, 1, 2, 2), INFINITY, PC_F32, test_device());
        pc_tensor *grid = pc_full(PC_SHAPE(1, 1, 2, 2), NAN, PC_F32, test_device());
        assert_close(pc_item(pc_sum(pc_fn_grid_sample(x, grid, GRID(0)))), 0, 0);
        grid = pc_full(PC_SHAPE(1, 1, 2, 2), 9, PC_F32, test_device());
        assert_close(pc_item(pc_sum(pc_fn_grid_sample(x, grid, GRID(0)))), 0, 0);
        assert_true(
            isinf(pc_item(pc_sum(pc_fn_grid_sample(x, grid, GRID(.padding = PC_GRID_BORDER, .nearest = true))))));
        /* Nor does a gradient go there, where the place is no number. */
        x = pc_ones(PC_SHAPE(1, 1, 2, 2), PC_F32, test_device());
        grid = pc_full(PC_SHAPE(1, 1, 2, 2), 3e38, PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_backward(pc_sum(pc_fn_grid_sample(x, grid, GRID(0)))));
        assert_close(pc_item(pc_sum(pc_grad(x))), 0, 0);
    }
    assert_no_leak();
}

/* Nor does one go to the grid from there, whatever stands for a place and wherever x is infinite. */
static void nowhere_moves_nothing(void **state)
{
    (void)state;
    const float places[] = {NAN, 0, 0, NAN, INFINITY, 0, -INFINITY, INFINITY, 3e38f, 0, 0, -3e38f};
    for (int padding = PC_GRID_ZEROS; padding <= PC_GRID_REFLECTION; padding++)
        for (int channels = 1; channels < 12; channels += 5)
            PC_SCOPE {
                pc_tensor *x = pc_full(PC_SHAPE(1, channels, 3, 4), INFINITY, PC_F32, test_device());
                x = channels > 1 ? as_channels_last(x) : x;
                pc_tensor *grid = pc_from_data(places, PC_SHAPE(1, 1, 6, 2), PC_F32, test_device());
                if (padding != PC_GRID_ZEROS) /* places on the edge are some of x's */
                    x = pc_cast(pc_isnan(x), PC_F32);
                assert_ok(pc_require_grad(grid, true));
                assert_ok(pc_backward(pc_sum(pc_fn_grid_sample(x, grid, GRID(.padding = (pc_grid_padding)padding)))));
                assert_int_equal(pc_item_i64(pc_count_nonzero(pc_grad(grid))), 0);
            }
    assert_no_leak();
}

/* Where an axis has one place, which mirrors stand on, too. */
static void nothing_is_between(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {1, 7}, {7, 1}};
    const float places[] = {NAN, NAN, NAN, NAN}, more[] = {NAN, NAN, 0, 0};
    for (int i = 0; i < 3 * 2 * 2; i++)
        PC_SCOPE {
            pc_tensor *x =
                pc_add_scalar(pc_rand(PC_SHAPE(1, 2, sizes[i % 3][0], sizes[i % 3][1]), PC_F32, test_device()), 1);
            pc_tensor *grid = pc_from_data(i / 6 ? more : places, PC_SHAPE(1, 1, 2, 2), PC_F32, test_device());
            const pc_fn_grid_sample_options options = {
                .padding = PC_GRID_REFLECTION, .align_corners = true, .nearest = i / 3 % 2};
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = pc_fn_grid_sample(x, grid, options);
            assert_close(pc_item(pc_sum(pc_abs(pc_slice(y, 3, 0, 1, 1)))), 0, 0);
            assert_ok(pc_backward(pc_sum(pc_slice(y, 3, 0, 1, 1))));
            assert_int_equal(pc_item_i64(pc_count_nonzero(pc_grad(x))), 0);
        }
    assert_no_leak();
}

/* A place of none of x has no gradient, not even where an infinite one comes in. */
static void infinite_gradients(void **state)
{
    (void)state;
    const float places[] = {NAN, 0, 5, 5, 0, -9};
    for (int channels = 1; channels < 12; channels += 5)
        for (int last = 0; last < 2; last++)
            PC_SCOPE {
                pc_tensor *x = pc_rand(PC_SHAPE(1, channels, 3, 4), PC_F32, test_device());
                pc_tensor *grid = pc_from_data(places, PC_SHAPE(1, 1, 3, 2), PC_F32, test_device());
                assert_ok(pc_require_grad(grid, true));
                pc_tensor *y = pc_fn_grid_sample(last ? as_channels_last(x) : x, grid, GRID(.nearest = false));
                assert_ok(pc_backward_with(y, pc_full(pc_tensor_shape(y), INFINITY, PC_F32, test_device())));
                assert_int_equal(pc_item_i64(pc_count_nonzero(pc_grad(grid))), 0);
            }
    assert_no_leak();
}

/* A value and the gradients at x and the grid for a gradient that comes in. */
typedef struct results {
    pc_tensor *y, *dx, *dgrid;
} results;

static results sample(pc_tensor *x, pc_tensor *grid, pc_tensor *dy, pc_fn_grid_sample_options options)
{
    results s;
    x = pc_detach(x);
    grid = pc_detach(grid);
    assert_ok(pc_require_grad(x, true));
    assert_ok(pc_require_grad(grid, true));
    s.y = pc_fn_grid_sample(x, grid, options);
    assert_not_null_ok(s.y);
    assert_ok(pc_backward_with(s.y, dy));
    s.dx = pc_grad(x);
    s.dgrid = options.nearest ? NULL : pc_grad(grid);
    return s;
}

static void assert_near(pc_tensor *a, pc_tensor *b, double error)
{
    if (a && b && pc_tensor_count(a) > 0)
        assert_close(pc_item(pc_max(pc_abs(pc_sub(pc_cast(a, PC_F64), pc_cast(b, PC_F64))))), 0, error);
}

/* Many places are as few at a time are, in every order of memory, and in double; their gradients at x add up. */
static void assert_many(pc_shape size, pc_fn_grid_sample_options options)
{
    enum { ROWS = 13, COLUMNS = 29, SOME = 3 };
    PC_SCOPE {
        const int64_t n = size.dim[0], c = size.dim[1];
        pc_tensor *x = pc_randn(size, PC_F32, test_device());
        pc_tensor *grid = pc_randn(PC_SHAPE(n, ROWS, COLUMNS, 2), PC_F32, test_device());
        pc_tensor *dy = pc_randn(PC_SHAPE(n, c, ROWS, COLUMNS), PC_F32, test_device());
        const results all = sample(x, grid, dy, options), last = sample(as_channels_last(x), grid, dy, options);
        assert_near(all.y, last.y, 1e-5);
        assert_near(all.dx, last.dx, 2e-4);
        assert_near(all.dgrid, last.dgrid, 2e-3);
        pc_tensor *sum = pc_zeros(size, PC_F64, test_device());
        for (int64_t i = 0; i < COLUMNS; i += SOME) {
            const int64_t end = i + SOME < COLUMNS ? i + SOME : COLUMNS;
            const results some = sample(x, pc_slice(grid, 2, i, end, 1), pc_slice(dy, 3, i, end, 1), options);
            assert_near(some.y, pc_slice(all.y, 3, i, end, 1), 1e-5);
            if (all.dgrid)
                assert_near(some.dgrid, pc_slice(all.dgrid, 2, i, end, 1), 2e-3);
            sum = pc_add(sum, pc_cast(some.dx, PC_F64));
        }
        assert_near(all.dx, sum, 2e-4);
        if (options.nearest || options.padding == PC_GRID_REFLECTION)
            break; /* a place that is rounded lies elsewhere */
        pc_tensor *x64 = pc_cast(x, PC_F64), *grid64 = pc_cast(grid, PC_F64), *dy64 = pc_cast(dy, PC_F64);
        const results wide = sample(x64, grid64, dy64, options);
        const results wide_last = sample(as_channels_last(x64), grid64, dy64, options);
        assert_near(all.y, wide.y, 1e-4);
        assert_near(wide_last.y, wide.y, 1e-13);
        assert_near(wide_last.dx, wide.dx, 1e-12);
        assert_near(wide_last.dgrid, wide.dgrid, 1e-11);
    }
}

static void many_places(void **state)
{
    static const int64_t sizes[][4] = {{2, 1, 7, 9}, {1, 3, 1, 1},  {2, 5, 1, 6},
                                       {1, 8, 6, 1}, {2, 19, 5, 4}, {1, 41, 4, 2}};
    (void)state;
    pc_seed(4);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        for (int k = 0; k < 12; k++)
            assert_many(pc_shape_of(4, sizes[i]), GRID(.nearest = k % 2 > 0, .padding = (pc_grid_padding)(k / 4),
                                                       .align_corners = k / 2 % 2 > 0));
    assert_no_leak();
}

static bool same_bits(pc_tensor *a, pc_tensor *b)
{
    return pc_item_i64(pc_count_nonzero(pc_ne(a, b))) == 0;
}

/* However many threads there are, and however often. */
static void the_same_bits(void **state)
{
    (void)state;
    pc_seed(5);
    for (int i = 0; i < 4; i++)
        PC_SCOPE {
            const int64_t c = i % 2 ? 50 : 5;
            pc_tensor *x = pc_randn(PC_SHAPE(2, c, 12, 11), PC_F32, test_device());
            pc_tensor *grid = pc_randn(PC_SHAPE(2, 40, 37, 2), PC_F32, test_device());
            pc_tensor *dy = pc_randn(PC_SHAPE(2, c, 40, 37), PC_F32, test_device());
            x = i / 2 ? as_channels_last(x) : x;
            pc_threads_set(1);
            const results one = sample(x, grid, dy, GRID(.padding = PC_GRID_BORDER));
            pc_threads_set(7);
            const results many = sample(x, grid, dy, GRID(.padding = PC_GRID_BORDER));
            pc_threads_set(0);
            assert_true(same_bits(one.y, many.y) && same_bits(one.dx, many.dx) && same_bits(one.dgrid, many.dgrid));
        }
    assert_no_leak();
}

/* x is kept for the gradient at the grid alone. */
static void who_is_kept(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++)
        PC_SCOPE {
            pc_tensor *memory = pc_ones(PC_SHAPE(1, 2, 3, 3), PC_F32, test_device()), *x = pc_detach(memory);
            pc_tensor *grid = pc_zeros(PC_SHAPE(1, 1, 1, 2), PC_F32, test_device());
            assert_ok(pc_require_grad(x, true));
            assert_ok(pc_require_grad(grid, wanted));
            pc_tensor *y = pc_sum(pc_fn_grid_sample(x, grid, GRID(0)));
            assert_ok(pc_copy(memory, pc_scalar(2, PC_F32, test_device())));
            if (wanted) {
                assert_int_equal(pc_backward(y), PC_ERR_STATE);
            } else {
                assert_ok(pc_backward(y));
                assert_close(pc_item(pc_sum(pc_grad(x))), 2, 0);
            }
            pc_error_clear();
        }
    assert_no_leak();
}

/* The nearest place has no gradient at the grid: nothing is asked of it. */
static void nearest_wants_nothing(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 2, 3, 3), PC_F32, test_device());
        pc_tensor *grid = pc_zeros(PC_SHAPE(1, 1, 1, 2), PC_F32, test_device());
        assert_ok(pc_require_grad(grid, true));
        assert_false(pc_requires_grad(pc_fn_grid_sample(x, grid, GRID(.nearest = true))));
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_backward(pc_sum(pc_fn_grid_sample(x, grid, GRID(.nearest = true)))));
        assert_close(pc_item(pc_sum(pc_grad(x))), 2, 0);
        assert_null(pc_grad(grid));
        pc_error_clear();
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_grids),
                                          cmocka_unit_test(places_that_are_nowhere),
                                          cmocka_unit_test(nowhere_moves_nothing),
                                          cmocka_unit_test(nothing_is_between),
                                          cmocka_unit_test(infinite_gradients),
                                          cmocka_unit_test(many_places),
                                          cmocka_unit_test(the_same_bits),
                                          cmocka_unit_test(who_is_kept),
                                          cmocka_unit_test(nearest_wants_nothing)};

int main(void)
{
    return golden_main("ops.grid_sample", ops, tests);
}
