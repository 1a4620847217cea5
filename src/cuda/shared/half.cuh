/* half.cuh: 16-bit numbers in kernels: two bytes in memory that are computed with as floats, and rounded to the nearest
 * where they are stored. */
#ifndef PC__CUDA_HALF_CUH
#define PC__CUDA_HALF_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace pc
{

struct f16 {
    uint16_t bits;
    f16() = default;
    __device__ __forceinline__ explicit f16(float x) : bits(__half_as_ushort(__float2half_rn(x)))
    {
    }
    __device__ __forceinline__ operator float() const
    {
        return __half2float(__ushort_as_half(bits));
    }
};

struct bf16 {
    uint16_t bits;
    bf16() = default;
    __device__ __forceinline__ explicit bf16(float x) : bits(__bfloat16_as_ushort(__float2bfloat16_rn(x)))
    {
    }
    __device__ __forceinline__ operator float() const
    {
        return __uint_as_float(static_cast<unsigned>(bits) << 16);
    }
};

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
