/* power.h: x^y of float, without branches and calls (functions.h says why), and of integers. A loop that calls one is no loop of
 * vectors, so they are in line wherever they are used. */
#ifndef PC__POWER_H
#define PC__POWER_H

#include "cpu/level/float_bits.h"

/* log2 of a number above 0, which may be subnormal, relative error 2^-39: x = 2^e m with m between sqrt(1/2) and sqrt(2),
 * and log(m) = 2 artanh((m - 1) / (m + 1)), of which seven terms are taken. */
static inline __attribute__((always_inline)) double pc__log2_wide(float x)
{
    const pc__float_parts parts = pc__parts_of(x);
    const double m = (double)parts.part, t = (m - 1) / (m + 1), z = t * t;
    double p = 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1;
    return t * p * 2.88539008177792681472 + (double)parts.exponent; /* 2 / ln 2 */
}

/* 2^x as float; x beyond what float can tell is 0 or infinity. The series of e^(x ln 2) to its eighth term, on |x| <= 1/2;
 * 2^k in two steps, as one cannot hold subnormal results. */
static inline __attribute__((always_inline)) float pc__exp2_wide(double x)
{
    const double low = x < -160 ? -160 : x, clamped = low > 160 ? 160 : low;
    const pc__double_bits whole = pc__whole_of(clamped);
    const double t = (clamped - pc__whole_value(whole)) * 0.69314718055994530942;
    double p = 1.0 / 40320;
    p = p * t + 1.0 / 5040;
    p = p * t + 1.0 / 720;
    p = p * t + 1.0 / 120;
    p = p * t + 1.0 / 24;
    p = p * t + 1.0 / 6;
    p = p * t + 0.5;
    p = p * t + 1;
    p = p * t + 1;
    const int32_t k = (int32_t)(uint32_t)whole.u, half = k >> 1;
    const pc__float_bits a = {.u = (uint32_t)(half + 127) << 23}, b = {.u = (uint32_t)(k - half + 127) << 23};
    return (float)(p * (double)a.f * (double)b.f);
}

/* condition, 0 or 1, ? yes : no, on bits: many such conditions in a row would become branches. */
static inline __attribute__((always_inline)) float pc__pick(int32_t condition, float yes, float no)
{
    const uint32_t all = 0u - (uint32_t)condition;
    const pc__float_bits a = {.f = yes}, b = {.f = no}, picked = {.u = (a.u & all) | (b.u & ~all)};
    return picked.f;
}

/* Within 0.6 units, with the C standard's answers (annex F) at its ends. */
static inline __attribute__((always_inline)) float pc__pow_f32(float x, float y)
{
    const float infinity = __builtin_inff(), size = __builtin_fabsf(x);
    const float half = y * 0.5f;
    const int32_t is_fraction = __builtin_floorf(y) != y, is_odd = !is_fraction & (__builtin_floorf(half) != half);
    const int32_t is_zero = size == 0, is_infinite = size == infinity, below = y < 0;
    float power = pc__exp2_wide(pc__log2_wide(size) * (double)y);
    power = pc__pick(size == 1, 1, power);
    power = pc__pick((is_zero & below) | (is_infinite & !below), infinity, power);
    power = pc__pick((is_zero & !below) | (is_infinite & below), 0, power);
    power = pc__pick((x < 0) & !is_infinite & is_fraction, __builtin_nanf(""), power);
    pc__float_bits signed_power = {.f = power};
    const pc__float_bits sign = {.f = x};
    signed_power.u ^= sign.u & (uint32_t)is_odd << 31;
    power = pc__pick((x != x) | (y != y), x + y, signed_power.f);
    return pc__pick((y == 0) | (x == 1), 1, power);
}

/* By squaring; what is no whole number is cut to one, so that of powers below 0 those of 1 and -1 are left. Wraps. */
static inline uint64_t pc__pow_whole(uint64_t x, int64_t y)
{
    uint64_t power = y < 0 && x != 1 && x + 1 != 0 ? 0 : 1;
    for (uint64_t left = y < 0 ? 0 - (uint64_t)y : (uint64_t)y; left && power; left >>= 1, x *= x)
        power *= left & 1 ? x : 1;
    return power;
}

static inline uint8_t pc__pow_u8(uint8_t x, uint8_t y)
{
    return (uint8_t)pc__pow_whole(x, y);
}

static inline int32_t pc__pow_i32(int32_t x, int32_t y)
{
    return (int32_t)(uint32_t)pc__pow_whole((uint64_t)(int64_t)x, y);
}

static inline int64_t pc__pow_i64(int64_t x, int64_t y)
{
    return (int64_t)pc__pow_whole((uint64_t)x, y);
}

#endif
