/* loss.cu: each block sums what its elements or rows lose into one number; one block then sums those, always in the
 * same order. What is small is done by one block alone, in one launch. */
#include "cuda/loss/loss.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/loss/loss.cuh"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

#include <math_constants.h>

#define THREADS 256
#define WARPS (THREADS / 32)
#define BLOCKS_MOST 1024  /* numbers in the scratch memory */
#define BLOCK_WORK 4096   /* elements that make a block worth its launch */
#define FEW_CLASSES 128   /* for which a warp's lanes have all loads under way */
#define MANY_CLASSES 2048 /* for which a block takes a row */

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

/* Of a row so far: its maximum, and the sum of exp(x - it). Of nothing but -inf the sum is 0. */
template <class T> struct running {
    typedef pc::math<T> M;
    M most, sum;

    __device__ __forceinline__ void rise_to(M higher)
    {
        if (higher > most) {
            sum *= exp_of(most - higher);
            most = higher;
        }
    }

    __device__ __forceinline__ M base() const
    {
        return most > M(-CUDART_INF) ? most : M(0);
    }

    template <int N> __device__ __forceinline__ void operator()(const T (&x)[N], unsigned)
    {
        M higher = most;
#pragma unroll
        for (int k = 0; k < N; k++)
            higher = larger()(higher, M(x[k]));
        rise_to(higher);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += exp_of(M(x[k]) - base());
    }
};

/* Of all of a warp, or of a block whose threads come here together, which may be again and again. */
template <class T> __device__ inline void join(running<T> &a, bool block)
{
    __shared__ pc::math<T> most[WARPS], sum[WARPS];
    a.rise_to(warp_join<larger>(a.most));
    a.sum = warp_join<plus>(a.sum);
    if (!block)
        return;
    if (threadIdx.x % 32 == 0) {
        most[threadIdx.x / 32] = a.most;
        sum[threadIdx.x / 32] = a.sum;
    }
    __syncthreads();
    const int other = threadIdx.x % 32;
    a.most = other < WARPS ? most[other] : pc::math<T>(-CUDART_INF);
    a.sum = other < WARPS ? sum[other] : pc::math<T>(0);
    a.rise_to(warp_join<larger>(a.most));
    a.sum = warp_join<plus>(a.sum);
    __syncthreads();
}

/* A warp for each row, or a block for each of many classes; a row is read once. norms[rows][2]: a row's maximum, and
 * the logarithm of its sum. */
template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(const T *__restrict__ x, const int64_t *__restrict__ labels, pc::math<L> *__restrict__ norms,
                         long long rows, unsigned classes, double *sums, L *mean, pc__cuda_fault *fault)
{
    typedef pc::math<L> M;
    const int team = classes > MANY_CLASSES ? THREADS : 32, lane = threadIdx.x % team, teams = THREADS / team;
    double loss = 0;
    pc::wait_for_earlier();
    for (long long r = (long long)blockIdx.x * teams + threadIdx.x / team; r < rows;
         r += (long long)gridDim.x * teams) {
        const T *row = x + r * classes;
        running<T> a = {M(-CUDART_INF), M(0)};
        const int64_t label = labels[r];
        const bool valid = label >= 0 && label < classes;
        const M own = valid ? M(row[label]) : M(0);
        if (classes <= FEW_CLASSES) {
            M value[FEW_CLASSES / 32];
#pragma unroll
            for (int u = 0; u < FEW_CLASSES / 32; u++)
                value[u] = lane + u * 32 < classes ? M(row[lane + u * 32]) : M(-CUDART_INF);
#pragma unroll
            for (int u = 0; u < FEW_CLASSES / 32; u++)
                a.rise_to(value[u]);
#pragma unroll
            for (int u = 0; u < FEW_CLASSES / 32; u++)
                a.sum += lane + u * 32 < classes ? exp_of(value[u] - a.base()) : M(0);
        } else {
            pc::each_in_row<4>(row, classes, lane, team, a);
        }
        join(a, team > 32);
        if (lane > 0)
            continue;
        const M norm = log_of(a.sum);
        norms[2 * r] = a.most;
        norms[2 * r + 1] = norm;
        if (valid)
            loss += (double)(norm - (own - a.most));
        else
            report(fault, r, label, classes);
    }
    give(loss, (double)rows, sums, mean);
}

/* N neighbours, of one row or of several. */
template <class T, class L, int N>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_kernel(const T *__restrict__ x, const pc::math<L> *__restrict__ norms,
                                  const int64_t *__restrict__ labels, const L *__restrict__ g, T *__restrict__ dx,
                                  long long rows, long long classes)
{
    typedef pc::math<L> M;
    typedef struct alignas(N * sizeof(T)) pack {
        T at[N];
    } pack;
    const long long i = ((long long)blockIdx.x * THREADS + threadIdx.x) * N, count = rows * classes;
    long long row = quotient(i, classes), column = i - row * classes;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    pack a;
    if (i + N <= count)
        a = *reinterpret_cast<const pack *>(x + i);
    else
        for (int k = 0; k < N; k++)
            a.at[k] = x[min(i + k, count - 1)];
    const M scale = M(*g) / (M)rows;
    M most = norms[2 * row], norm = norms[2 * row + 1];
    int64_t label = labels[row];
#pragma unroll
    for (int k = 0; k < N; k++) {
        a.at[k] = T(exp_of(M(a.at[k]) - most - norm) * scale - (label == column ? scale : M(0)));
        if (++column == classes && row + 1 < rows) {
            row++, column = 0;
            most = norms[2 * row], norm = norms[2 * row + 1];
            label = labels[row];
        }
    }
    if (i + N <= count)
        *reinterpret_cast<pack *>(dx + i) = a;
    else
        for (int k = 0; i + k < count; k++)
            dx[i + k] = a.at[k];
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
void cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, L *loss, pc::math<L> *norms,
                   double *scratch, pc__cuda_fault *fault)
{
    const long long rows = x->shape[0], classes = x->shape[1];
    const int blocks = blocks_for(rows * (classes < 32 ? 32 : classes));
    (void)pc::start(cross_entropy_kernel<T, L>, (unsigned)blocks, THREADS, queue, early, (const T *)x->data, labels,
                    norms, rows, (unsigned)classes, scratch, loss, fault);
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

    static void cross(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss, void *norms,
                      double *scratch, pc__cuda_fault *fault)
    {
        cross_entropy<T>(queue, early, x, labels, (L *)loss, (pc::math<L> *)norms, scratch, fault);
    }

    template <int N>
    static void backward_packs(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                               const int64_t *labels, const void *g, void *dx)
    {
        (void)pc::start(cross_entropy_backward_kernel<T, L, N>, grid_for((x->count + N - 1) / N), THREADS, queue, early,
                        (const T *)x->data, (const pc::math<L> *)norms, labels, (const L *)g, (T *)dx,
                        (long long)x->shape[0], (long long)x->shape[1]);
    }

    static void cross_backward(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                               const int64_t *labels, const void *g, void *dx)
    {
        if (((uintptr_t)x->data | (uintptr_t)dx) % 16 == 0)
            backward_packs<16 / sizeof(T)>(queue, early, x, norms, labels, g, dx);
        else
            backward_packs<1>(queue, early, x, norms, labels, g, dx);
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
                            int dtype, void *norms, double *scratch, pc__cuda_fault *fault)
{
    BY_DTYPES(x->dtype, dtype, cross(queue, early, x, labels, loss, norms, scratch, fault))
}

void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                                     const int64_t *labels, const void *g, int dtype, void *dx)
{
    BY_DTYPES(x->dtype, dtype, cross_backward(queue, early, x, norms, labels, g, dx))
}
