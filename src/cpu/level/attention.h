/* attention.h: scaled dot-product attention over plain memory. Each function exists per SIMD level and per type, as those
 * of compute.h do, and so are their rules: results do not depend on the number of threads. */
#ifndef PC__ATTENTION_H
#define PC__ATTENTION_H

#include "base/base.h"
#include "cpu/level/level.h"

#include <paracord/tensor.h>

/* A matrix for each member of the batch: strides in elements, those of the batch's dimensions last. */
typedef struct pc__matrices {
    void *data;
    int64_t row, column;
    int64_t batch[PC_MAX_DIMS];
} pc__matrices;

/* y = softmax(scale q k^T + mask) v: q [l][e], k [s][e], v [s][ev], y [l][ev]. All but mask and norms are of `type`, which the
 * kernels of float32 take in 16 bits, too: they convert what they are about to work on. */
typedef struct pc__attention {
    int dims; /* of the batch */
    int64_t shape[PC_MAX_DIMS], batches, l, s, e, ev;
    pc__matrices q, k, v, y;
    pc__matrices mask;        /* data NULL for none */
    pc_dtype type, mask_type; /* the mask's: bool, or the kernel's */
    bool causal;
    double scale, p;       /* p: of a dropout, 0 for none */
    uint64_t seed, stream; /* of its draw */
    void *norms;           /* [batches][l] of the kernel's type, or NULL */
    /* What the backward pass has besides: the gradient of y, and where those of q, k and v go. */
    pc__matrices g, dq, dk, dv;
} pc__attention;

/* Index of a batch's matrix to its first element. */
static inline int64_t pc__matrix_at(const pc__attention *a, const pc__matrices *m, int64_t i)
{
    int64_t at = 0;
    for (int d = a->dims - 1; d >= 0; i /= a->shape[d--])
        at += i % a->shape[d] * m->batch[d];
    return at;
}

pc_status PC__K(attention_f32)(const pc__attention *a);
pc_status PC__K(attention_f64)(const pc__attention *a);
pc_status PC__K(attention_backward_f32)(const pc__attention *a);
pc_status PC__K(attention_backward_f64)(const pc__attention *a);

/* attention_few.c: of so few queries that it is the faster way, and that way. */
bool PC__K(attention_is_few_f32)(const pc__attention *a);
bool PC__K(attention_is_few_f64)(const pc__attention *a);
pc_status PC__K(attention_few_f32)(const pc__attention *a);
pc_status PC__K(attention_few_f64)(const pc__attention *a);

#endif
