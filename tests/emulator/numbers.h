/* numbers.h: CUDA's functions of numbers, those that kernels use. Those with a rounding in their names round so; the
 * compiler is told to join no product with a sum. */
#ifndef PC_EMULATOR_NUMBERS_H
#define PC_EMULATOR_NUMBERS_H

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

template <class To, class From> inline To pc_emulator_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "bits of one size");
    To bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline unsigned __float_as_uint(float x)
{
    return pc_emulator_bits<unsigned>(x);
}
inline float __uint_as_float(unsigned x)
{
    return pc_emulator_bits<float>(x);
}
inline float __int_as_float(int x)
{
    return pc_emulator_bits<float>(x);
}
inline double __longlong_as_double(long long x)
{
    return pc_emulator_bits<double>(x);
}
inline int __double2hiint(double x)
{
    return static_cast<int>(pc_emulator_bits<uint64_t>(x) >> 32);
}
inline int __double2loint(double x)
{
    return static_cast<int>(pc_emulator_bits<uint64_t>(x));
}
inline double __hiloint2double(int high, int low)
{
    return pc_emulator_bits<double>(static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 |
                                    static_cast<unsigned>(low));
}

inline double __dmul_rn(double a, double b)
{
    return a * b;
}
inline double __dadd_rn(double a, double b)
{
    return a + b;
}
inline double __dsub_rn(double a, double b)
{
    return a - b;
}
inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
inline double __dadd_rd(double a, double b)
{
    int before = fegetround();
    fesetround(FE_DOWNWARD);
    volatile double x = a, y = b; // the sum stays between the two
    volatile double sum = x + y;
    fesetround(before);
    return sum;
}

/* The place of the lowest bit that is set, from 1 on. */
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline float __expf(float x)
{
    return expf(x);
}
inline float __log2f(float x)
{
    return log2f(x);
}
inline float __fdividef(float a, float b)
{
    return a / b;
}
inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
inline void sincospi(double x, double *s, double *c)
{
    *s = sin(x * M_PI);
    *c = cos(x * M_PI);
}
inline void sincospif(float x, float *s, float *c)
{
    *s = static_cast<float>(sin(x * M_PI));
    *c = static_cast<float>(cos(x * M_PI));
}

/* Of two types their common one, as C's arithmetic has it; of two floats the one that is a number. */
template <class A, class B> inline auto min(A a, B b) -> decltype(a + b)
{
    using T = decltype(a + b);
    T x = a, y = b;
    return x != x || y < x ? y : x;
}
template <class A, class B> inline auto max(A a, B b) -> decltype(a + b)
{
    using T = decltype(a + b);
    T x = a, y = b;
    return x != x || x < y ? y : x;
}

#endif
