/* depthwise_sums.cuh: a block's part of weights' gradients of convolutions of each channel alone. */
#ifndef PC__CUDA_CONV_DEPTHWISE_SUMS_CUH
#define PC__CUDA_CONV_DEPTHWISE_SUMS_CUH

#include "cuda/conv/depthwise.cuh"

namespace
{

/* Sums of a block's threads for K taps of N channels lie in shared memory for as many taps at once. */
constexpr int taps_at_once(int taps)
{
    return taps < 14 ? taps : 14;
}

/* The sums of threads become those of the block: sums[part][channel][tap], from tap `first`. In `shared` there is room for
 * taps_at_once(K) packs of each thread. */
template <class M, int N, int K>
__device__ __forceinline__ void leave_sums(const pc__cuda_groups &s, const M (&sum)[K][N], M *shared, int first,
                                           M *sums)
{
    constexpr int ROOM = taps_at_once(K);
    const int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int width = blockDim.x * N, taps = s.kh * s.kw;
#pragma unroll
    for (int round = 0; round < K; round += ROOM) {
        __syncthreads();
#pragma unroll
        for (int t = 0; t < ROOM && round + t < K; t++) {
            vector<M, N> pack;
#pragma unroll
            for (int i = 0; i < N; i++)
                pack.at[i] = sum[round + t][i];
            *reinterpret_cast<vector<M, N> *>(shared + (t * threads + thread) * N) = pack;
        }
        __syncthreads();
        for (int i = thread; i < (K - round < ROOM ? K - round : ROOM) * width; i += threads) {
            const int t = i / width, column = i - t * width, to = blockIdx.y * width + column;
            M all = 0;
#pragma unroll 8
            for (int r = 0; r < (int)blockDim.y; r++)
                all += shared[(t * threads * N) + r * width + column];
            if (to < s.c && first + round + t < taps)
                sums[((long long)blockIdx.x * s.c + to) * taps + first + round + t] = all;
        }
    }
}

} // namespace

#endif
