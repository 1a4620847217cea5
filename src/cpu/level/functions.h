/* functions.h: functions of float without branches and calls, so that compilers turn loops over them into vector code. Errors are in units in the last place of float; tests/cpu/functions.c holds every level to them, beside
 * the C library's double functions, which are those of double here. */
#ifndef PC__FUNCTIONS_H
#define PC__FUNCTIONS_H

#include <math.h>
#include <stdint.h>

#include "cpu/level/float_bits.h"
#include "cpu/level/power.h"
#include "cpu/level/trigonometry.h"

/* e^x - 1 = 2^k (e^r - 1) + 2^k - 1, in parts: x = k ln 2 + r, |r| <= ln 2 / 2; e^r by a polynomial (minimax coefficients
 * as in Cephes, expf), 2^k by the exponent bits. Adding 1.5 x 2^23 rounds to whole numbers, which are the last bits then.
 * x from -104 to 89, or NaN. */
typedef struct pc__exp_parts {
    float rest;        /* e^r - 1 */
    float power, more; /* 2^k as a product: k is -150 to 128, which one cannot hold */
} pc__exp_parts;

static inline pc__exp_parts pc__exp_parts_of(float x)
{
    const pc__float_bits shifted = {.f = x * 1.44269504f + 12582912.0f};
    const float k = shifted.f - 12582912.0f;
    const float r = x - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const uint32_t whole = shifted.u - 0x4b400000u, half = (uint32_t)((int32_t)whole >> 1);
    const pc__float_bits a = {.u = (half + 127) << 23}, b = {.u = (whole - half + 127) << 23};
    return (pc__exp_parts){p * r * r + r, a.f, b.f};
}

/* Within 1.1 units, of subnormal results too. Beyond the clamps the products are 0 and infinity; NaN passes both. */
static inline float pc__exp_f32(float x)
{
    const float low = x < -104.0f ? -104.0f : x, clamped = low > 89.0f ? 89.0f : low;
    const pc__exp_parts e = pc__exp_parts_of(clamped);
    return (e.rest + 1.0f) * e.power * e.more;
}

/* Within 2 units. */
static inline float pc__expm1_f32(float x)
{
    const float low = x < -104.0f ? -104.0f : x, clamped = low > 89.0f ? 89.0f : low;
    const pc__exp_parts e = pc__exp_parts_of(clamped);
    const float power = e.power * e.more; /* infinity from 2^128 on, where the rest cannot bring it back */
    return x < 88.5f ? e.rest * power + (power - 1) : (e.rest + 1.0f) * e.power * e.more;
}

/* Within 1 unit. x = 2^e m with m between sqrt(1/2) and sqrt(2), a polynomial in m - 1 (Cephes, logf). */
static inline float pc__log_f32(float x)
{
    const pc__float_parts parts = pc__parts_of(x);
    const float e = (float)parts.exponent, f = parts.part - 1, z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float y = f * z * p - 2.12194440e-4f * e - 0.5f * z;
    y = f + y + 0.693359375f * e;
    y = x == 0 ? -__builtin_inff() : x < 0 ? __builtin_nanf("") : y;
    return x <= 3.40282347e+38f ? y : x; /* infinity and NaN as they are */
}

/* log(1 + x) for x from 0 to 1, within 2 units: the logarithm of the sum as it was rounded, and what that left out. */
static inline float pc__log1p_f32(float x)
{
    const float sum = 1 + x;
    return pc__log_f32(sum) + (x - (sum - 1)) / sum;
}

/* 2^x for |x| up to 120, within 2 units and not more exactly: for what adds little to a result. A polynomial fitted for
 * the least largest error, then 2^k into the exponent. */
static inline float pc__power_of_2(float x)
{
    const pc__float_bits shifted = {.f = x + 12582912.0f};
    const float r = x - (shifted.f - 12582912.0f);
    float p = 1.326472707e-03f;
    p = p * r + 9.671512649e-03f;
    p = p * r + 5.550733744e-02f;
    p = p * r + 2.402224209e-01f;
    p = p * r + 6.931469776e-01f;
    pc__float_bits power = {.f = p * r + 1};
    power.u += shifted.u << 23;
    return power.f;
}

/* Within 2 units. Near 0 a polynomial (coefficients: Cephes, tanhf), where 1 - 2 / (exp(2 x) + 1) would cancel. */
static inline float pc__tanh_f32(float x)
{
    const float size = __builtin_fabsf(x), z = x * x, most = size < 10 ? size : 10;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near = p * z * x + x;
    const float far = __builtin_copysignf(1 - 2 / (pc__power_of_2(most * 2.88539008f) + 1), x);
    return size >= 0.625f ? far : near; /* NaN is near */
}

/* Within 2.5 units. Below 1 a polynomial of erf(x) / x in x^2, above one of -log2(1 - erf(x)) in x; both fitted at
 * Chebyshev nodes to the C library's erf of double. From 4 on it is 1. */
static inline float pc__erf_f32(float x)
{
    const float size = __builtin_fabsf(x), z = x * x, far = size < 4 ? size : 4;
    float p = 7.882497108e-05f;
    p = p * z - 8.018854992e-04f;
    p = p * z + 5.189311943e-03f;
    p = p * z - 2.685432880e-02f;
    p = p * z + 1.128359746e-01f;
    p = p * z - 3.761262690e-01f;
    p = p * z + 1.128379166e+00f;
    float q = 2.300602260e-06f;
    q = q * far - 6.523565641e-05f;
    q = q * far + 8.507900924e-04f;
    q = q * far - 6.818762047e-03f;
    q = q * far + 3.798151616e-02f;
    q = q * far - 1.585720847e-01f;
    q = q * far - 9.117878004e-01f;
    q = q * far - 1.630432077e+00f;
    q = q * far + 4.246544876e-04f;
    const float tail = __builtin_copysignf(1 - pc__power_of_2(q), x);
    return size >= 1 ? tail : p * x; /* NaN too */
}

/* Of whole numbers; the least one's size is itself. */
static inline int32_t pc__abs_i32(int32_t x)
{
    return x < 0 ? (int32_t)(0 - (uint32_t)x) : x;
}

static inline int64_t pc__abs_i64(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

#define PC__SIGN(name, T)                                                                                              \
    static inline T name(T x)                                                                                          \
    {                                                                                                                  \
        return (T)((x > 0) - (x < 0));                                                                                 \
    }
PC__SIGN(pc__sign_f32, float) /* 0 of NaN */
PC__SIGN(pc__sign_f64, double)
PC__SIGN(pc__sign_i32, int32_t)
PC__SIGN(pc__sign_i64, int64_t)

static inline uint8_t pc__sign_u8(uint8_t x)
{
    return x != 0;
}

static inline uint8_t pc__same_u8(uint8_t x)
{
    return x;
}

static inline int32_t pc__same_i32(int32_t x)
{
    return x;
}

static inline int64_t pc__same_i64(int64_t x)
{
    return x;
}

/* The names that ops/pointwise.def uses. */
#define NUM(x) ((__typeof__(a))(x))
#define EXP(x) _Generic((x), float : pc__exp_f32, double : exp)(x)
#define TIMES_LOGISTIC(y, x) ((y) / (NUM(1) + EXP(-(x))))
#define LOGISTIC(x) TIMES_LOGISTIC(NUM(1), x)
#define LOG(x) _Generic((x), float : pc__log_f32, double : log)(x)
#define LOG1P(x) _Generic((x), float : pc__log1p_f32, double : log1p)(x)
#define SQRT(x) _Generic((x), float : sqrtf, double : sqrt)(x)
#define EXPM1(x) _Generic((x), float : pc__expm1_f32, double : expm1)(x)
#define SIN(x) _Generic((x), float : pc__sin_f32, double : sin)(x)
#define COS(x) _Generic((x), float : pc__cos_f32, double : cos)(x)
#define TANH(x) _Generic((x), float : pc__tanh_f32, double : tanh)(x)
#define ERF(x) _Generic((x), float : pc__erf_f32, double : erf)(x)

#define PC__BY_DTYPE(x, u8_, i32_, i64_, f32_, f64_)                                                                   \
    _Generic((x), uint8_t : u8_, int32_t : i32_, int64_t : i64_, float : f32_, double : f64_)
#define ABS(x) PC__BY_DTYPE(x, pc__same_u8, pc__abs_i32, pc__abs_i64, fabsf, fabs)(x)
#define SIGN(x) PC__BY_DTYPE(x, pc__sign_u8, pc__sign_i32, pc__sign_i64, pc__sign_f32, pc__sign_f64)(x)
#define FLOOR(x) PC__BY_DTYPE(x, pc__same_u8, pc__same_i32, pc__same_i64, floorf, floor)(x)
#define ROUND(x) PC__BY_DTYPE(x, pc__same_u8, pc__same_i32, pc__same_i64, rintf, rint)(x)
#define POW(x, y) PC__BY_DTYPE(x, pc__pow_u8, pc__pow_i32, pc__pow_i64, pc__pow_f32, pow)(x, y)

#endif
