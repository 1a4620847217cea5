/* fold_truth.cu: whether any number is not 0, or all are: whether one was found that decides. */
#include "cuda/reduce/fold.cuh"

namespace
{

/* A 16-bit number, whose sign is no part of its being 0. */
struct half_bits {
    uint16_t bits;
    __device__ __forceinline__ bool operator!=(int) const
    {
        return (bits & 0x7fff) != 0;
    }
};

template <class T> struct truth {
    typedef T type;
    typedef unsigned state;
    uint8_t *out;
    bool all;
    explicit truth(const pc__cuda_fold *d) : out(static_cast<uint8_t *>(d->out)), all(d->kind != 0)
    {
    }
    __device__ __forceinline__ unsigned nothing() const
    {
        return 0;
    }
    template <int N> __device__ __forceinline__ void see(unsigned &found, const T (&x)[N], int64_t) const
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            found |= (x[k] != 0) != all;
    }
    __device__ __forceinline__ void meet(unsigned &found, unsigned later) const
    {
        found |= later;
    }
    __device__ __forceinline__ void store(unsigned found, int64_t i) const
    {
        out[i] = (found != 0) != all;
    }
};

} // namespace

void pc__cuda_fold_truth(const pc__cuda_fold *d)
{
    switch (d->from) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return fold(d, truth<uint8_t>(d));
    case PC__CUDA_I32:
        return fold(d, truth<int32_t>(d));
    case PC__CUDA_I64:
        return fold(d, truth<long long>(d));
    case PC__CUDA_F32:
        return fold(d, truth<float>(d));
    case PC__CUDA_F64:
        return fold(d, truth<double>(d));
    default:
        return fold(d, truth<half_bits>(d));
    }
}
