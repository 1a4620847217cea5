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
