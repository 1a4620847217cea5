/* amp.h: automatic mixed precision: products in 16 bits, all else as exact as before.
 *
 *     PC_AUTOCAST(PC_BF16) {
 *         pc_tensor *logits = pc_forward(net, x);          // parameters stay float32: copies of them are used
 *         loss = pc_keep(pc_cross_entropy(logits, labels)); // in float32
 *     }
 *     pc_backward(loss);                                    // outside: in the dtypes of the forward pass
 *     pc_optimizer_step(adam);
 *
 * With float16, whose smallest numbers are 6e-8, gradients need a loss scaler:
 *
 *     pc_scaler *scaler = pc_scaler(device);
 *     ...
 *     pc_backward(pc_scaler_scale(scaler, loss));
 *     pc_scaler_step(scaler, adam);                         // unless a gradient is infinite or NaN
 *     pc_scaler_update(scaler);
 *
 * pc_fit and `paracord train --precision` do all of this by themselves.
 */
#ifndef PARACORD_AMP_H
#define PARACORD_AMP_H

#include <paracord/tensor.h>

PC_BEGIN

/* --- autocast --- */

typedef struct pc_autocast_scope {
    int open;
    pc_dtype before;
} pc_autocast_scope;

/* From enter to leave the calling thread's ops cast their floating inputs (but for float64), as in torch.autocast:
 * matmul, linear, conv2d to `dtype`, PC_F16 or PC_BF16; exp, log, sum, mean, softmax, log_softmax and the losses to
 * float32. All others take what comes. A float32 leaf that requires a gradient (a parameter) is cast once for all its
 * uses until the outermost leave, a backward or a change of it, and for each where the program has a pointer to its
 * memory (pc_data); for those in a recording once more. A recording, that
 * of pc_step among them, leaves casts of what it trains to the optimiser's step, and does those of other parameters
 * together. Any other dtype: no casts until leave. Backward passes never cast. They nest; leave sets open to 0 and does
 * nothing when it is 0 already. */
PC_API pc_autocast_scope pc_autocast_enter(pc_dtype dtype);
PC_API void pc_autocast_leave(pc_autocast_scope *scope);

/* PC_F16 or PC_BF16 while the calling thread casts, else PC_F32. */
PC_API pc_dtype pc_autocast_dtype(void);

/* `break` and `continue` inside leave PC_AUTOCAST, not a loop around it; return and goto end it too. */
#define PC_AUTOCAST(dtype) PC_BLOCK_(pc_autocast_scope, pc_autocast_leave, pc_autocast_enter(dtype))

/* Mixed precision of a whole training (fit.h, train.h): none; bfloat16; float16 with a loss scaler. */
typedef enum pc_mixed { PC_MIXED_NONE, PC_MIXED_BF16, PC_MIXED_F16 } pc_mixed;

/* --- the loss scaler, as torch.amp.GradScaler ---
 *
 * Its numbers live on the device, and the device decides: the host waits for nothing, and steps can be recorded
 * (step.h). One thread at a time. */

typedef struct pc_scaler pc_scaler;
struct pc_optimizer;

typedef struct pc_scaler_options {
    int reserved_;
    double initial; /* the first scale, at least 2^-24; 0 means 65536 */
    double growth;  /* factor after `interval` steps without an infinite gradient; 0 means 2 */
    double backoff; /* factor after one with, down to 2^-24; 0 means 0.5 */
    int interval;   /* 0 means 2000 */
} pc_scaler_options;

/* The caller owns it. PC_ERR_ARGUMENT for factors that do not grow and back off. */
PC_API PC_MUST_USE pc_scaler *pc_scaler_new(pc_device device, pc_scaler_options options);
#define pc_scaler(...) PC_SCALER_(__VA_ARGS__, )
#define PC_SCALER_(device, ...) pc_scaler_new((device), PC_OPTIONS(pc_scaler_options, __VA_ARGS__))
PC_API void pc_scaler_free(pc_scaler *scaler);

/* (d) loss times the scale, float32 (float64 stays). What pc_backward is to start from. */
PC_API PC_MUST_USE pc_tensor *pc_scaler_scale(pc_scaler *scaler, pc_tensor *loss);

/* Divide the gradients of the optimiser's parameters by the scale, and note on the device whether one is infinite or
 * NaN. Only where gradients are looked at before the step (clipping, say): pc_scaler_step does it otherwise.
 * PC_ERR_STATE the second time before an update. */
PC_API PC_MUST_USE pc_status pc_scaler_unscale(pc_scaler *scaler, struct pc_optimizer *optimizer);

/* pc_optimizer_step, whose kernels do nothing if an infinite or NaN gradient was noted since the last update; such a
 * step does not count. The gradients are forgotten either way. */
PC_API PC_MUST_USE pc_status pc_scaler_step(pc_scaler *scaler, struct pc_optimizer *optimizer);

/* Once for all optimisers' steps: grow or back off. */
PC_API PC_MUST_USE pc_status pc_scaler_update(pc_scaler *scaler);

/* The scale; waits for what is queued. NaN on failure. */
PC_API double pc_scaler_value(const pc_scaler *scaler);

PC_END
#endif
