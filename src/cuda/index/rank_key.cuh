/* rank_key.cuh: elements as keys (ops/sort_key.h), by their type. */
#ifndef PC__CUDA_RANK_KEY_CUH
#define PC__CUDA_RANK_KEY_CUH

#include "cuda/shared/half.cuh"
#include "ops/sort_key.h"

namespace
{

__device__ __forceinline__ uint64_t key_of(uint8_t x)
{
    return pc__key_u8(x);
}
__device__ __forceinline__ uint64_t key_of(int32_t x)
{
    return pc__key_i32(x);
}
__device__ __forceinline__ uint64_t key_of(int64_t x)
{
    return pc__key_i64(x);
}
__device__ __forceinline__ uint64_t key_of(float x)
{
    return pc__key_f32(x);
}
__device__ __forceinline__ uint64_t key_of(double x)
{
    return pc__key_f64(x);
}
__device__ __forceinline__ uint64_t key_of(pc::f16 x)
{
    return pc__key_f32(x);
}
__device__ __forceinline__ uint64_t key_of(pc::bf16 x)
{
    return pc__key_f32(x);
}

/* Way<T>::run(...) for the type of a dtype. */
template <template <class> class Way, class... A> void by_key(int dtype, A... arguments)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return Way<uint8_t>::run(arguments...);
    case PC__CUDA_I32:
        return Way<int32_t>::run(arguments...);
    case PC__CUDA_I64:
        return Way<int64_t>::run(arguments...);
    case PC__CUDA_F16:
        return Way<pc::f16>::run(arguments...);
    case PC__CUDA_BF16:
        return Way<pc::bf16>::run(arguments...);
    case PC__CUDA_F32:
        return Way<float>::run(arguments...);
    default:
        return Way<double>::run(arguments...);
    }
}

} // namespace

#endif
