/* pool_max_lines.cu: the gradient of maxima over windows that lie apart, of channels off 16 bytes: numbers of a line of dx,
 * [w][c], by quotients that cost as little as such numbers do. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/pool/pool.cuh"

#define EACH 8 /* numbers of a thread, a block apart */

namespace
{

struct lines {
    pc__cuda_divisor pieces, channels, stride; /* of a line, of a place, of windows along it */
};

template <class T>
__global__ void __launch_bounds__(THREADS)
    lines_backward_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ dy,
                          const int32_t *__restrict__ argmax, T *__restrict__ dx, const lines by)
{
    const uint32_t line = pc::over(blockIdx.x, by.pieces), width = (uint32_t)(s.w * s.c);
    const uint32_t begin = (blockIdx.x - line * by.pieces.by) * (THREADS * EACH) + threadIdx.x;
    const uint32_t image = line / (uint32_t)s.h, row = line - image * (uint32_t)s.h;
    const range h = covering((int)row, s.sh, s.kh, s.ph, (int)s.oh);
    const uint32_t channels = by.channels.by, along = h.from < h.to ? (uint32_t)s.ow : 0;
    const long long windows = along ? ((long long)image * s.oh + h.from) * s.ow * s.c : 0;
    const int32_t *places = argmax + windows;
    const T *gradients = dy + windows;
    T *to = dx + (long long)line * width;
    T given[EACH];
    int off[EACH]; /* from the place to the maximum */
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const uint32_t i = begin + k * THREADS, column = pc::over(i, by.channels), last = column + (uint32_t)s.pw;
        const uint32_t window = pc::over(last, by.stride);
        const bool covered = (i < width) & (window < along) & (last - window * by.stride.by < (uint32_t)s.kw);
        const uint32_t at = covered ? (window - column) * channels + i : 0; /* for nothing: loads need no condition */
        off[k] = covered ? places[at] - (int)(row * (uint32_t)s.w + column) : -1;
        given[k] = gradients[at];
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (begin + k * THREADS < width)
            to[begin + k * THREADS] = off[k] == 0 ? given[k] : T(0);
}

/* Lines, and blocks for all of them, that 31 bits count. */
bool fits(const pc__cuda_pool *s)
{
    const double most = 1u << 31, width = (double)s->w * (double)s->c;
    return s->kh <= s->sh && s->kw <= s->sw && s->oh > 0 && s->ow > 0 &&
           width + (double)s->pw * (double)s->c + THREADS * EACH < most &&
           (double)s->n * (double)s->h * (width / (THREADS * EACH) + 1) < most;
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax, void *dx)
{
    const int64_t pieces = (s->w * s->c + THREADS * EACH - 1) / (THREADS * EACH);
    const lines by = {pc__cuda_divisor_of(pieces), pc__cuda_divisor_of(s->c), pc__cuda_divisor_of(s->sw)};
    (void)pc::start(lines_backward_kernel<T>, (unsigned)(s->n * s->h * pieces), THREADS, queue, s->early, *s,
                    (const T *)dy, argmax, (T *)dx, by);
}

} // namespace

bool pc__cuda_max_pool_lines(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                             void *dx)
{
    if (s->dtype == PC__CUDA_F64 || !fits(s))
        return false;
    if (s->dtype == PC__CUDA_F32)
        backward<float>(queue, s, dy, argmax, dx);
    else if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, dy, argmax, dx);
    else
        backward<pc::bf16>(queue, s, dy, argmax, dx);
    return true;
}
