/* loss.h: losses over dense tensors, and their gradients. Sums are taken in double, in the same order every time. */
#ifndef PC__CUDA_LOSS_H
#define PC__CUDA_LOSS_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_pair_loss { PC__LOSS_BCE, PC__LOSS_MSE };

/* Bytes of scratch memory that the losses below need: two numbers for each of so many blocks. */
#define PC__LOSS_SCRATCH (1024 * 2 * sizeof(double))

/* *loss = the mean over x and y of what their elements lose; NaN without elements. dx, or NULL, is its gradient at x:
 * (sigmoid(x) - y) / n for PC__LOSS_BCE, which alone has it. loss and dx have y's dtype: x's, or float32 where x has 16
 * bits; then `rounded`, or NULL, is dx in x's dtype. */
void pc__cuda_pair_loss(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x,
                        const pc__view *y, void *loss, void *dx, void *rounded, double *scratch);

/* Of each row the class that it should be; rows with the label `ignored` count for nothing. */
typedef struct pc__cuda_targets {
    const int64_t *labels;
    int64_t ignored;
    int is_sum;    /* the loss is the sum over rows, else the mean over those that count, */
    int none_is_0; /* which is 0 where none does, else NaN */
} pc__cuda_targets;

/* x[rows][classes], rows any distance apart: *loss = the mean of -log softmax(x)[r][labels[r]], in `dtype`: x's, or float32 where x has 16 bits.
 * norms[rows + 1][2]: each row's maximum, and the logarithm of the sum of exp(x - it), in x's dtype or float32; behind
 * them what the sum was divided by. A label out of range goes into fault. */
void pc__cuda_cross_entropy(cudaStream_t queue, int early, const pc__view *x, pc__cuda_targets targets, void *loss,
                            int dtype, void *norms, void *scratch, pc__cuda_fault *fault);

/* dx = (softmax(x) - onehot) g / divisor, in x's dtype; g in `dtype`, the loss's. Rows of x and dx are dense, or both on 16
 * bytes; then dx has zeros behind each row up to the next 16. */
void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *x, const void *norms,
                                     pc__cuda_targets targets, const void *g, int dtype, void *dx, int64_t dx_pitch);

/* Both at once, of 16-bit logits, where rows of whole 16 bytes fit into shared memory and are many: else false, and nothing is done. dx may be x. Scratch is
 * of PC__LOSS_SCRATCH_BOTH bytes. */
#define PC__LOSS_SCRATCH_BOTH (PC__LOSS_SCRATCH + sizeof(double))
bool pc__cuda_cross_entropy_both(cudaStream_t queue, int early, const pc__view *x, pc__cuda_targets targets,
                                 const void *g, void *loss, int dtype, void *dx, int64_t dx_pitch, void *scratch,
                                 pc__cuda_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
