/* half.cuh: 16-bit numbers in kernels: two bytes in memory that are computed with as floats, and rounded to the nearest
 * where they are stored. Without CUDA's cuda_fp16.h and cuda_bf16.h, which are a third of what a kernel takes to compile. */
#ifndef PC__CUDA_HALF_CUH
#define PC__CUDA_HALF_CUH

#include <stdint.h>

namespace pc
{

struct f16 {
    uint16_t bits;
    f16() = default;
    __device__ __forceinline__ explicit f16(float x)
    {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    }
    __device__ __forceinline__ operator float() const
    {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

struct bf16 {
    uint16_t bits;
    bf16() = default;
    __device__ __forceinline__ explicit bf16(float x)
    {
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else /* half of the last place that stays, less one where it is even: a tie then does not carry */
        const uint32_t all = __float_as_uint(x);
        bits = x != x ? 0x7fff : (all + 0x7fff + (all >> 16 & 1)) >> 16;
#endif
    }
    __device__ __forceinline__ operator float() const
    {
        return __uint_as_float(static_cast<unsigned>(bits) << 16);
    }
};

template <class T> __device__ __forceinline__ T of_bits(uint16_t bits)
{
    T x;
    x.bits = bits;
    return x;
}

/* Two numbers, rounded, as a word, the first in its low half. */
template <class T> __device__ __forceinline__ uint32_t word_of(float low, float high)
{
    return T(low).bits | static_cast<uint32_t>(T(high).bits) << 16;
}
#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ uint32_t word_of<f16>(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
template <> __device__ __forceinline__ uint32_t word_of<bf16>(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#endif

/* The type in which values of a type are computed with. */
template <class T> struct math_of {
    typedef T type;
};
template <> struct math_of<f16> {
    typedef float type;
};
template <> struct math_of<bf16> {
    typedef float type;
};
template <class T> using math = typename math_of<T>::type;

} // namespace pc

#endif
