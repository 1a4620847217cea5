/* loss.h: losses with options: reductions, weights, labels that count for nothing.
 *
 *     pc_tensor *loss = pc_fn_cross_entropy(logits, tokens, (pc_fn_cross_entropy_options){.ignore = true});
 *
 * ops.h has the means without options. What ops.h says of ops holds here. A loss has the common dtype of its inputs, which is
 * floating, or float32 under autocast; what has 16 bits is computed in float32 and rounded at the end. All have gradients
 * (d), in the target too where that is floating.
 */
#ifndef PARACORD_LOSS_H
#define PARACORD_LOSS_H

#include <paracord/ops.h>

PC_BEGIN

/* What becomes of the losses of elements, or of samples. The mean of none is NaN, the sum 0. */
typedef enum pc_reduction {
    PC_REDUCTION_MEAN,
    PC_REDUCTION_SUM,
    PC_REDUCTION_NONE,
    PC_REDUCTION_BATCH_MEAN /* the sum divided by the size of dimension 0: of pc_kl_div alone */
} pc_reduction;

/* --- of pairs: x and y have one shape, which the loss without a reduction has too --- */

PC_API PC_MUST_USE pc_tensor *pc_mse_loss(pc_tensor *x, pc_tensor *y, pc_reduction reduction); /* (d) (x - y)^2 */
PC_API PC_MUST_USE pc_tensor *pc_l1_loss(pc_tensor *x, pc_tensor *y, pc_reduction reduction);  /* (d) |x - y| */

/* (d) Of z = |x - y| up to delta z^2 / 2, and delta (z - delta / 2) beyond; delta is above 0. */
PC_API PC_MUST_USE pc_tensor *pc_huber_loss(pc_tensor *x, pc_tensor *y, double delta, pc_reduction reduction);

/* (d) Of z = |x - y| below beta z^2 / (2 beta), and z - beta / 2 beyond; beta is at least 0, which makes it pc_l1_loss. */
PC_API PC_MUST_USE pc_tensor *pc_smooth_l1_loss(pc_tensor *x, pc_tensor *y, double beta, pc_reduction reduction);

/* (d) Kullback-Leibler divergence: y (log y - x), 0 where y is 0: x are logarithms of probabilities, y probabilities, or
 * their logarithms with log_target: exp(y) (y - x). */
PC_API PC_MUST_USE pc_tensor *pc_kl_div(pc_tensor *x, pc_tensor *y, bool log_target, pc_reduction reduction);

typedef struct pc_fn_bce_options {
    int reserved_;
    pc_reduction reduction;
    pc_tensor *weight;     /* of each loss; broadcasts to x. Floating, of x's dtype or float32. NULL: 1 */
    pc_tensor *pos_weight; /* of the part of y, such as [classes]; with logits alone. NULL: 1 */
} pc_fn_bce_options;

/* (d) Binary cross-entropy, -w (y log x + (1 - y) log(1 - x)): x are probabilities, in [0, 1] (beyond, NaN), y targets.
 * Logarithms are at least -100. */
PC_API PC_MUST_USE pc_tensor *pc_fn_bce(pc_tensor *x, pc_tensor *y, pc_fn_bce_options options);

/* (d) Of logits: w ((1 - y) x + (1 + (p - 1) y) log(1 + exp(-x))), p being pos_weight. */
PC_API PC_MUST_USE pc_tensor *pc_fn_bce_with_logits(pc_tensor *x, pc_tensor *y, pc_fn_bce_options options);

/* --- of classes: x is [n, classes], [n, classes, d1, ...] or [classes], labels int64 of the same shape without the
 * classes, which the loss without a reduction has too --- */

typedef struct pc_fn_cross_entropy_options {
    int reserved_;
    pc_reduction reduction;
    bool ignore;            /* there is a label of samples that count for nothing: ignore_index. Else that is -100 */
    int64_t ignore_index;   /* may be a class, such as 0 */
    pc_tensor *weight;      /* of classes: floating [classes]. NULL: 1 */
    double label_smoothing; /* of the target so much, 0 to 1, is for all classes alike. Of cross_entropy alone */
} pc_fn_cross_entropy_options;

/* (d) -w[label] x[label]: x are logarithms of probabilities. The mean is the sum divided by that of w[label] over the samples
 * that count. A label that is neither a class nor ignored is PC_ERR_RANGE. */
PC_API PC_MUST_USE pc_tensor *pc_fn_nll_loss(pc_tensor *x, pc_tensor *labels, pc_fn_cross_entropy_options options);

/* (d) The same of log softmax(x). A target of x's shape holds probabilities, in a floating dtype, not labels: the sum over classes
 * of -w y log softmax(x), whose mean is by the number of samples; nothing is ignored then. With smoothing s and
 * c classes a target is (1 - s) y + s / c. */
PC_API PC_MUST_USE pc_tensor *pc_fn_cross_entropy(pc_tensor *x, pc_tensor *target, pc_fn_cross_entropy_options options);

PC_END
#endif
