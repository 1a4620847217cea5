/* most.cu: the largest or the smallest number of each row, whose place nobody asks for: NaN beats all. */
#include "cuda/reduce/piece.cuh"
#include "cuda/reduce/reduce.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

template <class M> __device__ __forceinline__ M larger_of(M a, M b)
{
    return b > a || b != b ? b : a;
}

#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ float larger_of(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}
#endif

template <bool LEAST, class M> __device__ __forceinline__ M better(M a, M b)
{
    if constexpr (!LEAST)
        return larger_of(a, b);
    else if constexpr (sizeof(M) == sizeof(float) && M(0.5f) > M(0))
        return -larger_of(-a, -b);
    else
        return b < a || b != b ? b : a;
}

/* Over `lanes` neighbours of a warp. */
template <bool LEAST, class M> __device__ __forceinline__ M best_of(M best, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        best = better<LEAST>(best, static_cast<M>(__shfl_xor_sync(0xffffffffu, best, step)));
    return best;
}

/* [outer * parts] pieces, `lanes` threads each. */
template <class T, bool LEAST>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    rows(const __grid_constant__ pc__cuda_reduction r, const T *__restrict__ in, T *__restrict__ out)
{
    typedef pc::math<T> M;
    __shared__ M warps[PC__WIDE_THREADS / 32];
    const int lanes = r.lanes, lane = threadIdx.x % lanes;
    const piece p = piece_of(r);
    const T *x = in + p.row * r.reduced + p.begin;
    pc::wait_for_earlier();
    M best = *x;
    pc::each_in_row<4>(x, p.count, lane, lanes, [&](const auto &values, unsigned) {
#pragma unroll
        for (int k = 0; k < static_cast<int>(sizeof(values) / sizeof(T)); k++)
            best = better<LEAST>(best, M(values[k]));
    });
    best = best_of<LEAST>(best, min(lanes, 32));
    if (lanes > 32) {
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = best;
        __syncthreads();
        if (threadIdx.x >= 32)
            return;
        best = best_of<LEAST>(warps[threadIdx.x % (lanes / 32)], lanes / 32);
    }
    if (lane == 0 && p.there)
        out[p.id] = T(best);
}

template <class T> void launch(const pc__cuda_reduction *r, const void *in, void *out)
{
    const int threads = r->lanes > 256 ? r->lanes : 256;
    const int64_t per_block = threads / r->lanes, blocks = (r->outer * r->parts + per_block - 1) / per_block;
    (void)pc::start(r->least ? rows<T, true> : rows<T, false>, static_cast<unsigned>(blocks),
                    static_cast<unsigned>(threads), r->queue, r->early, *r, static_cast<const T *>(in),
                    static_cast<T *>(out));
}

} // namespace

void pc__cuda_most(const pc__cuda_reduction *r, const void *in, int dtype, void *out)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return launch<uint8_t>(r, in, out);
    case PC__CUDA_I32:
        return launch<int32_t>(r, in, out);
    case PC__CUDA_I64:
        return launch<long long>(r, in, out);
    case PC__CUDA_F16:
        return launch<pc::f16>(r, in, out);
    case PC__CUDA_BF16:
        return launch<pc::bf16>(r, in, out);
    case PC__CUDA_F32:
        return launch<float>(r, in, out);
    default:
        return launch<double>(r, in, out);
    }
}
