/* table.h: the ops by number, and what their files share. */
#ifndef PC__OP_TABLE_H
#define PC__OP_TABLE_H

#include "tensor/call.h"

#include <paracord/ops.h>

enum pc__op_index {
#define PC__OP(name, outputs, flags, infer, gradient) PC__OP_##name,
#define PC__VIEW_OP(name, infer, gradient) PC__OP_##name,
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
    PC__OP_COUNT
};

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    pc_status infer(pc_call *call, pc__meta *out);                                                                     \
    pc_status gradient(pc__grad *grad);
#define PC__VIEW_OP(name, infer, gradient) PC__OP(name, 1, 0, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

PC__FOR_LEVELS extern const pc__op pc__ops[PC__OP_COUNT];

/* Describe an output like t: same shape, same memory order where t is dense. */
void pc__meta_like(pc__meta *meta, const pc_tensor *t, pc_dtype dtype);

/* Call op number `op` on inputs; the first output, or NULL. Further outputs are left to the scope or released. */
pc_tensor *pc__call(int op, pc_tensor **in, int n_in, const void *attributes, size_t attribute_bytes);

/* The same, keeping all outputs. */
pc_status pc__call_all(int op, pc_tensor **in, int n_in, const void *attributes, size_t attribute_bytes,
                       pc_tensor **out);

/* Call an op of two inputs with both in `dtype`. */
pc_tensor *pc__call_as(int op, pc_tensor *a, pc_tensor *b, pc_dtype dtype);

/* Call an in-place op that writes `to`. */
pc_status pc__call_in_place(int op, pc_tensor *to, pc_tensor **in, int n_in, const void *attributes,
                            size_t attribute_bytes);

#define PC__CALL(op, attributes, ...)                                                                                  \
    pc__call(PC__OP_##op, (pc_tensor *[]){__VA_ARGS__}, PC__COUNT(((pc_tensor *[]){__VA_ARGS__})), (attributes),       \
             sizeof *(attributes))
#define PC__CALL_PLAIN(op, ...)                                                                                        \
    pc__call(PC__OP_##op, (pc_tensor *[]){__VA_ARGS__}, PC__COUNT(((pc_tensor *[]){__VA_ARGS__})), NULL, 0)

/* NULL, for a NULL input: records PC_ERR_ARGUMENT unless the error that made the input NULL is there. */

/* t itself with one more owner: the scope, or the caller. */
pc_tensor *pc__share(pc_tensor *t);

/* t in dtype (t itself when it is already). NULL flows. */
pc_tensor *pc__as_dtype(pc_tensor *t, pc_dtype dtype);

/* t in the memory order of `like`, which is dense (t itself when it has that). NULL flows. */
pc_tensor *pc__lying_as(pc_tensor *t, const pc_tensor *like);

/* t with the memory order n, h, w, c (t itself when it has it). */
pc_tensor *pc__channels_last(pc_tensor *t);
bool pc__is_nhwc(const pc_tensor *t); /* dense in n, h, w, c order, whatever else it is */

/* Sum t to a shape that broadcasts to t's. */
pc_tensor *pc__sum_to(pc_tensor *t, int ndim, const int64_t *shape);

/* Set grad->in_grad[i] = value; PC_OK, or the thread's error when value is NULL. */
pc_status pc__set_grad(pc__grad *grad, int i, pc_tensor *value);

#endif
