/* fold.cu: pictures whose stride becomes channels (choice.h, PC__CONV_FOLDED). */
#include "cuda/conv/stage.h"

#include "cuda/shared/dependent_launch.cuh"

#include <stdint.h>

namespace
{

enum { THREADS = 256 };

/* A thread writes 16 bytes: numbers of one place of the result. I: wide enough for all of them. */
template <class T, class I>
__global__ void __launch_bounds__(THREADS) fold(pc__cuda_conv_folding f, const T *in, uint4 *out, I count)
{
    constexpr int N = 16 / sizeof(T);
    const I i = I(blockIdx.x) * THREADS + threadIdx.x, each = f.to_c / N, place = i / each, line = place / f.to_w;
    const I image = line / f.to_h;
    const int first = int(i - place * each) * N, column = int(place - line * f.to_w) * f.sw - f.pw;
    const int row = int(line - image * f.to_h) * f.sh - f.ph;
    int q = first / f.c, c = first - q * f.c, down = q / f.sw, along = q - down * f.sw;
    union {
        T number[N];
        uint4 all;
    } to;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const T *picture = in + (long long)image * f.h * f.w * f.c;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const bool inside =
            down < f.sh && (unsigned)(row + down) < (unsigned)f.h && (unsigned)(column + along) < (unsigned)f.w;
        to.number[k] = inside ? picture[((row + down) * f.w + column + along) * f.c + c] : T(0);
        if (++c == f.c) {
            c = 0;
            if (++along == f.sw)
                along = 0, down++;
        }
    }
    out[i] = to.all;
}

template <class T> void launch(cudaStream_t queue, const pc__cuda_conv_folding *f, const void *in, void *out)
{
    const int64_t count = f->n * f->to_h * f->to_w * (f->to_c / int(16 / sizeof(T)));
    const unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    if (count < INT32_MAX)
        (void)pc::start(fold<T, uint32_t>, blocks, THREADS, queue, f->early, *f, (const T *)in, (uint4 *)out,
                        (uint32_t)count);
    else
        (void)pc::start(fold<T, uint64_t>, blocks, THREADS, queue, f->early, *f, (const T *)in, (uint4 *)out,
                        (uint64_t)count);
}

} // namespace

void pc__cuda_conv_fold(cudaStream_t queue, const pc__cuda_conv_folding *f, const void *in, void *out)
{
    if (f->size == 2)
        launch<uint16_t>(queue, f, in, out);
    else
        launch<uint32_t>(queue, f, in, out);
}
