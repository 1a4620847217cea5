/* cross_entropy_few.cuh: the loss of labels of rows of up to FEW_CLASSES, whose elements their threads have under way and keep.
 * Instructions are what takes time here, so how many threads have a row is the kernel's own number. */
#ifndef PC__CUDA_CROSS_ENTROPY_FEW_CUH
#define PC__CUDA_CROSS_ENTROPY_FEW_CUH

#include "cuda/loss/cross_entropy.cuh"

#define FEW_CLASSES 128 /* 8 threads of 16 */
#define TURN 4          /* classes of a thread, of which none begins a turn behind the last one */
#define FEW_THREADS 512 /* of a block that is alone */

namespace
{

/* Classes of a thread of such a team, at most. */
constexpr int each_of(int team)
{
    return team == 1 ? 8 : 16;
}

/* fmaxf() leaves `so_far`, which is a number, where x is none. */
__device__ __forceinline__ float higher(float so_far, float x)
{
    return fmaxf(so_far, x);
}
__device__ __forceinline__ double higher(double so_far, double x)
{
    return larger()(so_far, x);
}

/* 1 / x of a whole number, to a bit of the last place, without the branch that a division has; of 0 not a number. */
__device__ __forceinline__ double inverse_of(double x)
{
    double near = __fdividef(1.0f, (float)x);
#pragma unroll
    for (int step = 0; step < 2; step++)
        near = fma(near, fma(-x, near, 1.0), near);
    return near;
}

/* What teams of TEAM threads have, of which each one's first knows it: by the block's first warp. */
template <int TEAM, class L>
__device__ __forceinline__ void give_teams(const totals &all, const pc__cuda_targets &to, totals *sums, L *loss,
                                           pc::math<L> *divisor)
{
    __shared__ totals room[FEW_THREADS / TEAM];
    if (threadIdx.x % TEAM == 0)
        room[threadIdx.x / TEAM] = all;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    double lost = 0;
    int rows = 0; /* of a block so many are far from their end */
#pragma unroll
    for (unsigned k = 0; k < (FEW_THREADS / TEAM + 31) / 32; k++) {
        const unsigned i = threadIdx.x + k * 32;
        if (i < blockDim.x / TEAM) {
            lost += room[i].loss;
            rows += (int)room[i].rows;
        }
    }
    rows = warp_join<plus>(rows);
    const double by = divisor_of(to, (double)rows), inverse = inverse_of(by);
    lost = warp_join<plus>(lost);
    if (threadIdx.x != 0)
        return;
    if (gridDim.x > 1) {
        sums[blockIdx.x] = {lost, rows};
    } else {
        *loss = L((pc::math<L>)(lost * inverse));
        *divisor = (pc::math<L>)by;
    }
}

/* norms[rows][2]: a row's maximum, and the logarithm of its sum. */
template <class T, class L, int TEAM>
__global__ void __launch_bounds__(FEW_THREADS, 1)
    few_classes(const T *__restrict__ x, long long pitch, const pc__cuda_targets to, pc::math<L> *__restrict__ norms,
                long long rows, int classes, totals *sums, L *mean, pc__cuda_fault *fault)
{
    typedef pc::math<T> M;
    constexpr int EACH = each_of(TEAM);
    const int lane = threadIdx.x % TEAM, left = classes - lane;
    const int behind = threadIdx.x % 32 / TEAM; /* the warp's first team: its threads stay together */
    totals all = {};
    pc::wait_for_earlier();
    for (long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / TEAM - behind; first < rows;
         first += (long long)gridDim.x * (blockDim.x / TEAM)) {
        const bool mine = first + behind < rows;
        const long long r = mine ? first + behind : first;
        const T *row = x + r * pitch;
        const int64_t label = to.labels[r];
        T in[EACH];
        M value[EACH];
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            if (u % TURN == 0 && u * TEAM >= classes)
                break;
            if (u * TEAM < left)
                in[u] = row[lane + u * TEAM];
        }
        running<T> a = running<T>::nothing();
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            if (u % TURN == 0 && u * TEAM >= classes)
                break;
            value[u] = u * TEAM < left ? M(in[u]) : M(-CUDART_INF);
            a.most = higher(a.most, value[u]);
        }
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2)
            a.most = higher(a.most, __shfl_xor_sync(0xffffffffu, a.most, step));
        /* Not found among those in registers, which took two instructions for each. */
        const target<T> wanted = target_of(row, label, (unsigned)classes);
        const M base = a.base();
        M sums_of[TURN] = {}; /* so that none waits for another one's power */
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            if (u % TURN == 0 && u * TEAM >= classes)
                break;
            sums_of[u % TURN] += exp_of(value[u] - base); /* of -inf nothing */
        }
        a.sum = (sums_of[0] + sums_of[1]) + (sums_of[2] + sums_of[3]);
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2)
            a.sum += __shfl_xor_sync(0xffffffffu, a.sum, step);
        if (lane == 0 && mine)
            add(all, to, a, wanted, r, classes, norms, fault);
    }
    give_teams<TEAM>(all, to, sums, mean, norms + 2 * rows);
}

/* Threads for a row. */
inline int team_of_few(long long classes)
{
    int team = 1;
    while (team * each_of(team) < classes)
        team *= 2;
    return team;
}

/* Its blocks: one where that has threads for all rows; else BLOCKS_MOST at most. */
template <class T, class L>
unsigned start_few_classes(cudaStream_t queue, int early, const pc__view *x, const pc__cuda_targets &to, L *loss,
                           pc::math<L> *norms, totals *sums, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1], pitch = x->strides[0];
    const int team = team_of_few(classes);
    const long long wanted = rows * team, blocks = (wanted + THREADS - 1) / THREADS;
    unsigned grid = blocks < BLOCKS_MOST ? (unsigned)blocks : BLOCKS_MOST, threads = THREADS;
    if (wanted <= FEW_THREADS) {
        grid = 1;
        threads = wanted < 32 ? 32 : (unsigned)(wanted + 31) / 32 * 32;
    }
    (void)pc::start(team == 1   ? few_classes<T, L, 1>
                    : team == 2 ? few_classes<T, L, 2>
                    : team == 4 ? few_classes<T, L, 4>
                                : few_classes<T, L, 8>,
                    grid, threads, queue, early, (const T *)x->data, pitch, to, norms, rows, (int)classes, sums, loss,
                    fault);
    return grid;
}

} // namespace

#endif
