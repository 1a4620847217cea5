/* power.h: powers with whole exponents, the same bits wherever they are computed: products alone, in a fixed order.
 * Plain C that .cu files include too. */
#ifndef PC__POWER_H
#define PC__POWER_H

#include <stdint.h>

#ifdef __CUDACC__
#define PC__EVERYWHERE __host__ __device__
#else
#define PC__EVERYWHERE
#endif

PC__EVERYWHERE static inline double pc__power(double base, int64_t exponent)
{
    double power = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2)
            power *= base;
    return power;
}

#endif
