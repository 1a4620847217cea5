/* loss.cu: each block sums what its elements or rows lose into one number; one block then sums those, always in the
 * same order. What is small is done by one block alone, in one launch. */
#include "cuda/loss.h"

#include "cuda/early.cuh"
#include "cuda/half.cuh"
#include "cuda/real.cuh"
#include "cuda/sums.cuh"

#include <math_constants.h>

#define THREADS 256
#define WARPS (THREADS / 32)
#define BLOCKS_MOST 1024 /* numbers in the scratch memory */
#define BLOCK_WORK 4096  /* elements that make a block worth its launch */

namespace
{

template <int KIND, class T> __device__ inline double lost(T x, T y)
{
    if (KIND == PC__LOSS_MSE)
        return (double)(x - y) * (double)(x - y);
    const T size = x < 0 ? -x : x;
    return (double)((x > 0 ? x : T(0)) - x * y + log1p_of(exp_of(-size)));
}

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

template <int KIND, class T>
__global__ void __launch_bounds__(THREADS)
    pair_kernel(const T *__restrict__ x, const T *__restrict__ y, long long n, double *sums, T *mean, T *dx)
{
    double sum = 0;
    typedef pc::math<T> M;
    pc::wait_for_earlier();
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += (long long)gridDim.x * THREADS) {
        const M a = x[i], b = y[i];
        sum += lost<KIND>(a, b);
        if (KIND == PC__LOSS_BCE && dx)
            dx[i] = T((1 / (1 + exp_of(-a)) - b) * (1 / (M)n));
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
template <class T>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(const T *__restrict__ x, const int64_t *__restrict__ labels, T *__restrict__ probabilities,
                         long long rows, long long classes, double *sums, T *mean, pc__cuda_fault *fault)
{
    typedef pc::math<T> M;
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
            probabilities[r * classes + i] = T(exp_of(M(row[i]) - most - norm));
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

template <class T>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_kernel(const T *__restrict__ p, const int64_t *__restrict__ labels, const T *__restrict__ g,
                                  T *__restrict__ dx, long long rows, long long classes)
{
    typedef pc::math<T> M;
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

template <int KIND, class T>
void pair_loss(cudaStream_t queue, int early, const pc__view *x, const pc__view *y, T *loss, T *dx, double *scratch)
{
    const int blocks = blocks_for(x->count);
    (void)pc::start(pair_kernel<KIND, T>, (unsigned)blocks, THREADS, queue, early, (const T *)x->data,
                    (const T *)y->data, (long long)x->count, scratch, loss, dx);
    if (blocks > 1)
        (void)pc::start(mean_kernel<T>, 1, THREADS, queue, early, (const double *)scratch, blocks, (double)x->count,
                        loss);
}

template <class T>
void cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, T *loss, T *probabilities,
                   double *scratch, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1];
    const int blocks = blocks_for(rows * (classes < 32 ? 32 : classes));
    (void)pc::start(cross_entropy_kernel<T>, (unsigned)blocks, THREADS, queue, early, (const T *)x->data, labels,
                    probabilities, rows, classes, scratch, loss, fault);
    if (blocks > 1)
        (void)pc::start(mean_kernel<T>, 1, THREADS, queue, early, (const double *)scratch, blocks, (double)rows, loss);
}

unsigned grid_for(long long count)
{
    return (unsigned)((count + THREADS - 1) / THREADS);
}

template <class T> struct losses {
    static void pair(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x, const pc__view *y,
                     void *loss, void *dx, double *scratch)
    {
        if (kind == PC__LOSS_BCE)
            pair_loss<PC__LOSS_BCE>(queue, early, x, y, (T *)loss, (T *)dx, scratch);
        else
            pair_loss<PC__LOSS_MSE>(queue, early, x, y, (T *)loss, (T *)nullptr, scratch);
    }

    static void cross(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss,
                      void *probabilities, double *scratch, pc__cuda_fault *fault)
    {
        cross_entropy(queue, early, x, labels, (T *)loss, (T *)probabilities, scratch, fault);
    }

    static void cross_backward(cudaStream_t queue, int early, const pc__view *p, const int64_t *labels, const void *g,
                               void *dx)
    {
        (void)pc::start(cross_entropy_backward_kernel<T>, grid_for(p->count), THREADS, queue, early, (const T *)p->data,
                        labels, (const T *)g, (T *)dx, (long long)p->shape[0], (long long)p->shape[1]);
    }
};

} // namespace

#define BY_DTYPE(view, call)                                                                                           \
    switch ((view)->dtype) {                                                                                           \
    case PC__CUDA_F16:                                                                                                 \
        return losses<pc::f16>::call;                                                                                  \
    case PC__CUDA_BF16:                                                                                                \
        return losses<pc::bf16>::call;                                                                                 \
    case PC__CUDA_F32:                                                                                                 \
        return losses<float>::call;                                                                                    \
    default:                                                                                                           \
        return losses<double>::call;                                                                                   \
    }

void pc__cuda_pair_loss(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x,
                        const pc__view *y, void *loss, void *dx, double *scratch)
{
    BY_DTYPE(x, pair(queue, early, kind, x, y, loss, dx, scratch))
}

void pc__cuda_cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss,
                            void *probabilities, double *scratch, pc__cuda_fault *fault)
{
    BY_DTYPE(x, cross(queue, early, x, labels, loss, probabilities, scratch, fault))
}

void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *p, const int64_t *labels,
                                     const void *g, void *dx)
{
    BY_DTYPE(p, cross_backward(queue, early, p, labels, g, dx))
}
