/* cross_entropy.cuh: what a row of logits loses by its label, and how the losses of blocks become one. */
#ifndef PC__CUDA_CROSS_ENTROPY_CUH
#define PC__CUDA_CROSS_ENTROPY_CUH

#include "cuda/loss/mean.cuh"
#include "cuda/reduce/running.cuh"

#define WARPS (THREADS / 32)
#define FEW_ROWS 64 /* which are cut where they are long: one block joins their pieces */
#define LONG_CLASSES                                                                                                   \
    16384 /* for which a block that has a row has so many threads: few blocks have room for rows of that length */
#define LONG_THREADS 512

namespace
{

inline int threads_for(long long classes)
{
    return classes > LONG_CLASSES ? LONG_THREADS : THREADS;
}

template <class T> using running = pc::running<T, false>;

/* The first wrong label of a stream is kept for the host. */
__device__ inline void report(pc__cuda_fault *fault, long long row, long long label, long long classes)
{
    if (atomicCAS(&fault->kind, (int)PC__FAULT_NONE, (int)PC__FAULT_LABEL) != PC__FAULT_NONE)
        return;
    fault->where = row;
    fault->value = label;
    fault->limit = classes;
    __threadfence_system();
}

/* The label of a row, whose number is 0 where it is out of range. */
template <class T> struct target {
    int64_t label;
    bool valid;
    pc::math<T> own;
};

template <class T> __device__ __forceinline__ target<T> target_of(const T *row, int64_t label, unsigned classes)
{
    const bool valid = label >= 0 && label < classes;
    return {label, valid, valid ? pc::math<T>(row[label]) : pc::math<T>(0)};
}

/* What rows lose, and how many count. */
struct alignas(16) totals {
    double loss;
    long long rows;
};

/* What a row loses that comes to `a`; its norms are noted, where there is a place. */
template <class T>
__device__ inline void add(totals &all, const pc__cuda_targets &to, const running<T> &a, const target<T> &wanted,
                           long long r, unsigned classes, pc::math<T> *norms, pc__cuda_fault *fault)
{
    const pc::math<T> norm = log_of(a.sum);
    if (norms)
        norms[2 * r] = a.most, norms[2 * r + 1] = norm;
    if (wanted.label == to.ignored)
        return;
    if (wanted.valid)
        all.loss += (double)(norm - (wanted.own - a.most)), all.rows++;
    else
        report(fault, r, wanted.label, classes);
}

/* By what the loss of so many rows is divided. */
__device__ __forceinline__ double divisor_of(const pc__cuda_targets &to, double rows)
{
    return to.is_sum || (to.none_is_0 && rows == 0) ? 1 : rows;
}

__device__ __forceinline__ totals operator+(const totals &a, const totals &b)
{
    return {a.loss + b.loss, a.rows + b.rows};
}

__device__ __forceinline__ totals swapped(const totals &all, int distance)
{
    return {::swapped(all.loss, distance), ::swapped(all.rows, distance)};
}

/* The totals of a block go to their places in `sums`, or, when the block is alone, as the loss to *loss. Of several, a
 * second kernel adds them up: the block that comes last would have to wait for memory three times. */
template <class L>
__device__ inline void give(totals all, const pc__cuda_targets &to, totals *sums, L *loss, pc::math<L> *divisor)
{
    __shared__ totals room[WIDE_THREADS / 32];
    all = over_block(all, room);
    if (threadIdx.x != 0)
        return;
    if (gridDim.x > 1) {
        sums[blockIdx.x] = all;
        return;
    }
    const double by = divisor_of(to, (double)all.rows);
    *loss = L((pc::math<L>)(all.loss / by));
    *divisor = (pc::math<L>)by;
}

/* One block: the loss from the totals of `blocks` blocks. */
template <class L>
__global__ void __launch_bounds__(THREADS)
    loss_of_blocks(const totals *sums, int blocks, const pc__cuda_targets to, L *loss, pc::math<L> *divisor)
{
    totals all = {};
    pc::wait_for_earlier();
    for (int i = threadIdx.x; i < blocks; i += THREADS)
        all = all + sums[i];
    give(all, to, (totals *)NULL, loss, divisor);
}

template <class L>
void start_loss_of_blocks(cudaStream_t queue, int early, const totals *sums, unsigned blocks,
                          const pc__cuda_targets &to, L *loss, pc::math<L> *divisor)
{
    (void)pc::start(loss_of_blocks<L>, 1, blocks < THREADS ? (blocks + 31) / 32 * 32 : THREADS, queue, early, sums,
                    (int)blocks, to, loss, divisor);
}

/* Of the team that has a row: a warp, or a block, which come here together, maybe again and again. */
template <class T> __device__ inline void join(running<T> &a, int team)
{
    __shared__ pc::math<T> most[LONG_THREADS / 32], sum[LONG_THREADS / 32];
    a.join_warp();
    if (team == 32)
        return;
    if (threadIdx.x % 32 == 0) {
        most[threadIdx.x / 32] = a.most;
        sum[threadIdx.x / 32] = a.sum;
    }
    __syncthreads();
    const int other = threadIdx.x % 32;
    a.most = other < team / 32 ? most[other] : pc::math<T>(-CUDART_INF);
    a.sum = other < team / 32 ? sum[other] : pc::math<T>(0);
    a.join_warp();
    __syncthreads();
}

} // namespace

#endif
