/* What is drawn is what pc_philox says, element by element: any length, dtype, place in the stream. */
#include "cpu/host.h"

#include "base/base.h"
#include "tensor/half.h"

#include <paracord/ops.h>
#include <paracord/random.h>

enum { MOST = 9000 };

static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32, PC_F64};
static const int64_t lengths[] = {1, 2, 3, 5, 255, 256, 257, 1021, 4095, 4097, MOST};
static double got[MOST];

static uint32_t word_of(pc_generator g, unsigned purpose, int64_t i)
{
    uint32_t four[4];
    pc_philox(g.seed, g.step * 4 + purpose, (uint64_t)i / 4, four);
    return four[i % 4];
}

static double rounded(double value, pc_dtype dtype)
{
    const float f = (float)value;
    return dtype == PC_F64   ? value
           : dtype == PC_F32 ? (double)f
           : dtype == PC_F16 ? (double)pc__f16_float(pc__f16_of(f))
                             : (double)pc__bf16_float(pc__bf16_of(f));
}

static void uniform(pc_dtype dtype, int64_t n, pc_generator g)
{
    const uint32_t left_out = dtype == PC_F16 ? 1u << 21 : dtype == PC_BF16 ? 1u << 24 : 1;
    assert_ok(pc_read(pc_cast(pc_rand(PC_SHAPE(n), dtype, test_device()), PC_F64), got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++)
        assert_true(got[i] == rounded((double)pc_uniform_f32(word_of(g, 0, i) & ~(left_out - 1)), dtype));
}

static void normal(pc_dtype dtype, int64_t n, pc_generator g)
{
    float pair[2];
    assert_ok(pc_read(pc_cast(pc_randn(PC_SHAPE(n), dtype, test_device()), PC_F64), got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++) {
        pc_normal_pair(word_of(g, 1, i / 2 * 2), word_of(g, 1, i / 2 * 2 + 1), pair);
        assert_true(got[i] == rounded((double)pair[i % 2], dtype));
    }
}

static void dropout(pc_dtype dtype, int64_t n, pc_generator g, double p)
{
    pc_tensor *x = pc_add_scalar(pc_cast(pc_arange(0, (double)n, 1, PC_I32, test_device()), dtype), 1);
    static double from[MOST];
    assert_ok(pc_read(pc_cast(x, PC_F64), from, (size_t)n * sizeof *from));
    assert_ok(pc_read(pc_cast(pc_fn_dropout(x, p), PC_F64), got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++) {
        const bool stays = (double)pc_uniform_f32(word_of(g, 2, i)) >= p;
        assert_true(got[i] == (stays ? rounded(from[i] * (p < 1 ? 1 / (1 - p) : 0), dtype) : 0));
    }
}

static void words_of_the_generator(void **state)
{
    (void)state;
    for (int d = 0; d < PC__COUNT(dtypes); d++)
        for (int l = 0; l < PC__COUNT(lengths); l++)
            PC_SCOPE {
                pc_generator g = {0xfedcba9876543210u + (uint64_t)l, (uint64_t)1 << (7 * l % 62)};
                pc_generator_set(g);
                uniform(dtypes[d], lengths[l], g);
                g.step++;
                normal(dtypes[d], lengths[l], g);
                for (int p = 0; p <= 8; p += 2) {
                    g.step++;
                    dropout(dtypes[d], lengths[l], g, p / 8.0 * 0.999 + (p == 8 ? 0.001 : 0));
                }
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_of_the_generator),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.random", tests, NULL, NULL);
}
