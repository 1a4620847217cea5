/* loss.cu: losses of pairs of numbers. */
#include "cuda/loss/loss.cuh"
#include "cuda/loss/mean.cuh"

namespace
{

constexpr int AT_ONCE = 8; /* pairs of a thread under way */
constexpr unsigned PAIR_BLOCKS = 256;

template <int KIND, class T, class L>
__global__ void __launch_bounds__(WIDE_THREADS)
    pair_kernel(const T *__restrict__ x, const L *__restrict__ y, long long n, double *sums, L *mean, L *dx, T *rounded)
{
    double sum = 0;
    typedef pc::math<L> M;
    const long long turn = (long long)blockDim.x * AT_ONCE;
    pc::wait_for_earlier();
    for (long long first = blockIdx.x * turn + threadIdx.x; first < n; first += gridDim.x * turn) {
        M a[AT_ONCE], b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long i = min(first + u * blockDim.x, n - 1);
            a[u] = x[i], b[u] = y[i];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long i = first + u * blockDim.x;
            if (i >= n)
                break;
            sum += lost<KIND>(a[u], b[u]);
            if (KIND == PC__LOSS_BCE && dx) {
                const M d = bce_gradient(a[u], b[u], 1 / (M)n);
                dx[i] = L(d);
                if (rounded)
                    rounded[i] = T(d);
            }
        }
    }
    give(sum, (double)n, sums, mean);
}

template <int KIND, class T, class L>
void pair_loss(cudaStream_t queue, int early, const pc__view *x, const pc__view *y, L *loss, L *dx, T *rounded,
               double *scratch)
{
    const spread s = spread_over((x->count + AT_ONCE - 1) / AT_ONCE, 1, PAIR_BLOCKS);
    (void)pc::start(pair_kernel<KIND, T, L>, s.blocks, s.threads, queue, early, (const T *)x->data, (const L *)y->data,
                    (long long)x->count, scratch, loss, dx, rounded);
    if (s.blocks > 1)
        (void)pc::start(mean_kernel<L>, 1, THREADS, queue, early, (const double *)scratch, (int)s.blocks,
                        (double)x->count, loss);
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
