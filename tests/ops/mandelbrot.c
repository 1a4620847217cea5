/* The Mandelbrot set: counts are those of a plain loop, at every point. */
#include <math.h>

#include "device.h"

#include <paracord/ops.h>

static int plain(double cr, double ci, int iterations)
{
    double zr = 0, zi = 0;
    for (int i = 0; i < iterations; i++) {
        volatile double rr = zr * zr, ii = zi * zi, ri = zr * zi; /* volatile: nothing is fused */
        volatile double difference = rr - ii;
        zr = difference + cr;
        zi = ri + ri + ci;
        volatile double r2 = zr * zr, i2 = zi * zi;
        if (r2 + i2 >= 4)
            return i;
    }
    return iterations;
}

static const pc_mandelbrot_options regions[] = {
    {0},
    {.x_min = -0.75, .x_max = -0.73, .y_min = 0.1, .y_max = 0.12},
    {.x_min = -2.5, .x_max = 1.5, .y_min = -2, .y_max = 2},
    {.x_min = -1.8, .x_max = -1.7, .y_min = -0.05, .y_max = 0.05}, /* a small copy of the set */
    {.x_min = 0.24, .x_max = 0.26, .y_min = -0.01, .y_max = 0.01}, /* the cusp of the heart */
    {.x_min = -0.7436438870371587,
     .x_max = -0.7436438870371287,
     .y_min = 0.131825904205312,
     .y_max = 0.131825904205332},
    {.x_min = -1.26, .x_max = -1.24, .y_min = -0.01, .y_max = 0.01},     /* where the disc ends */
    {.x_min = -2.001, .x_max = -1.999, .y_min = -0.001, .y_max = 0.001}, /* the tip, where |z| stays at 2 */
    {.x_min = -0.2, .x_max = 0.2, .y_min = 0.6, .y_max = 1.05},
    {.x_min = -30, .x_max = 30, .y_min = -30, .y_max = 30},
    {.x_min = -0.752, .x_max = -0.748, .y_min = -0.002, .y_max = 0.002}, /* between heart and disc */
    {.x_min = -1e300, .x_max = 1e300, .y_min = -1e300, .y_max = 1e300},  /* infinities on the way */
    {.x_min = 2, .x_max = 3, .y_min = 2, .y_max = 3},                    /* nothing of the set */
    {.x_min = -0.1, .x_max = 0.1, .y_min = -0.1, .y_max = 0.1},          /* nothing else */
};

static void compare(pc_mandelbrot_options spec, int height, int width, pc_dtype dtype)
{
    const bool all = spec.x_min == 0 && spec.x_max == 0;
    const double x0 = all ? -2 : spec.x_min, x1 = all ? 1 : spec.x_max, y0 = all ? -1 : spec.y_min,
                 y1 = all ? 1 : spec.y_max;
    const volatile double dx = (x1 - x0) / width, dy = (y1 - y0) / height;
    pc_tensor *counts = pc_full(PC_SHAPE(height, width), 77, dtype, test_device());
    assert_ok(pc_mandelbrot(counts, spec));
    int32_t *got = malloc((size_t)height * (size_t)width * sizeof *got);
    pc_tensor *wide = pc_cast(counts, PC_I32);
    assert_ok(pc_read(wide, got, (size_t)height * (size_t)width * sizeof *got));
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            const volatile double x = column * dx, y = row * dy;
            const int want = plain(x0 + x, y0 + y, spec.iterations ? spec.iterations : 20);
            if (got[row * width + column] != want)
                fail_msg("x from %.17g, %d x %d, %d iterations: (%d, %d) is %d, want %d", x0, height, width,
                         spec.iterations, row, column, got[row * width + column], want);
        }
    free(got);
    pc_tensor_free(wide);
    pc_tensor_free(counts);
}

static void counts_are_those_of_a_plain_loop(void **state)
{
    (void)state;
    static const int iterations[] = {0, 1, 2, 7, 33, 300};
    for (size_t r = 0; r < sizeof regions / sizeof *regions; r++)
        for (size_t i = 0; i < sizeof iterations / sizeof *iterations; i++) {
            pc_mandelbrot_options spec = regions[r];
            spec.iterations = iterations[i];
            compare(spec, 96, 130, PC_I32);
        }
    assert_no_leak();
}

static void the_usual_picture(void **state)
{
    (void)state;
    compare((pc_mandelbrot_options){0}, 1024, 1536, PC_U8);
}

/* Long enough for exact cycles, and for the rims of heart and disc to leak if they could. */
static void long_ways(void **state)
{
    (void)state;
    static const int deep[] = {0, 1, 4, 5, 6, 7, 10};
    for (size_t r = 0; r < sizeof deep / sizeof *deep; r++) {
        pc_mandelbrot_options spec = regions[deep[r]];
        spec.iterations = 20000;
        compare(spec, 25, 33, PC_I32);
    }
}

static void every_size_and_dtype(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 7}, {3, 1}, {5, 24}, {9, 25}, {2, 3001}, {257, 31}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        compare((pc_mandelbrot_options){0}, sizes[i][0], sizes[i][1], PC_U8);
        compare((pc_mandelbrot_options){.iterations = 255}, sizes[i][0], sizes[i][1], PC_U8);
        compare((pc_mandelbrot_options){.iterations = 50}, sizes[i][0], sizes[i][1], PC_I32);
    }
    pc_tensor *none = pc_zeros(PC_SHAPE(0, 5), PC_I32, test_device());
    assert_ok(pc_mandelbrot(none, (pc_mandelbrot_options){0}));
    pc_tensor_free(none);
}

/* count + 1 - log2(log2 |z|), by which colours go on where counts jump: it hardly changes when z goes on for a step. */
static double fraction(double cr, double ci, int count)
{
    double zr = cr, zi = ci;
    for (int k = 0; k < count + 4; k++) {
        const double r = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = r;
    }
    return fmax(0, count + 5 - log2(log2(hypot(zr, zi))));
}

static void fractions(void **state)
{
    (void)state;
    enum { H = 40, W = 60 };
    static int32_t whole[H * W];
    static float part[H * W];
    const pc_mandelbrot_options spec = {.x_min = -2, .x_max = 1, .y_min = -1, .y_max = 1, .iterations = 60};
    pc_tensor *a = pc_zeros(PC_SHAPE(H, W), PC_I32, test_device()),
              *b = pc_zeros(PC_SHAPE(H, W), PC_F32, test_device());
    assert_ok(pc_mandelbrot(a, spec));
    assert_ok(pc_mandelbrot(b, spec));
    assert_ok(pc_read(a, whole, sizeof whole));
    assert_ok(pc_read(b, part, sizeof part));
    for (int i = 0; i < H * W; i++)
        if (whole[i] == spec.iterations)
            assert_true(part[i] == (float)spec.iterations);
        else
            assert_close(part[i], fraction(-2 + i % W * (3.0 / W), -1 + i / W * (2.0 / H), whole[i]), 1e-4);
    pc_tensor_free(a);
    pc_tensor_free(b);
    assert_no_leak();
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(4, 6), PC_U8, test_device());
        const pc_mandelbrot_options fine = {0}, turned = {.x_min = 1, .x_max = -2, .y_min = -1, .y_max = 1},
                                    flat = {.x_min = -2, .x_max = 1, .y_min = 1, .y_max = 1},
                                    endless = {.x_min = -2, .x_max = HUGE_VAL, .y_min = -1, .y_max = 1},
                                    nan = {.x_min = NAN, .x_max = 1, .y_min = -1, .y_max = 1};
        assert_fails(pc_mandelbrot(t, turned), PC_ERR_ARGUMENT, "x from 1 to -2");
        assert_fails(pc_mandelbrot(t, flat), PC_ERR_ARGUMENT, "y from 1 to 1");
        assert_fails(pc_mandelbrot(t, endless), PC_ERR_ARGUMENT, "finite");
        assert_fails(pc_mandelbrot(t, nan), PC_ERR_ARGUMENT, "finite");
        assert_fails(pc_mandelbrot(t, (pc_mandelbrot_options){.iterations = -1}), PC_ERR_ARGUMENT, "-1 iterations");
        assert_fails(pc_mandelbrot(t, (pc_mandelbrot_options){.iterations = 256}), PC_ERR_DTYPE, "use int32");
        assert_fails(pc_mandelbrot(NULL, fine), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_mandelbrot(pc_zeros(PC_SHAPE(4), PC_U8, test_device()), fine), PC_ERR_SHAPE, "[4]");
        assert_fails(pc_mandelbrot(pc_transpose(t, 0, 1), fine), PC_ERR_SHAPE, "contiguous");
        assert_fails(pc_mandelbrot(pc_zeros(PC_SHAPE(4, 6), PC_F64, test_device()), fine), PC_ERR_DTYPE, "float64");
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_are_those_of_a_plain_loop),
    cmocka_unit_test(the_usual_picture),
    cmocka_unit_test(long_ways),
    cmocka_unit_test(every_size_and_dtype),
    cmocka_unit_test(fractions),
    cmocka_unit_test(bad_input),
};

int main(void)
{
    return cmocka_run_group_tests_name("ops.mandelbrot", tests, NULL, NULL);
}
