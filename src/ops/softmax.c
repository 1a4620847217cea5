/* softmax.c: softmax and its logarithm. The kernels work on a contiguous tensor, CUDA's along a very long dimension
 * only where it is the last. */
#include "ops/softmax.h"

#include "ops/autocast.h"
#include "ops/table.h"

static pc_tensor *along(int op, pc_tensor *a, int dim)
{
    enum { MOST = 1 << 24 };
    int d = pc__dim(pc__ops[op].name, dim, a->ndim);
    if (d < 0)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in = pc__is_float(a->dtype) ? pc__autocast_up(a) : pc__as_dtype(a, PC_F32);
        pc__softmax_attributes attributes = {a->ndim ? a->shape[d] : 1, 1};
        for (int i = d + 1; i < a->ndim; i++)
            attributes.inner *= a->shape[i];
        const bool turn = a->storage->device.type == PC_CUDA && a->ndim && d != a->ndim - 1 && attributes.n > MOST;
        attributes.inner = turn ? 1 : attributes.inner;
        in = pc_contiguous(turn ? pc_transpose(in, d, -1) : in);
        pc_tensor *y = pc__call(op, &in, 1, &attributes, sizeof attributes);
        result = pc_keep(turn ? pc_transpose(y, d, -1) : y);
    }
    return result;
}

pc_tensor *pc_softmax(pc_tensor *a, int dim)
{
    PC__NEED_OR(NULL, a);
    return along(PC__OP_softmax, a, dim);
}

pc_tensor *pc_log_softmax(pc_tensor *a, int dim)
{
    PC__NEED_OR(NULL, a);
    return along(PC__OP_log_softmax, a, dim);
}

pc_status pc__infer_softmax(pc_call *call, pc__meta *out)
{
    const pc_tensor *a = call->in[0];
    pc__meta_contiguous(&out[0], a->dtype, a->ndim, a->shape);
    return PC_OK;
}

pc_status pc__grad_softmax(pc__grad *grad)
{
    const pc__softmax_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(softmax_backward, a, pc_contiguous(grad->out_grad[0]), grad->out[0]));
}

pc_status pc__grad_log_softmax(pc__grad *grad)
{
    const pc__softmax_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(log_softmax_backward, a, pc_contiguous(grad->out_grad[0]), grad->out[0]));
}
