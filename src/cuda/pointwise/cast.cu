/* cast.cu: conversion between dtypes, strided copies, filling. The walk is in loop.cuh. */
#include "cuda/pointwise/cast.h"
#include "cuda/shared/functions.cuh"
#include "cuda/pointwise/tiles.cuh"

namespace
{

using pc::bf16;
using pc::f16;
using pc::run;
using pc::shape_of;

/* bool: any byte that is 0 or 1 */
struct truth {
};

template <class T, class F> struct converted {
    typedef T type;
    static __device__ T from(F a)
    {
        return static_cast<T>(static_cast<pc::math<F>>(a));
    }
};

template <class F> struct converted<truth, F> {
    typedef uint8_t type;
    static __device__ uint8_t from(F a)
    {
        return static_cast<pc::math<F>>(a) != 0;
    }
};

/* 16-bit numbers come from all others as floats. */
#define TO_HALF(T)                                                                                                     \
    template <class F> struct converted<T, F> {                                                                        \
        typedef T type;                                                                                                \
        static __device__ T from(F a)                                                                                  \
        {                                                                                                              \
            return T(static_cast<float>(a));                                                                           \
        }                                                                                                              \
    };
TO_HALF(f16)
TO_HALF(bf16)

/* As tensor/whole.h has it; the GPU's own conversion would go to the nearest end. */
template <class F> __device__ int64_t whole(F a, int64_t)
{
    return a >= static_cast<F>(-0x1p63) && a < static_cast<F>(0x1p63) ? static_cast<int64_t>(a) : INT64_MIN;
}

template <class F> __device__ int32_t whole(F a, int32_t)
{
    return a >= static_cast<F>(-0x1p31) && a < static_cast<F>(0x1p31) ? static_cast<int32_t>(a) : INT32_MIN;
}

template <class F> __device__ uint8_t whole(F a, uint8_t)
{
    return static_cast<uint8_t>(whole(a, int64_t()));
}

#define FROM_FLOAT(T, F)                                                                                               \
    template <> struct converted<T, F> {                                                                               \
        typedef T type;                                                                                                \
        static __device__ T from(F a)                                                                                  \
        {                                                                                                              \
            return whole(static_cast<pc::math<F>>(a), T());                                                            \
        }                                                                                                              \
    };
FROM_FLOAT(uint8_t, f16)
FROM_FLOAT(int32_t, f16)
FROM_FLOAT(int64_t, f16)
FROM_FLOAT(uint8_t, bf16)
FROM_FLOAT(int32_t, bf16)
FROM_FLOAT(int64_t, bf16)
FROM_FLOAT(uint8_t, float)
FROM_FLOAT(int32_t, float)
FROM_FLOAT(int64_t, float)
FROM_FLOAT(uint8_t, double)
FROM_FLOAT(int32_t, double)
FROM_FLOAT(int64_t, double)

template <class T, class F> struct cast_of : shape_of<typename converted<T, F>::type, 1, F> {
    __device__ typename converted<T, F>::type operator()(F a) const
    {
        return converted<T, F>::from(a);
    }
};

template <class F> void cast_from(const pc__cuda_launch *l, int to)
{
    switch (to) {
    case PC__CUDA_BOOL:
        return run(l, cast_of<truth, F>());
    case PC__CUDA_U8:
        return run(l, cast_of<uint8_t, F>());
    case PC__CUDA_I32:
        return run(l, cast_of<int32_t, F>());
    case PC__CUDA_I64:
        return run(l, cast_of<int64_t, F>());
    case PC__CUDA_F16:
        return run(l, cast_of<f16, F>());
    case PC__CUDA_BF16:
        return run(l, cast_of<bf16, F>());
    case PC__CUDA_F32:
        return run(l, cast_of<float, F>());
    default:
        return run(l, cast_of<double, F>());
    }
}

template <class T> void fill(const pc__cuda_launch *l, uint64_t bits)
{
    pc::fill_of<T> f;
    f.value = static_cast<T>(bits);
    run(l, f);
}

template <class T, class A> void saxpy(const pc__cuda_launch *l, A factor)
{
    pc::saxpy_of<T> f;
    f.factor = static_cast<pc::math<T>>(factor);
    run(l, f);
}

template <class T> struct counted : converted<T, double> {
};

template <> struct counted<int32_t> { /* a list that goes on past INT32_MAX wraps */
    static __device__ int32_t from(double a)
    {
        return static_cast<int32_t>(whole(a, int64_t()));
    }
};

template <class T>
__global__ void __launch_bounds__(pc::THREADS) count_up(T *data, int64_t n, double start, double step)
{
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x)
        data[i] = counted<T>::from(start + static_cast<double>(i) * step);
}

} // namespace

void pc__cuda_convert(const pc__cuda_launch *l, int from, int to)
{
    if (from == to && (from == PC__CUDA_F16 || from == PC__CUDA_BF16))
        return run(l, cast_of<uint16_t, uint16_t>()); /* the bits, of NaNs too */
    switch (from) {
    case PC__CUDA_BOOL: /* its bytes are the numbers 0 and 1 */
        return cast_from<uint8_t>(l, to == PC__CUDA_BOOL ? PC__CUDA_U8 : to);
    case PC__CUDA_U8:
        return cast_from<uint8_t>(l, to);
    case PC__CUDA_I32:
        return cast_from<int32_t>(l, to);
    case PC__CUDA_I64:
        return cast_from<int64_t>(l, to);
    case PC__CUDA_F16:
        return cast_from<f16>(l, to);
    case PC__CUDA_BF16:
        return cast_from<bf16>(l, to);
    case PC__CUDA_F32:
        return cast_from<float>(l, to);
    default:
        return cast_from<double>(l, to);
    }
}

void pc__cuda_transpose(const pc__cuda_launch *l, size_t element_bytes, int along)
{
    if (element_bytes == 1)
        pc::run_tiles<true>(l, along, 1, cast_of<uint8_t, uint8_t>());
    else if (element_bytes == 2)
        pc::run_tiles<true>(l, along, 1, cast_of<uint16_t, uint16_t>());
    else if (element_bytes == 4)
        pc::run_tiles<true>(l, along, 1, cast_of<uint32_t, uint32_t>());
    else
        pc::run_tiles<true>(l, along, 1, cast_of<uint64_t, uint64_t>());
}

void pc__cuda_fill(const pc__cuda_launch *l, size_t element_bytes, uint64_t bits)
{
    if (element_bytes == 1)
        fill<uint8_t>(l, bits);
    else if (element_bytes == 2)
        fill<uint16_t>(l, bits);
    else if (element_bytes == 4)
        fill<uint32_t>(l, bits);
    else
        fill<uint64_t>(l, bits);
}

void pc__cuda_saxpy(const pc__cuda_launch *l, int dtype, double factor, uint64_t whole_factor)
{
    switch (dtype) {
    case PC__CUDA_U8:
        return saxpy<uint8_t>(l, whole_factor);
    case PC__CUDA_I32:
        return saxpy<uint32_t>(l, whole_factor);
    case PC__CUDA_I64:
        return saxpy<uint64_t>(l, whole_factor);
    case PC__CUDA_F16:
        return saxpy<f16>(l, factor);
    case PC__CUDA_BF16:
        return saxpy<bf16>(l, factor);
    case PC__CUDA_F32:
        return saxpy<float>(l, factor);
    default:
        return saxpy<double>(l, factor);
    }
}

void pc__cuda_arange(void *data, int dtype, int64_t n, double start, double step, int multiprocessors,
                     cudaStream_t queue)
{
    const int64_t all = (n + pc::THREADS - 1) / pc::THREADS, most = static_cast<int64_t>(multiprocessors) * 32;
    const unsigned blocks = static_cast<unsigned>(all < most ? all : most);
    switch (dtype) {
    case PC__CUDA_U8:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<uint8_t *>(data), n, start, step);
    case PC__CUDA_I32:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<int32_t *>(data), n, start, step);
    case PC__CUDA_I64:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<int64_t *>(data), n, start, step);
    case PC__CUDA_F16:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<f16 *>(data), n, start, step);
    case PC__CUDA_BF16:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<bf16 *>(data), n, start, step);
    case PC__CUDA_F32:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<float *>(data), n, start, step);
    default:
        return count_up<<<blocks, pc::THREADS, 0, queue>>>(static_cast<double *>(data), n, start, step);
    }
}

int pc__cuda_code_version(void)
{
    cudaFuncAttributes code;
    if (cudaFuncGetAttributes(&code, count_up<float>) == cudaSuccess)
        return code.ptxVersion < code.binaryVersion ? code.ptxVersion : code.binaryVersion;
    (void)cudaGetLastError();
    return 0;
}
