/* loss.cu: each block sums what its elements or rows lose into one number; one block then sums those, always in the
 * same order. What is small is done by one block alone, in one launch. */
#include "cuda/loss.h"

#include "cuda/early.cuh"
#include "cuda/half.cuh"
#include "cuda/loss.cuh"
#include "cuda/sums.cuh"

#include <math_constants.h>

#define THREADS 256
#define WARPS (THREADS / 32)
#define BLOCKS_MOST 1024 /* numbers in the scratch memory */
#define BLOCK_WORK 4096  /* elements that make a block worth its launch */

namespace
{

/* The sum of a block goes to its place in `sums`, or, when the block is alone, as the mean over n to `mean`. */
template <class T> __device__ inline void give(double sum, double n, double *sums, T *mean)
{
    sum = block_join<plus, THREADS>(sum, 0.0);
    if (threadIdx.x != 0)
        return;
    if (gridDim.x == 1)
        *mean = T((pc::math<T>)(sum / n));
    else
        sums[blockIdx.x] = sum;
}

template <int KIND, class T, class L>
__global__ void __launch_bounds__(THREADS)
    pair_kernel(const T *__restrict__ x, const L *__restrict__ y, long long n, double *sums, L *mean, L *dx, T *rounded)
{
    double sum = 0;
    typedef pc::math<L> M;
    pc::wait_for_earlier();
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += (long long)gridDim.x * THREADS) {
        const M a = x[i], b = y[i];
        sum += lost<KIND>(a, b);
        if (KIND == PC__LOSS_BCE && dx) {
            const M d = bce_gradient(a, b, 1 / (M)n);
            dx[i] = L(d);
            if (rounded)
                rounded[i] = T(d);
        }
    }
    give(sum, (double)n, sums, mean);
}

/* One block: the mean from the sums of `blocks` blocks. */
template <class T>
__global__ void __launch_bounds__(THREADS) mean_kernel(const double *sums, int blocks, double n, T *mean)
{
    double sum = 0;
    pc::wait_for_earlier();
    for (int i = threadIdx.x; i < blocks; i += THREADS)
        sum += sums[i];
    give(sum, n, (double *)NULL, mean);
}

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

/* A warp for each row; a row's first pass brings it into the caches. */
template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(const T *__restrict__ x, const int64_t *__restrict__ labels, L *__restrict__ probabilities,
                         long long rows, long long classes, double *sums, L *mean, pc__cuda_fault *fault)
{
    typedef pc::math<L> M;
    const int lane = threadIdx.x % 32;
    double loss = 0;
    pc::wait_for_earlier();
    for (long long r = (long long)blockIdx.x * WARPS + threadIdx.x / 32; r < rows; r += (long long)gridDim.x * WARPS) {
        const T *row = x + r * classes;
        M most = M(-CUDART_INF), sum = 0;
        for (long long i = lane; i < classes; i += 32)
            most = larger()(most, M(row[i]));
        most = warp_join<larger>(most);
        for (long long i = lane; i < classes; i += 32)
            sum += exp_of(M(row[i]) - most);
        const M norm = log_of(warp_join<plus>(sum));
        for (long long i = lane; i < classes; i += 32)
            probabilities[r * classes + i] = L(exp_of(M(row[i]) - most - norm));
        const int64_t label = labels[r];
        if (lane > 0)
            continue;
        if (label >= 0 && label < classes)
            loss += (double)(norm - (M(row[label]) - most));
        else
            report(fault, r, label, classes);
    }
    give(loss, (double)rows, sums, mean);
}

template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_kernel(const L *__restrict__ p, const int64_t *__restrict__ labels, const L *__restrict__ g,
                                  T *__restrict__ dx, long long rows, long long classes)
{
    typedef pc::math<L> M;
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= rows * classes)
        return;
    const long long row = quotient(i, classes);
    const M scale = M(*g) / (M)rows;
    dx[i] = T(M(p[i]) * scale - (labels[row] == i - row * classes ? scale : M(0)));
}

int blocks_for(long long work)
{
    const long long blocks = (work + BLOCK_WORK - 1) / BLOCK_WORK;
    return blocks < 1 ? 1 : blocks > BLOCKS_MOST ? BLOCKS_MOST : (int)blocks;
}

template <int KIND, class T, class L>
void pair_loss(cudaStream_t queue, int early, const pc__view *x, const pc__view *y, L *loss, L *dx, T *rounded,
               double *scratch)
{
    const int blocks = blocks_for(x->count);
    (void)pc::start(pair_kernel<KIND, T, L>, (unsigned)blocks, THREADS, queue, early, (const T *)x->data,
                    (const L *)y->data, (long long)x->count, scratch, loss, dx, rounded);
    if (blocks > 1)
        (void)pc::start(mean_kernel<L>, 1, THREADS, queue, early, (const double *)scratch, blocks, (double)x->count,
                        loss);
}

template <class T, class L>
void cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, L *loss, L *probabilities,
                   double *scratch, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1];
    const int blocks = blocks_for(rows * (classes < 32 ? 32 : classes));
    (void)pc::start(cross_entropy_kernel<T, L>, (unsigned)blocks, THREADS, queue, early, (const T *)x->data, labels,
                    probabilities, rows, classes, scratch, loss, fault);
    if (blocks > 1)
        (void)pc::start(mean_kernel<L>, 1, THREADS, queue, early, (const double *)scratch, blocks, (double)rows, loss);
}

unsigned grid_for(long long count)
{
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* Of logits in T, computed and given in L: T, or float for 16 bits. */
template <class T, class L> struct losses {
    static void pair(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x, const pc__view *y,
                     void *loss, void *dx, void *rounded, double *scratch)
    {
        if (kind == PC__LOSS_BCE)
            pair_loss<PC__LOSS_BCE>(queue, early, x, y, (L *)loss, (L *)dx, (T *)rounded, scratch);
        else
            pair_loss<PC__LOSS_MSE>(queue, early, x, y, (L *)loss, (L *)nullptr, (T *)nullptr, scratch);
    }

    static void cross(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss,
                      void *probabilities, double *scratch, pc__cuda_fault *fault)
    {
        cross_entropy<T>(queue, early, x, labels, (L *)loss, (L *)probabilities, scratch, fault);
    }

    static void cross_backward(cudaStream_t queue, int early, const pc__view *p, const int64_t *labels, const void *g,
                               void *dx)
    {
        (void)pc::start(cross_entropy_backward_kernel<T, L>, grid_for(p->count), THREADS, queue, early,
                        (const L *)p->data, labels, (const L *)g, (T *)dx, (long long)p->shape[0],
                        (long long)p->shape[1]);
    }
};

} // namespace

/* By the dtypes of logits and loss. */
#define BY_DTYPES(logits, loss, call)                                                                                  \
    switch (logits) {                                                                                                  \
    case PC__CUDA_F16:                                                                                                 \
        return (loss) == PC__CUDA_F16 ? losses<pc::f16, pc::f16>::call : losses<pc::f16, float>::call;                 \
    case PC__CUDA_BF16:                                                                                                \
        return (loss) == PC__CUDA_BF16 ? losses<pc::bf16, pc::bf16>::call : losses<pc::bf16, float>::call;             \
    case PC__CUDA_F32:                                                                                                 \
        return losses<float, float>::call;                                                                             \
    default:                                                                                                           \
        return losses<double, double>::call;                                                                           \
    }

void pc__cuda_pair_loss(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x,
                        const pc__view *y, void *loss, void *dx, void *rounded, double *scratch)
{
    BY_DTYPES(x->dtype, y->dtype, pair(queue, early, kind, x, y, loss, dx, rounded, scratch))
}

void pc__cuda_cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss,
                            const pc__view *probabilities, double *scratch, pc__cuda_fault *fault)
{
    BY_DTYPES(x->dtype, probabilities->dtype, cross(queue, early, x, labels, loss, probabilities->data, scratch, fault))
}

void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *p, const int64_t *labels,
                                     const void *g, const pc__view *dx)
{
    BY_DTYPES(dx->dtype, p->dtype, cross_backward(queue, early, p, labels, g, dx->data))
}
