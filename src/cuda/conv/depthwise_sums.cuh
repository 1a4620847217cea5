/* depthwise_sums.cuh: a block's part of weights' gradients of convolutions of each channel alone. */
#ifndef PC__CUDA_CONV_DEPTHWISE_SUMS_CUH
#define PC__CUDA_CONV_DEPTHWISE_SUMS_CUH

#include "cuda/conv/depthwise.cuh"

namespace
{

/* The sums of a thread row, for K taps of N channels, become those of the block: sums[part][channel][tap], from tap `first`. */
template <class M, int N, int K>
__device__ __forceinline__ void leave_sums(const pc__cuda_groups &s, const M (&sum)[K][N], M *shared, int first,
                                           M *sums)
{
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, width = blockDim.x * N, taps = s.kh * s.kw;
    const int to = blockIdx.y * width + thread;
#pragma unroll
    for (int t = 0; t < K; t++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++)
            shared[thread * N + i] = sum[t][i];
        __syncthreads();
        if (thread >= width || to >= s.c || first + t >= taps)
            continue;
        M all = 0;
        for (unsigned r = 0; r < blockDim.y; r++)
            all += shared[r * width + thread];
        sums[((long long)blockIdx.x * s.c + to) * taps + first + t] = all;
    }
}

} // namespace

#endif
