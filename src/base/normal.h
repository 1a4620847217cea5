/* normal.h: two independent normal numbers of two words (Box and Muller, Annals of Mathematical Statistics 29, 1958), for
 * hosts and kernels. Who includes it is compiled without fused multiply-add, so that every device and every SIMD level has the
 * same bits; no call, no branch, so that compilers make vectors of it. Errors are below 2^-50 of the value. */
#ifndef PC__NORMAL_H
#define PC__NORMAL_H

#include "base/philox.h"

#include <math.h>
#include <string.h>

PC__BOTH double pc__double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -log((word + 1) / 2^32), which is in [0, 32 log 2]. With word + 1 = 2^k m, m from 1/sqrt(2) to sqrt(2), and
 * s = (m - 1) / (m + 1), it is (32 - k) log 2 - 2 (s + s^3 / 3 + s^5 / 5 + ...). */
PC__BOTH double pc__minus_log(uint32_t word)
{
    const double x = (double)(int32_t)(word ^ 0x80000000u) + (0x1p31 + 1); /* signed numbers are converted in vectors */
    const uint64_t least = 0x3FE6A09E667F3BCDu;                            /* the bits of 1/sqrt(2) */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t k = (bits - least) >> 52;
    const double m = pc__double_of(bits - (k << 52)), s = (m - 1) / (m + 1), z = s * s;
    double sum = 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    const double twice = 2 * s;
    const double halvings = (0x1p52 + 32) - pc__double_of(0x4330000000000000u | k); /* of 2^52 + k, exact */
    return halvings * 0.693147180559945309417 - (twice + twice * (z * sum));
}

/* The point at word / 2^32 of a turn, by Taylor's series within an eighth of a turn around the nearest quarter. */
PC__BOTH void pc__around(uint32_t word, double *cosine, double *sine)
{
    const uint32_t quarter = (word + 0x20000000u) >> 30;
    const double x = (double)(int32_t)(word - (quarter << 30)) * (6.283185307179586476925 * 0x1p-32), z = x * x;
    double s = -1.0 / 1307674368000, c = 1.0 / 20922789888000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    s = x + x * (z * s);
    c = 1 - (0.5 * z - z * (z * c));
    const uint64_t swapped = 0 - (uint64_t)(quarter & 1);
    const uint64_t c_sign = (uint64_t)((quarter + 1) >> 1 & 1) << 63, s_sign = (uint64_t)(quarter >> 1 & 1) << 63;
    uint64_t cb, sb;
    memcpy(&cb, &c, sizeof cb);
    memcpy(&sb, &s, sizeof sb);
    const uint64_t differ = (cb ^ sb) & swapped;
    *cosine = pc__double_of((cb ^ differ) ^ c_sign);
    *sine = pc__double_of((sb ^ differ) ^ s_sign);
}

PC__BOTH void pc__normal_two(uint32_t a, uint32_t b, float *first, float *second)
{
    const double radius = sqrt(2 * pc__minus_log(a));
    double cosine, sine;
    pc__around(b, &cosine, &sine);
    *first = (float)(radius * cosine);
    *second = (float)(radius * sine);
}

#endif
