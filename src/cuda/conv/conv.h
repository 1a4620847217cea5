/* conv.h: the fused convolution y = pool(activation(conv(x, weight) + bias)) over channels-last pictures, and its
 * gradients. */
#ifndef PC__CUDA_CONV_H
#define PC__CUDA_CONV_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x[n][h][w][c], weight[o][c][kh][kw], convolution [n][oh][ow][o], y[n][yh][yw][o] with yh = oh / pool: maxima over
 * pool x pool, rows and columns that fill no window dropped. With `planes` y, argmax and dy are [n][o][yh][yw]. */
typedef struct pc__cuda_conv {
    int dtype, activation; /* as pc_activation_kind */
    int planes, early, multiprocessors;
    int block_room;   /* bytes of shared memory that a block may have */
    int tf32;         /* floats may be multiplied so */
    bool x_planes;    /* x is [n][c][h][w]: for direct.h alone */
    bool weight_last; /* weight and its gradient are [o][kh][kw][c]: not for kernels of ours (c_order.h) */
    /* Before the kernel in front is done (shared/dependent_launch.cuh); turned: dy, with y and argmax, and the packed weights. */
    bool ready_x, ready_weight, ready_turned;
    int64_t n;
    int h, w, c, o, kh, kw, sh, sw, ph, pw, oh, ow, pool, yh, yw;
    int dh, dw; /* distances of taps */
    int groups; /* of channels: for plain.h and the kernels below, unpooled */
} pc__cuda_conv;

/* In argmax: no gradient goes into this window, for a ReLU follows that is 0. */
#define PC__CUDA_CONV_DEAD 255

/* Tiles whose sums may be made in parts: as many zeros are `counters` below, by which blocks count who is done. They are
 * left zero. */
enum { PC__CUDA_CONV_COUNTERS = 4096 };

/* Kernels for any convolution of floats or doubles; others are in few.h, half.h and patch.h, and rows.c says who does
 * which. Bytes of scratch memory that each call below needs: */
size_t pc__cuda_conv_scratch(const pc__cuda_conv *s);
size_t pc__cuda_conv_input_scratch(const pc__cuda_conv *s);
size_t pc__cuda_conv_weights_scratch(const pc__cuda_conv *s);

/* bias may be NULL. argmax, or NULL: the place of each maximum in its window, row * pool + column, the first of equals;
 * NaN counts as largest. pool is at most 15, or at most 16 without ReLU. */
void pc__cuda_conv_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                           const void *bias, void *y, uint8_t *argmax, void *scratch, unsigned *counters);

/* From the gradient dy at y, and the forward call's y and argmax (not read with pool 1): dx, overwritten. */
void pc__cuda_conv_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                         const uint8_t *argmax, const void *dy, void *dx, void *scratch, unsigned *counters);

/* The same for dweight and dbias, each of which may be NULL. */
void pc__cuda_conv_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                           const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch);

/* dweight and dbias, each of which may be NULL, from sums[piece][depth + 1][o], the rows of a piece in the order
 * [kh][kw][c] and the bias behind them. */
void pc__cuda_conv_add_pieces(cudaStream_t queue, const pc__cuda_conv *s, const float *sums, int depth, int pieces,
                              void *dweight, void *dbias);

#ifdef __cplusplus
}
#endif
#endif
