/* cross_entropy_backward.cu: the gradient of the loss of labels. */
#include "cuda/loss/mean.cuh"
#include "cuda/shared/real.cuh"
#include "cuda/shared/row.cuh"

namespace
{

/* Packs of a row that a thread has under way at once, where rows are pitches of whole packs. */
constexpr int ROW_PACKS = 4;

/* `line` neighbours, a power of two, for a part of a row: so many parts cover it up to its last pack, in which zeros
 * follow the last class. */
template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_rows(const T *x, long long x_pitch, const pc::math<L> *__restrict__ norms,
                                const pc__cuda_targets to, const L *__restrict__ g, T *dx, long long dx_pitch,
                                long long rows, int classes, int line, unsigned parts)
{
    typedef pc::math<L> M;
    typedef pc::row_pack<T> pack;
    const unsigned lines = blockIdx.x / parts, part = blockIdx.x - lines * parts;
    const long long row = (long long)lines * (THREADS / line) + threadIdx.x / line;
    const int first = (int)part * line * ROW_PACKS + threadIdx.x % line,
              packs = (classes + pack::size - 1) / pack::size;
    pc::wait_for_earlier();
    if (row >= rows)
        return;
    const pack *from = reinterpret_cast<const pack *>(x + row * x_pitch);
    pack *into = reinterpret_cast<pack *>(dx + row * dx_pitch), a[ROW_PACKS];
    const int64_t label = to.labels[row];
#pragma unroll
    for (int u = 0; u < ROW_PACKS; u++)
        if (first + u * line < packs)
            a[u] = from[first + u * line];
    const M scale = M(*g) / norms[2 * rows], most = norms[2 * row], norm = norms[2 * row + 1];
    const int live = label == to.ignored ? 0 : classes, own = label < 0 || label >= classes ? -1 : (int)label;
#pragma unroll
    for (int u = 0; u < ROW_PACKS; u++) {
        const int column = (first + u * line) * pack::size;
        if (column >= classes)
            return;
#pragma unroll
        for (int k = 0; k < pack::size; k++) {
            const M change = exp_of(M(a[u].at[k]) - most - norm) * scale - (own == column + k ? scale : M(0));
            a[u].at[k] = T(column + k < live ? change : M(0));
        }
        into[first + u * line] = a[u];
    }
}

/* N neighbours, of one row or of several. */
template <class T, class L, int N>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_kernel(const T *x, const pc::math<L> *__restrict__ norms, const pc__cuda_targets to,
                                  const L *__restrict__ g, T *dx, long long rows, long long classes)
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
    const M scale = M(*g) / norms[2 * rows];
    M most = norms[2 * row], norm = norms[2 * row + 1];
    int64_t label = to.labels[row];
#pragma unroll
    for (int k = 0; k < N; k++) {
        const M change = exp_of(M(a.at[k]) - most - norm) * scale - (label == column ? scale : M(0));
        a.at[k] = T(label == to.ignored ? M(0) : change);
        if (++column == classes && row + 1 < rows) {
            row++, column = 0;
            most = norms[2 * row], norm = norms[2 * row + 1];
            label = to.labels[row];
        }
    }
    if (i + N <= count)
        *reinterpret_cast<pack *>(dx + i) = a;
    else
        for (int k = 0; i + k < count; k++)
            dx[i + k] = a.at[k];
}

unsigned grid_for(long long count)
{
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* Of logits in T, computed and given in L: T, or float for 16 bits. */
template <class T, class L> struct losses {
    template <int N>
    static void backward_packs(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                               const pc__cuda_targets &to, const void *g, void *dx)
    {
        (void)pc::start(cross_entropy_backward_kernel<T, L, N>, grid_for((x->count + N - 1) / N), THREADS, queue, early,
                        (const T *)x->data, (const pc::math<L> *)norms, to, (const L *)g, (T *)dx,
                        (long long)x->shape[0], (long long)x->shape[1]);
    }

    static void backward_rows(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                              const pc__cuda_targets &to, const void *g, void *dx, long long dx_pitch)
    {
        const long long rows = x->shape[0], classes = x->shape[1];
        const long long packs = (classes * (long long)sizeof(T) + 15) / 16;
        int line = 4;
        while (line < THREADS && line * ROW_PACKS < packs)
            line *= 2;
        const long long parts = (packs + line * ROW_PACKS - 1) / (line * ROW_PACKS);
        const long long lines = (rows + THREADS / line - 1) / (THREADS / line);
        (void)pc::start(cross_entropy_backward_rows<T, L>, (unsigned)(lines * parts), THREADS, queue, early,
                        (const T *)x->data, (long long)x->strides[0], (const pc::math<L> *)norms, to, (const L *)g,
                        (T *)dx, dx_pitch, rows, (int)classes, line, (unsigned)parts);
    }

    static void cross_backward(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                               const pc__cuda_targets &to, const void *g, void *dx, long long dx_pitch)
    {
        if (has_pitch<T>(x->data, x->strides[0]) && has_pitch<T>(dx, dx_pitch))
            backward_rows(queue, early, x, norms, to, g, dx, dx_pitch);
        else if (((uintptr_t)x->data | (uintptr_t)dx) % 16 == 0)
            backward_packs<16 / sizeof(T)>(queue, early, x, norms, to, g, dx);
        else
            backward_packs<1>(queue, early, x, norms, to, g, dx);
    }
};

} // namespace

void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                                     pc__cuda_targets to, const void *g, int dtype, void *dx, int64_t dx_pitch)
{
    BY_DTYPES(x->dtype, dtype, cross_backward(queue, early, x, norms, to, g, dx, dx_pitch))
}
