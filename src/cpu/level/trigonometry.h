/* trigonometry.h: sine and cosine of float, of any size, without branches and calls (functions.h says why). */
#ifndef PC__TRIGONOMETRY_H
#define PC__TRIGONOMETRY_H

#include "cpu/level/float_bits.h"

/* 2^(24 k) in quarters of a turn, which is 2^(24 k) 2 / pi, whole turns taken away, for k from 0 to 4: the sum of three
 * numbers. The first is a multiple of 2^-25 and the second of 2^-51, so that 24 bits times one of them is exact. */
static const double pc__quarter_turns[5][3] = {{0x1.45f306p-1, 0x1.b9391p-26, 0x1.529fc2757d1f5p-52},
                                               {-0x1.236377p-1, -0x1.ab580fp-26, -0x1.8a82e0acb223fp-52},
                                               {0x1.529fcp-4, 0x1.3abe8fp-27, 0x1.534ddc0db6296p-52},
                                               {0x1.3abe8cp-3, 0x1.d4d377p-26, 0x1.b6c52b3278872p-57},
                                               {0x1.f534dd8p+0, 0x1.036d8ap-26, 0x1.5993c439041fep-52}};

/* An angle: radians from about -pi / 4 to pi / 4 behind `quarters` of a turn, of which the last two bits count. */
typedef struct pc__angle {
    double radians;
    uint32_t quarters;
} pc__angle;

#define PC__SMALL_ANGLE 0x1p16f

/* Of |x| below PC__SMALL_ANGLE. Pi / 2 in two numbers, the first of 33 bits, so that the first product and difference are
 * exact. Rounding by float's last bits may go wrong by some thousandths of a quarter. */
static inline pc__angle pc__small_angle_of(float x)
{
    const pc__float_bits shifted = {.f = x * 0x1.45f306p-1f + 12582912.0f};
    const double k = (double)(shifted.f - 12582912.0f);
    return (pc__angle){(double)x - k * 0x1.921fb544p+0 - k * 0x1.0b4611a626331p-34, shifted.u};
}

/* Every step but the last sum is exact, so that the part of a quarter is, too, where x is next to a multiple of pi / 2.
 * Infinity and NaN are NaN. Selects in place of subscripts, and of double: those become vector code. A small angle has the
 * bits of the function above. */
static inline pc__angle pc__angle_of(float x)
{
    const double wide = (double)x, size = __builtin_fabs(wide);
    double scale = 1, first = pc__quarter_turns[0][0], second = pc__quarter_turns[0][1],
           third = pc__quarter_turns[0][2];
#define PC__FROM(exponent, k)                                                                                          \
    scale = size >= 0x1p##exponent ? 0x1p24 / 0x1p##exponent : scale;                                                  \
    first = size >= 0x1p##exponent ? pc__quarter_turns[k][0] : first;                                                  \
    second = size >= 0x1p##exponent ? pc__quarter_turns[k][1] : second;                                                \
    third = size >= 0x1p##exponent ? pc__quarter_turns[k][2] : third;
    PC__FROM(48, 1)
    PC__FROM(72, 2)
    PC__FROM(96, 3)
    PC__FROM(120, 4)
#undef PC__FROM
    const double m = wide * scale;
    const double coarse = m * first, middle = m * second, fine = m * third;
    const pc__double_bits most = pc__whole_of(coarse), more = pc__whole_of(middle);
    const double sum = coarse - pc__whole_value(most) + (middle - pc__whole_value(more));
    const pc__double_bits rest = pc__whole_of(sum + fine);
    const double part = sum - pc__whole_value(rest) + fine;
    const pc__angle small = pc__small_angle_of(x);
    return (pc__angle){size < (double)PC__SMALL_ANGLE ? small.radians : part * 1.57079632679489661923,
                       __builtin_fabsf(x) < PC__SMALL_ANGLE ? small.quarters : (uint32_t)(most.u + more.u + rest.u)};
}

/* The sine of an angle, polynomials as in Cephes, sinf and cosf. */
static inline float pc__sin_of(pc__angle angle)
{
    const float r = (float)angle.radians, rest = (float)(angle.radians - (double)r), z = r * r;
    float s = -1.9515295891e-4f;
    s = s * z + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * r + rest + r;
    float c = 2.443315711809948e-5f;
    c = c * z - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1;
    pc__float_bits y = {.f = angle.quarters & 1 ? c : s};
    y.u ^= (angle.quarters & 2) << 30;
    return y.f;
}

static inline float pc__cos_of(pc__angle angle)
{
    angle.quarters++;
    return pc__sin_of(angle);
}

/* Within 1.5 units. */
static inline float pc__sin_f32(float x)
{
    return pc__sin_of(pc__angle_of(x));
}

static inline float pc__cos_f32(float x)
{
    return pc__cos_of(pc__angle_of(x));
}

#endif
