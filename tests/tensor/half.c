/* 16-bit numbers: every bit pattern, roundings, promotion, casts, and tensors of them. */
#include "ops/golden.h"

#include <paracord/random.h>

enum { PATTERNS = 65536 };

/* What a pattern stands for, from the definition. */
static double meaning(unsigned bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    int exponent = (int)(bits >> fraction_bits) & top, fraction = (int)bits & ((1 << fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == top)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

static double f16_meaning(unsigned bits)
{
    return meaning(bits, 5, 10);
}

static double bf16_meaning(unsigned bits)
{
    return meaning(bits, 8, 7);
}

static float f16_out(unsigned bits)
{
    return pc_f16_to_float((pc_f16){(uint16_t)bits});
}

static float bf16_out(unsigned bits)
{
    return pc_bf16_to_float((pc_bf16){(uint16_t)bits});
}

static unsigned f16_in(float value)
{
    return pc_f16_from_float(value).bits;
}

static unsigned bf16_in(float value)
{
    return pc_bf16_from_float(value).bits;
}

typedef struct kind {
    pc_dtype dtype;
    unsigned infinity;
    double (*meaning)(unsigned bits);
    float (*out)(unsigned bits);
    unsigned (*in)(float value);
} kind;

static const kind kinds[] = {{PC_F16, 0x7c00, f16_meaning, f16_out, f16_in},
                             {PC_BF16, 0x7f80, bf16_meaning, bf16_out, bf16_in}};

static bool is_nan(const kind *k, unsigned bits)
{
    return (bits & 0x7fff) > k->infinity;
}

static void every_pattern(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (unsigned bits = 0; bits < PATTERNS; bits++) {
            const kind *k = &kinds[i];
            float value = k->out(bits);
            double want = k->meaning(bits);
            if (is_nan(k, bits)) {
                assert_true(isnan(value) && is_nan(k, k->in(value)));
            } else {
                assert_true((double)value == want && !signbit(value) == !signbit(want));
                assert_int_equal(k->in(value), bits);
            }
        }
}

/* Between two neighbours: the middle goes to the even one, what is beside it to the nearer one. */
static void every_rounding(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (unsigned bits = 0; bits < kinds[i].infinity; bits++) {
            const kind *k = &kinds[i];
            double low = k->meaning(bits), step = bits ? low - k->meaning(bits - 1) : k->meaning(1);
            double high = bits + 1 == k->infinity ? low + step : k->meaning(bits + 1); /* would be, without a limit */
            float middle = (float)((low + high) / 2);
            if ((double)middle != (low + high) / 2) /* below the last place of floats */
                continue;
            for (int sign = 0; sign < 2; sign++) {
                unsigned s = sign ? 0x8000 : 0;
                float m = sign ? -middle : middle;
                assert_int_equal(k->in(m), s | (bits + (bits & 1)));
                assert_int_equal(k->in(nextafterf(m, 0)), s | bits);
                assert_int_equal(k->in(nextafterf(m, sign ? -INFINITY : INFINITY)), s | (bits + 1));
            }
        }
    assert_int_equal(f16_in(1e30f), 0x7c00);
    assert_int_equal(f16_in(-1e-30f), 0x8000);
    assert_true(is_nan(&kinds[0], f16_in(NAN)) && is_nan(&kinds[1], bf16_in(-NAN)));
}

static void promotion(void **state)
{
    (void)state;
    /* PyTorch's torch.promote_types */
    static const pc_dtype with_f16[PC_DTYPE_COUNT] = {PC_F16, PC_F16, PC_F16, PC_F16, PC_F16, PC_F32, PC_F32, PC_F64},
                          with_bf16[PC_DTYPE_COUNT] = {PC_BF16, PC_BF16, PC_BF16, PC_BF16,
                                                       PC_F32,  PC_BF16, PC_F32,  PC_F64};
    for (int d = 0; d < PC_DTYPE_COUNT; d++)
        PC_SCOPE {
            pc_tensor *other = pc_ones(PC_SHAPE(2), (pc_dtype)d, test_device());
            for (int i = 0; i < 2; i++) {
                pc_tensor *half = pc_ones(PC_SHAPE(2), kinds[i].dtype, test_device());
                pc_dtype want = i ? with_bf16[d] : with_f16[d];
                assert_int_equal(pc_tensor_dtype(pc_add(half, other)), want);
                assert_int_equal(pc_tensor_dtype(pc_mul(other, half)), want);
                assert_int_equal(pc_tensor_dtype(pc_cat((pc_tensor *[]){other, half}, 2, 0)), want);
                assert_int_equal(pc_tensor_dtype(pc_where(pc_eq(half, other), half, other)), want);
                /* a zero-dim tensor decides only when it is of a higher kind */
                pc_tensor *zero_dim = pc_scalar(1, (pc_dtype)d, test_device());
                assert_int_equal(pc_tensor_dtype(pc_add(half, zero_dim)), kinds[i].dtype);
                assert_int_equal(pc_tensor_dtype(pc_div_scalar(half, 3)), kinds[i].dtype);
                assert_int_equal(pc_tensor_dtype(pc_sum(half)), kinds[i].dtype);
                assert_int_equal(pc_tensor_dtype(pc_mean(half)), kinds[i].dtype);
            }
        }
    assert_no_leak();
}

static pc_tensor *all_patterns(pc_dtype dtype)
{
    static uint16_t bits[PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        bits[i] = (uint16_t)i;
    return pc_from_data(bits, PC_SHAPE(PATTERNS), dtype, test_device());
}

/* On the device: to float32, float64, bool and each other, and back. */
static void cast_every_pattern(void **state)
{
    (void)state;
    static float f32[PATTERNS];
    static double f64[PATTERNS];
    static uint16_t back[PATTERNS], other[PATTERNS];
    static bool truth[PATTERNS];
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const kind *k = &kinds[i], *o = &kinds[1 - i];
            pc_tensor *t = all_patterns(k->dtype), *single = pc_cast(t, PC_F32), *full = pc_cast(t, PC_F64);
            assert_ok(pc_read(single, f32, sizeof f32));
            assert_ok(pc_read(full, f64, sizeof f64));
            assert_ok(pc_read(pc_cast(t, PC_BOOL), truth, sizeof truth));
            assert_ok(pc_read(pc_cast(t, o->dtype), other, sizeof other));
            for (int from = 0; from < 2; from++) {
                assert_ok(pc_read(pc_cast(from ? full : single, k->dtype), back, sizeof back));
                for (unsigned b = 0; b < PATTERNS; b++)
                    assert_true(is_nan(k, b) ? is_nan(k, back[b]) : back[b] == b);
            }
            for (unsigned b = 0; b < PATTERNS; b++) {
                double want = k->meaning(b);
                assert_true(isnan(want) ? isnan(f32[b]) && isnan(f64[b]) : (double)f32[b] == want && f64[b] == want);
                assert_int_equal(truth[b], want != 0);
                assert_true(isnan(want) ? is_nan(o, other[b]) : other[b] == o->in((float)want));
            }
        }
    assert_no_leak();
}

static void cast_roundings_and_integers(void **state)
{
    (void)state;
    enum { N = 40000 };
    static float from[N];
    static uint16_t to[N];
    static int32_t whole[PATTERNS];
    for (int i = 0; i < N; i++) /* all exponents, and fractions that lie near the middle of two halves */
        from[i] = ldexpf(1 + (float)(i % 97) / 64 + (i % 3 ? 0x1p-12f : 0x1p-9f), i % 280 - 150) * (i % 2 ? -1.f : 1.f);
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const kind *k = &kinds[i];
            pc_tensor *t = pc_from_data(from, PC_SHAPE(N), PC_F32, test_device());
            assert_ok(pc_read(pc_cast(t, k->dtype), to, sizeof to));
            for (int n = 0; n < N; n++)
                assert_int_equal(to[n], k->in(from[n]));
            assert_ok(pc_read(pc_cast(all_patterns(k->dtype), PC_I32), whole, sizeof whole));
            for (unsigned b = 0; b < PATTERNS; b++)
                if (fabs(k->meaning(b)) < 0x1p31)
                    assert_int_equal(whole[b], (int32_t)k->meaning(b));
            int64_t numbers[] = {0, -7, 255, 2049, 65519, 65520, 1ll << 40};
            uint16_t got[7];
            pc_tensor *integers = pc_from_data(numbers, PC_SHAPE(7), PC_I64, test_device());
            assert_ok(pc_read(pc_cast(integers, k->dtype), got, sizeof got));
            for (int n = 0; n < 7; n++)
                assert_int_equal(got[n], k->in((float)numbers[n]));
        }
    assert_no_leak();
}

/* Copies move bits, whatever they mean. */
static void copies(void **state)
{
    (void)state;
    static uint16_t got[PATTERNS];
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            pc_tensor *t = pc_reshape(all_patterns(kinds[i].dtype), PC_SHAPE(32, 64, 32));
            pc_tensor *turned = pc_contiguous(pc_permute(t, PC_SHAPE(2, 0, 1)));
            assert_ok(pc_read(turned, got, sizeof got));
            for (unsigned b = 0; b < PATTERNS; b++)
                assert_int_equal(got[b], (b % 2048) * 32 + b / 2048);
            assert_ok(pc_read(pc_contiguous(pc_slice(t, 2, 1, 32, 3)), got, 32 * 64 * 11 * 2));
            assert_int_equal(got[11 * 5 + 2], 5 * 32 + 7);
            int64_t rows[] = {31, 0, 31};
            pc_tensor *index = pc_from_data(rows, PC_SHAPE(3), PC_I64, test_device());
            assert_ok(pc_read(pc_index_select(pc_reshape(t, PC_SHAPE(2048, 32)), 1, index), got, 2048 * 3 * 2));
            assert_int_equal(got[3 * 9], 9 * 32 + 31);
            assert_int_equal(got[3 * 9 + 1], 9 * 32);
            pc_tensor *both[] = {pc_slice(t, 0, 0, 1, 1), pc_slice(t, 0, 30, 32, 1)};
            assert_ok(pc_read(pc_cat(both, 2, 0), got, 3 * 2048 * 2));
            assert_int_equal(got[0], 0);
            assert_int_equal(got[2048], 30 * 2048);
        }
    assert_no_leak();
}

static void factories(void **state)
{
    (void)state;
    enum { N = 100003 };
    static uint16_t bits[N];
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const kind *k = &kinds[i];
            double sum = 0, sum2 = 0;
            pc_seed(7);
            assert_ok(pc_read(pc_rand(PC_SHAPE(N), k->dtype, test_device()), bits, sizeof bits));
            for (int n = 0; n < N; n++) {
                float u = k->out(bits[n]);
                assert_true(u >= 0 && u < 1); /* 1 itself is what rounding would make of the largest ones */
                sum += (double)u;
            }
            assert_close(sum / N, 0.5, 0.01);
            assert_ok(pc_read(pc_randn(PC_SHAPE(N), k->dtype, test_device()), bits, sizeof bits));
            for (int n = 0; n < N; n++)
                sum2 += (double)k->out(bits[n]) * (double)k->out(bits[n]);
            assert_close(sum2 / N, 1, 0.02);
            pc_tensor *line = pc_arange(1, 3, 0.25, k->dtype, test_device());
            double got[8];
            golden_read(line, got);
            for (int n = 0; n < 8; n++)
                assert_close(got[n], 1 + 0.25 * n, 0);
            assert_close(pc_item(pc_full(PC_SHAPE(1), 0.1, k->dtype, test_device())), (double)k->out(k->in(0.1f)), 0);
            assert_int_equal(pc_dtype_size(k->dtype), 2);
        }
    assert_no_leak();
}

/* Where a number of 16 bits would not do: scalars are floats', sums inside a mean are wide. */
static void wide_inside(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *large = pc_full(PC_SHAPE(4096), 60000, PC_F16, test_device());
        assert_close(pc_item(pc_mean(large)), 60000, 0);
        assert_close(pc_item(pc_div_scalar(pc_full(PC_SHAPE(1), 60000, PC_F16, test_device()), 1e6)), 0.06, 1e-4);
        pc_tensor *ones = pc_ones(PC_SHAPE(1000), PC_BF16, test_device());
        assert_close(pc_item(pc_sum(ones)), 1000, 0); /* adding in bfloat16 would stop at 256 */
        assert_close(pc_item(pc_add_scalar(pc_full(PC_SHAPE(1), 1, PC_BF16, test_device()), 0.01)), 1.0078125, 0);
        pc_tensor *a = pc_full(PC_SHAPE(8, 600), 0.0625, PC_BF16, test_device());
        pc_tensor *b = pc_full(PC_SHAPE(600, 8), 1, PC_BF16, test_device());
        assert_close(pc_item(pc_max(pc_matmul(a, b))), 37.5, 0);
    }
    assert_no_leak();
}

static void text(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_cast(pc_arange(0, 1, 0.25, PC_F32, PC_DEVICE_CPU), PC_BF16);
        char *words = pc_tensor_text(t);
        assert_string_equal(words, "tensor([0.0000, 0.2500, 0.5000, 0.7500], dtype=bfloat16)");
        pc_text_free(words);
        words = pc_tensor_text(pc_full(PC_SHAPE(2), 65504, PC_F16, PC_DEVICE_CPU));
        assert_string_equal(words, "tensor([65504., 65504.], dtype=float16)");
        pc_text_free(words);
    }
    assert_no_leak();
}

static void files(void **state)
{
    (void)state;
    char folder[] = "/tmp/pc-half-XXXXXX", path[64];
    static uint16_t got[PATTERNS];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.npy", folder);
    PC_SCOPE {
        assert_ok(pc_npy_save(all_patterns(PC_F16), path));
        pc_tensor *t = pc_npy_load(path, test_device());
        assert_int_equal(pc_tensor_dtype(t), PC_F16);
        assert_ok(pc_read(t, got, sizeof got));
        for (unsigned b = 0; b < PATTERNS; b++)
            assert_int_equal(got[b], b);
        assert_fails(pc_npy_save(all_patterns(PC_BF16), path), PC_ERR_DTYPE, "pc_cast(t, PC_F32)");
        remove(path);
        assert_ok(pc_npy_save(pc_cast(all_patterns(PC_BF16), PC_F32), path));
        assert_int_equal(pc_tensor_dtype(pc_npy_load(path, test_device())), PC_F32);
    }
    remove(path);
    remove(folder);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern),
        cmocka_unit_test(every_rounding),
        cmocka_unit_test_teardown(promotion, close_scopes),
        cmocka_unit_test_teardown(cast_every_pattern, close_scopes),
        cmocka_unit_test_teardown(cast_roundings_and_integers, close_scopes),
        cmocka_unit_test_teardown(copies, close_scopes),
        cmocka_unit_test_teardown(factories, close_scopes),
        cmocka_unit_test_teardown(wide_inside, close_scopes),
        cmocka_unit_test_teardown(text, close_scopes),
        cmocka_unit_test_teardown(files, close_scopes),
    };
    return cmocka_run_group_tests_name("tensor.half", tests, NULL, NULL);
}
