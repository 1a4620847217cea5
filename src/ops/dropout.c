/* dropout.c: zeros by chance, the rest scaled so that the mean stays. Kernels take tensors without gaps, CUDA's also others. */
#include "ops/random.h"

#include "ops/again.h"
#include "ops/table.h"

static _Thread_local struct {
    pc_tensor *base;
    uint64_t from, count;
} recorded;

uint64_t pc__draws_record(pc_tensor *base, uint64_t from)
{
    uint64_t count = recorded.count;
    recorded.base = base;
    recorded.from = from;
    recorded.count = 0;
    return count;
}

bool pc__draws_recorded(void)
{
    return recorded.base;
}

pc_tensor *pc__draw_relative(pc__random_attributes *drawn)
{
    if (recorded.base) {
        drawn->stream -= recorded.from * 4;
        recorded.count += !pc__again_number();
    }
    return recorded.base;
}

/* CUDA's kernel reads a tensor where it lies, unless neighbours lie far apart: a copy turns it faster then. */
static bool is_read_in_place(const pc_tensor *a)
{
    enum { NEAR = 8 /* elements */ };
    int last = a->ndim - 1;
    while (last >= 0 && a->shape[last] == 1)
        last--;
    return pc__is_dense(a) || (a->storage->device.type == PC_CUDA && pc_tensor_count(a) <= INT32_MAX &&
                               (last < 0 || a->strides[last] <= NEAR));
}

pc_tensor *pc_fn_dropout(pc_tensor *a, double p)
{
    PC__NEED_OR(NULL, a);
    if (!(p >= 0 && p <= 1))
        return pc__null(PC_ERR_ARGUMENT, "dropout: p is %g; it must be 0 to 1", p);
    if (!pc__is_float(a->dtype) && p != 0 && p != 1)
        return pc__null(PC_ERR_DTYPE, "dropout: the input is %s; it must be floating", pc_dtype_name(a->dtype));
    pc__random_attributes attributes = pc__draw(PC__PURPOSE_DROPOUT, p, 0);
    pc_tensor *base = pc__draw_relative(&attributes);
    if (!pc__is_float(a->dtype)) /* nothing is scaled */
        return p == 0 ? pc_clone(a) : pc_zeros(pc_tensor_shape(a), (pc_dtype)a->dtype, a->storage->device);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[2] = {is_read_in_place(a) ? a : pc_contiguous(a), base};
        result = pc_keep(pc__call(PC__OP_dropout, in, base ? 2 : 1, &attributes, sizeof attributes));
    }
    return result;
}

/* Outputs: the result, and which elements stayed, where a gradient is recorded. */
pc_status pc__infer_dropout(pc_call *call, pc__meta *out)
{
    const pc_tensor *a = call->in[0];
    const int64_t none = 0;
    pc__meta_like(&out[0], a, (pc_dtype)a->dtype);
    if (pc__tape_wants(call))
        pc__meta_like(&out[1], a, PC_BOOL);
    else
        pc__meta_contiguous(&out[1], PC_BOOL, 1, &none);
    return PC_OK;
}

pc_status pc__grad_dropout(pc__grad *grad)
{
    const pc__random_attributes attributes = {.low = ((const pc__random_attributes *)grad->attributes)->low};
    pc_tensor *in[] = {pc__lying_as(grad->out_grad[0], grad->out[1]), grad->out[1]};
    return pc__set_grad(grad, 0, pc__call(PC__OP_dropout_backward, in, 2, &attributes, sizeof attributes));
}
