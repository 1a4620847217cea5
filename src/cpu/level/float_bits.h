/* float_bits.h: floating-point numbers as bits, and whole numbers by adding what leaves no room for fractions. */
#ifndef PC__FLOAT_BITS_H
#define PC__FLOAT_BITS_H

#include <stdint.h>

typedef union pc__float_bits {
    float f;
    uint32_t u; /* arithmetic on bits wraps */
} pc__float_bits;

typedef union pc__double_bits {
    double f;
    uint64_t u;
} pc__double_bits;

/* x = 2^exponent part, the part between sqrt(1/2) and sqrt(2), of a number above 0, which may be subnormal. */
typedef struct pc__float_parts {
    float part;
    int32_t exponent;
} pc__float_parts;

static inline pc__float_parts pc__parts_of(float x)
{
    const uint32_t root = 0x3f3504f3, one = 0x3f800000; /* sqrt(1/2) and 1 as bits */
    const int32_t subnormal = x < 1.17549435e-38f;
    pc__float_bits m = {.f = subnormal ? x * 33554432.0f : x};
    m.u += one - root;
    const int32_t exponent = (int32_t)(m.u >> 23) - 127 - (subnormal ? 25 : 0);
    m.u = (m.u & 0x007fffff) + root;
    return (pc__float_parts){m.f, exponent};
}

/* The whole number next to x, below 2^51: adding 1.5 x 2^52 rounds, and the last bits are the number's then. */
static inline pc__double_bits pc__whole_of(double x)
{
    return (pc__double_bits){.f = x + 6755399441055744.0};
}

static inline double pc__whole_value(pc__double_bits whole)
{
    return whole.f - 6755399441055744.0;
}

#endif
