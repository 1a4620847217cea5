/* softmax.c: softmax and its logarithm. Kernels work on tensors without gaps, in whatever order these lie in memory, but
 * CUDA's along a very long dimension only where it is the last. */
#include "ops/softmax.h"

#include "ops/autocast.h"
#include "ops/table.h"

/* Elements of a, which is dense, between two neighbours along dimension d. */
static int64_t inside(const pc_tensor *a, int d)
{
    int64_t inner = 1;
    if (!pc__is_contiguous(a))
        return a->shape[d] == 1 ? 1 : a->strides[d];
    for (int i = d + 1; i < a->ndim; i++)
        inner *= a->shape[i];
    return inner;
}

static pc_tensor *along(int op, pc_tensor *a, int dim)
{
    enum { MOST = 1 << 24 };
    int d = pc__dim(pc__ops[op].name, dim, a->ndim);
    if (d < 0)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in = pc__is_float(a->dtype) ? pc__autocast_up(a) : pc__as_dtype(a, PC_F32);
        const int64_t n = a->ndim ? a->shape[d] : 1;
        const bool cuda = a->storage->device.type == PC_CUDA, turn = cuda && n > MOST && d != a->ndim - 1;
        if (turn || !in || !pc__is_dense(in))
            in = pc_contiguous(turn ? pc_transpose(in, d, -1) : in);
        if (!in)
            break;
        pc__softmax_attributes attributes = {n, a->ndim && !turn ? inside(in, d) : 1};
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
    pc__meta_like(&out[0], a, (pc_dtype)a->dtype);
    return PC_OK;
}

/* The result's gradient lies as the result does. */
static pc_status gradient(pc__grad *grad, int op)
{
    pc_tensor *in[] = {pc__lying_as(grad->out_grad[0], grad->out[0]), grad->out[0]};
    return pc__set_grad(grad, 0, pc__call(op, in, 2, grad->attributes, sizeof(pc__softmax_attributes)));
}

pc_status pc__grad_softmax(pc__grad *grad)
{
    return gradient(grad, PC__OP_softmax_backward);
}

pc_status pc__grad_log_softmax(pc__grad *grad)
{
    return gradient(grad, PC__OP_log_softmax_backward);
}
