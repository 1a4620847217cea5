/* loss.cu: losses of pairs of numbers. */
#include "cuda/loss/loss.cuh"
#include "cuda/loss/mean.cuh"

namespace
{

/* Blocks of 4096 pairs or more are worth their launch. */
int blocks_for(long long pairs)
{
    enum { WORTH = 4096 };
    const long long blocks = (pairs + WORTH - 1) / WORTH;
    return blocks < 1 ? 1 : blocks > BLOCKS_MOST ? BLOCKS_MOST : (int)blocks;
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
};

} // namespace

void pc__cuda_pair_loss(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x,
                        const pc__view *y, void *loss, void *dx, void *rounded, double *scratch)
{
    BY_DTYPES(x->dtype, y->dtype, pair(queue, early, kind, x, y, loss, dx, rounded, scratch))
}
