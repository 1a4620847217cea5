/* dot.c: the product of two vectors, a number. */
#include "ops/table.h"
#include "tensor/read.h"

/* As the backend reads it: on CUDA elements may lie apart. */
static pc_tensor *readable(pc_tensor *t, pc_dtype dtype)
{
    pc_tensor *vector = pc__as_dtype(t, dtype);
    return vector && vector->storage->device.type == PC_CUDA ? vector : pc_contiguous(vector);
}

pc_tensor *pc_dot(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0])
        return pc__null(PC_ERR_SHAPE, "dot: the shapes %s and %s; both must be vectors of one length", PC__SHAPE_OF(a),
                        PC__SHAPE_OF(b));
    const pc_dtype dtype = pc__promote(a, b);
    if (!pc__is_float(dtype))
        return pc__null(PC_ERR_DTYPE, "dot: of %s; it has floating dtypes: use pc_cast to PC_F32 first",
                        pc_dtype_name(dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(PC__CALL_PLAIN(dot, readable(a, dtype), readable(b, dtype)));
    }
    return result;
}

pc_status pc__infer_dot(pc_call *call, pc__meta *out)
{
    pc__meta_contiguous(&out[0], call->in[0]->dtype, 0, NULL);
    return PC_OK;
}

/* d(a b) = a db + b da */
pc_status pc__grad_dot(pc__grad *grad)
{
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, pc_mul(grad->in[1 - i], grad->out_grad[0])));
    return PC_OK;
}
