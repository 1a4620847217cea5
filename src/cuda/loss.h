/* loss.h: losses over dense tensors, and their gradients. Sums are taken in double, in the same order every time. */
#ifndef PC__CUDA_LOSS_H
#define PC__CUDA_LOSS_H

#include "cuda/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_pair_loss { PC__LOSS_BCE, PC__LOSS_MSE };

/* Bytes of scratch memory that the losses below need. */
#define PC__LOSS_SCRATCH (1024 * sizeof(double))

/* *loss = the mean over x and y of what their elements lose; NaN without elements. dx, or NULL, is its gradient at x:
 * (sigmoid(x) - y) / n for PC__LOSS_BCE, which alone has it. loss and dx have y's dtype: x's, or float32 where x has 16
 * bits; then `rounded`, or NULL, is dx in x's dtype. */
void pc__cuda_pair_loss(cudaStream_t queue, int early, enum pc__cuda_pair_loss kind, const pc__view *x,
                        const pc__view *y, void *loss, void *dx, void *rounded, double *scratch);

/* x[rows][classes]: probabilities = softmax(x), *loss = the mean of -log probabilities[r][labels[r]], both in the dtype
 * of the probabilities: x's, or float32 where x has 16 bits. A label out of range goes into fault. */
void pc__cuda_cross_entropy(cudaStream_t queue, int early, const pc__view *x, const int64_t *labels, void *loss,
                            const pc__view *probabilities, double *scratch, pc__cuda_fault *fault);

/* dx = (p - onehot) g / rows; g in p's dtype, which is dx's, or float32 where dx has 16 bits. */
void pc__cuda_cross_entropy_backward(cudaStream_t queue, int early, const pc__view *p, const int64_t *labels,
                                     const void *g, const pc__view *dx);

#ifdef __cplusplus
}
#endif
#endif
