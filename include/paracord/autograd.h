/* autograd.h: gradients by reverse-mode differentiation.
 *
 *     pc_require_grad(w, true);
 *     pc_tensor *loss = pc_mse(pc_matmul(x, w), y);
 *     pc_backward(loss);                 // adds d loss / d w to pc_grad(w)
 *
 * Ops on tensors that require gradients are recorded with what their gradient rule needs. pc_backward walks the record
 * once, newest first, and frees it. One that fails may have added to some leaves already: pc_zero_grad them. Threads: a
 * record belongs to the tensors; walk it from one thread.
 */
#ifndef PARACORD_AUTOGRAD_H
#define PARACORD_AUTOGRAD_H

#include <paracord/no_grad.h>
#include <paracord/tensor.h>

PC_BEGIN

/* Make a leaf (a tensor no op made) collect gradients, or stop. Floating point only. */
PC_API PC_MUST_USE pc_status pc_require_grad(pc_tensor *t, bool on);
PC_API bool pc_requires_grad(const pc_tensor *t); /* false for NULL */
PC_API bool pc_is_leaf(const pc_tensor *t);       /* false for NULL */

/* The gradient collected so far, same shape and dtype as t, and its memory order where t has no gaps; borrowed from t;
 * NULL when there is none. */
PC_API pc_tensor *pc_grad(const pc_tensor *t);

/* Forget the collected gradient. */
PC_API void pc_zero_grad(pc_tensor *t);

/* Differentiate `loss` (one element) and add the results to the gradients of the leaves. A second backward through the
 * same record is PC_ERR_STATE, as is a value the rules need that was changed in place since. */
PC_API PC_MUST_USE pc_status pc_backward(pc_tensor *loss);

/* The same with d / d t given, for a t of any shape. */
PC_API PC_MUST_USE pc_status pc_backward_with(pc_tensor *t, pc_tensor *gradient);

/* A function of the gradient on its way back, which others may read too, so that it is not to be written: returns what
 * goes on, `gradient` itself or another of its shape (made by ops, or anybody's). NULL with the error set ends the
 * backward pass. Nothing it does is differentiated. */
typedef pc_tensor *(*pc_gradient_fn)(void *context, pc_tensor *gradient);

/* (d) The same memory and values as x, whose gradient goes by function(context, gradient): to look at it, to scale it,
 * to keep it (pc_tensor_retain). x itself where it requires no gradient. In a recording (step.h) the function is called
 * once, while it is recorded, and launches repeat what it queued; `context` must live as long as the record. */
PC_API PC_MUST_USE pc_tensor *pc_gradient_hook(pc_tensor *x, pc_gradient_fn function, void *context);

/* The same memory without the record: gradients stop here. */
PC_API PC_MUST_USE pc_tensor *pc_detach(pc_tensor *t);

PC_END
#endif
