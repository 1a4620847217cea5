/* compute.h: the heavy kernels of the CPU, over plain memory: matrix product, convolution, pooling.
 *
 * Each function exists per SIMD level and per type: PC__K(gemm_f32) in a file of this folder, pc__gemm_f32_v3 from
 * outside. `void *` data is float in *_f32 and double in *_f64. Outputs never overlap inputs. Shapes are not checked:
 * the shape rules of the ops have done so; sizes of 0 are fine everywhere. Scratch memory comes from pc__alloc_aligned
 * within the call: PC_ERR_MEMORY leaves the outputs undefined and leaks nothing. All are thread-safe, use up to
 * pc__threads() cores, and give the same bits whatever the number of threads. */
#ifndef PC__COMPUTE_H
#define PC__COMPUTE_H

#include "base/base.h"
#include "cpu/level/level.h"

/* What follows a product: none, max(x, 0), 1/(1+exp(-x)), tanh(x). NaN stays NaN. */
typedef enum pc__activation { PC__ACT_NONE, PC__ACT_RELU, PC__ACT_SIGMOID, PC__ACT_TANH } pc__activation;

/* C[m][n] = activation(sum over k of A[m][k] * B[k][n] (+ C[m][n]) (+ bias[n])).
 * Element (i, j) of a matrix is at pointer[i * rs + j * cs]; strides are in elements and may be any, 0 and negative
 * ones too for A and B; elements of C do not overlap. Fastest with c_cs == 1 and a_cs == 1 or a_rs == 1. */
typedef struct pc__gemm {
    int64_t m, n, k;
    const void *a;
    int64_t a_rs, a_cs;
    const void *b;
    int64_t b_rs, b_cs;
    void *c;
    int64_t c_rs, c_cs;
    const void *bias; /* n values, or NULL */
    bool accumulate;  /* add to C instead of overwriting it */
    pc__activation activation;
} pc__gemm;

/* A two-dimensional convolution (cross-correlation, as PyTorch and Keras) with what is fused to it.
 * x[n][h][w][c], weight[o][c][kh][kw], y[n][oh][ow][o], all contiguous; oh = (h + 2 ph - kh) / sh + 1, ow alike.
 * With pool > 1 the output is pooled[n][oh / pool][ow / pool][o]: maxima over pool x pool windows with stride `pool`
 * after the activation, rows and columns that fill no window dropped; pool is at most 16. 0 and 1: no pooling.
 * What is said otherwise: planes lie in C order, x[n][c][h][w] and y[n][o][yh][yw] (argmax is channels last still), and so
 * does what has their shape, but for dx, which is channels last always; weights and their gradients [o][kh][kw][c]. */
typedef struct pc__conv {
    int64_t n, h, w, c;
    int64_t o, kh, kw;
    int64_t sh, sw; /* stride, at least 1 */
    int64_t ph, pw; /* zero padding on each side */
    pc__activation activation;
    int64_t pool;
    bool x_planes, y_planes, weights_last;
    bool half, is_f16; /* float32's kernels: x, weight, bias, y and their gradients are 16-bit numbers */
} pc__conv;

/* Rows and columns of the convolution before pooling (0 where the kernel does not fit). */
static inline int64_t pc__conv_oh(const pc__conv *s)
{
    return s->h + 2 * s->ph < s->kh ? 0 : (s->h + 2 * s->ph - s->kh) / s->sh + 1;
}

static inline int64_t pc__conv_ow(const pc__conv *s)
{
    return s->w + 2 * s->pw < s->kw ? 0 : (s->w + 2 * s->pw - s->kw) / s->sw + 1;
}

/* Rows and columns of what is written. */
static inline int64_t pc__conv_yh(const pc__conv *s)
{
    return pc__conv_oh(s) / PC__MAX(s->pool, 1);
}

static inline int64_t pc__conv_yw(const pc__conv *s)
{
    return pc__conv_ow(s) / PC__MAX(s->pool, 1);
}

/* Pooling windows over x[n][h][w][c] to y[n][oh][ow][c], both contiguous; oh = (h + 2 ph - kh) / sh + 1, or what
 * is said, where windows may go beyond the padding. Padding counts as minus infinity for the maximum, and for the average as
 * zeros that are counted (PyTorch's count_include_pad) or as nothing, as what is beyond does. ph <= kh / 2, pw <= kw / 2, so
 * that no window is all padding. */
typedef struct pc__pool {
    int64_t n, h, w, c;
    int64_t kh, kw, sh, sw, ph, pw;
    bool exclude_padding;
    bool half, is_f16; /* float32's kernels: x, y and their gradients are 16-bit numbers */
    int64_t oh, ow;    /* 0: as above */
} pc__pool;

static inline int64_t pc__pool_oh(const pc__pool *s)
{
    if (s->oh)
        return s->oh;
    return s->h + 2 * s->ph < s->kh ? 0 : (s->h + 2 * s->ph - s->kh) / s->sh + 1;
}

static inline int64_t pc__pool_ow(const pc__pool *s)
{
    if (s->ow)
        return s->ow;
    return s->w + 2 * s->pw < s->kw ? 0 : (s->w + 2 * s->pw - s->kw) / s->sw + 1;
}

/*
 * gemm              see pc__gemm.
 * conv2d            y = pooled(activation(conv(x, weight) + bias)). bias may be NULL. argmax: with pool > 1, for each
 *                   element of y the place of its maximum in the window (row * pool + column, the first of equals), or
 *                   NULL when no backward follows.
 * conv2d_backward   from dy (the gradient at y), x, weight, y and argmax of the forward call: dx as x, dweight as
 *                   weight, dbias[o], each overwritten, each may be NULL. y may be NULL without activation, argmax
 *                   without pool, weight without dx, x without dweight.
 * max_pool2d        argmax: for each element of y, row * w + column of the maximum in its plane of x (the first of
 *                   equals; NaN counts as largest), or NULL.
 * max_pool2d_backward, avg_pool2d_backward   dx (overwritten) from dy.
 */
#define PC__COMPUTE_PROTOTYPES(level, type)                                                                            \
    pc_status pc__gemm_##type##_##level(const pc__gemm *g);                                                            \
    pc_status pc__conv2d_##type##_##level(const pc__conv *s, const void *x, const void *weight, const void *bias,      \
                                          void *y, uint8_t *argmax);                                                   \
    pc_status pc__conv2d_backward_##type##_##level(const pc__conv *s, const void *x, const void *weight,               \
                                                   const void *y, const uint8_t *argmax, const void *dy, void *dx,     \
                                                   void *dweight, void *dbias);                                        \
    pc_status pc__max_pool2d_##type##_##level(const pc__pool *s, const void *x, void *y, int32_t *argmax);             \
    pc_status pc__max_pool2d_backward_##type##_##level(const pc__pool *s, const int32_t *argmax, const void *dy,       \
                                                       void *dx);                                                      \
    pc_status pc__avg_pool2d_##type##_##level(const pc__pool *s, const void *x, void *y);                              \
    pc_status pc__avg_pool2d_backward_##type##_##level(const pc__pool *s, const void *dy, void *dx);

/* A, B and bias are 16-bit numbers, float16 or bfloat16; C too, or where it is `wide` float32. */
#define PC__HALF_PROTOTYPES(level) pc_status pc__gemm_half_##level(const pc__gemm *g, bool is_f16, bool wide);

#define PC__COMPUTE_LEVEL(level)                                                                                       \
    PC__COMPUTE_PROTOTYPES(level, f32) PC__COMPUTE_PROTOTYPES(level, f64) PC__HALF_PROTOTYPES(level)
PC__EACH_LEVEL(PC__COMPUTE_LEVEL)

#endif
