/* stage.h: operands of a convolution in another format, for cuDNN. Everything is on 16 bytes. */
#ifndef PC__CUDA_CONV_STAGE_H
#define PC__CUDA_CONV_STAGE_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[row][to] = in[row][from]: zeros behind where `to` is larger, cut off where it is smaller. out lies on 16 bytes; size:
 * bytes of a number, 2 or 4; early: may start before the kernel in front ends (shared/dependent_launch.cuh). */
void pc__cuda_conv_rows(cudaStream_t queue, const void *in, int from, void *out, int to, int64_t rows, size_t size,
                        int early);

/* Weights in our order, [o][c][kh][kw] or, where they lie channels last, [o][kh][kw][c], and in cuDNN's with channels
 * padded, [to_o][to_kh][to_kw][to_c]: a tap's channels are those of sh x sw taps of ours. */
typedef struct pc__cuda_conv_filter {
    int o, c, kh, kw, to_o, to_c, to_kh, to_kw, sh, sw;
    int last;
    int early;
    size_t size; /* bytes of a number, 2 or 4 */
} pc__cuda_conv_filter;

/* Where our order has a weight of output 0. */
#ifdef __CUDACC__
__device__ __forceinline__
#else
static inline
#endif
    int
    pc__cuda_conv_filter_at(const pc__cuda_conv_filter *f, int c, int tap)
{
    return f->last ? tap * f->c + c : c * f->kh * f->kw + tap;
}

void pc__cuda_conv_filter_pad(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *ours, void *theirs);
void pc__cuda_conv_filter_cut(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *theirs, void *ours);

/* Pictures [n][h][w][c] with a border of zeros, ph and pw in front, as [n][to_h][to_w][to_c]: the sh x sw places of a stride
 * side by side, then zeros. */
typedef struct pc__cuda_conv_folding {
    int64_t n;
    int h, w, c, sh, sw, ph, pw, to_h, to_w, to_c;
    int early;
    size_t size; /* bytes of a number, 2 or 4 */
} pc__cuda_conv_folding;

void pc__cuda_conv_fold(cudaStream_t queue, const pc__cuda_conv_folding *f, const void *in, void *out);

#ifdef __cplusplus
}
#endif
#endif
