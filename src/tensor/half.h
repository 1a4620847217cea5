/* half.h: 16-bit numbers to and from float, without branches, so that loops over them become vector code. */
#ifndef PC__HALF_H
#define PC__HALF_H

#include <paracord/half.h>
#include <string.h>

static inline uint32_t pc__bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float pc__float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float pc__bf16_float(pc_bf16 value)
{
    return pc__float_of((uint32_t)value.bits << 16);
}

/* Half of the last place that stays, less one where it is even: a tie then does not carry. */
static inline pc_bf16 pc__bf16_of(float value)
{
    uint32_t bits = pc__bits_of(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (pc_bf16){(uint16_t)(value != value ? bits >> 16 | 0x40 : rounded)};
}

/* The fields move into a float's, whose exponent is then too small by 127 - 15: the product puts that right, for
 * subnormal numbers too. */
static inline float pc__f16_float(pc_f16 value)
{
    uint32_t magnitude = (uint32_t)(value.bits & 0x7fff) << 13, sign = (uint32_t)(value.bits & 0x8000) << 16;
    uint32_t finite = pc__bits_of(pc__float_of(magnitude) * 0x1p112f), beyond = magnitude | 0x7f800000;
    return pc__float_of(sign | (magnitude < 0x0f800000 ? finite : beyond));
}

/* Below 2^-14 results are multiples of 2^-24, which is the last place of floats from 0.5 to 1: adding 0.5 rounds. */
static inline pc_f16 pc__f16_of(float value)
{
    uint32_t bits = pc__bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t small = pc__bits_of(pc__float_of(magnitude) + 0.5f) - 0x3f000000;
    uint32_t beyond = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : 0x7c00;
    uint32_t rounded = magnitude < 0x38800000 ? small : magnitude < 0x47800000 ? normal : beyond;
    return (pc_f16){(uint16_t)(sign | rounded)};
}

#endif
