/* own_call.c: calls of ops that the program has registered: what its rules and kernels are given, and what is made of
 * their answers. */
#include "base/parallel.h"
#include "ops/own.h"
#include "ops/table.h"
#include "tensor/read.h"

/* What a function of the program returned, in a thread that had an error `before` or not: its words begin with the op,
 * and there are some. An error that it has recorded counts, whatever it returned. */
static pc_status answer(const pc__op *op, pc_status status, bool before, const char *who)
{
    const bool told = !before && pc_failed();
    if (status == PC_OK && !told)
        return PC_OK;
    if (!told)
        return pc__fail(status > PC_OK && status < PC_STATUS_COUNT ? status : PC_ERR_ARGUMENT,
                        "%s: its %s returned %d (%s) and has not said why (pc_fail)", op->name, who, (int)status,
                        pc_status_name(status));
    char words[PC_OP_NAME_MAX + 3];
    snprintf(words, sizeof words, "%s: ", op->name);
    pc__error_before(words, 0);
    return pc_error_last()->status;
}

static pc_op_meta meta_of(const pc_tensor *t)
{
    return (pc_op_meta){(pc_dtype)t->dtype, pc_shape_of(t->ndim, t->shape)};
}

static pc_status check_target(const pc_call *call, int i)
{
    const pc_tensor *t = call->out[i];
    if (pc__own_of(call->op)->strided || pc__is_contiguous(t))
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE,
                    "%s: output %d of shape %s is not contiguous; give it a tensor that is, and pc_copy that",
                    call->op->name, i, PC__SHAPE_OF(t));
}

static pc_status describe(const pc__op *op, int i, const pc_op_meta *want, pc__meta *out)
{
    if ((int)want->dtype < 0 || want->dtype >= PC_DTYPE_COUNT)
        return pc__fail(PC_ERR_DTYPE, "%s: its shape rule gives output %d the dtype %d, which is none", op->name, i,
                        (int)want->dtype);
    PC__TRY(pc__shape_check(op->name, want->shape, want->dtype));
    pc__meta_contiguous(out, want->dtype, want->shape.ndim, want->shape.dim);
    return PC_OK;
}

pc_status pc__infer_own(pc_call *call, pc__meta *out)
{
    const pc_op *op = pc__own_of(call->op);
    const bool in_place = op->row.flags & PC__IN_PLACE, before = pc_failed();
    pc_op_meta in[PC_OP_INPUTS_MAX], want[PC_OP_OUTPUTS_MAX];
    for (int i = 0; i < call->n_in; i++)
        in[i] = meta_of(call->in[i]);
    for (int i = 0; i < call->n_out; i++) {
        if (in_place)
            PC__TRY(check_target(call, i));
        want[i] = in_place ? meta_of(call->out[i]) : in[0];
    }
    if (op->shape)
        PC__TRY(answer(call->op, op->shape(in, call->attributes, want), before, "shape rule"));
    for (int i = 0; i < (in_place ? 0 : call->n_out); i++)
        PC__TRY(describe(call->op, i, &want[i], &out[i]));
    return PC_OK;
}

static pc_op_view view_of(const pc_tensor *t)
{
    pc_op_view view = {
        .data = pc__data(t), .dtype = (pc_dtype)t->dtype, .ndim = t->ndim, .count = pc__count(t->ndim, t->shape)};
    memcpy(view.shape, t->shape, sizeof view.shape);
    memcpy(view.strides, t->strides, sizeof view.strides);
    return view;
}

pc_status pc__own_run(const pc_call *call, pc_op_kernel_fn kernel, void *stream)
{
    pc_op_view view[PC_OP_INPUTS_MAX + PC_OP_OUTPUTS_MAX];
    for (int i = 0; i < call->n_in + call->n_out; i++)
        view[i] = view_of(pc__call_tensor(call, i));
    const pc_op_run run = {.in = view,
                           .out = view + call->n_in,
                           .attributes = call->attributes,
                           .device = pc__call_tensor(call, 0)->storage->device,
                           .stream = stream};
    const bool before = pc_failed();
    return answer(call->op, kernel(&run), before, "kernel");
}

static void metas_of(const pc__meta *from, int n, pc_op_meta *to)
{
    for (int i = 0; i < n; i++)
        to[i] = (pc_op_meta){from[i].dtype, pc_shape_of(from[i].ndim, from[i].shape)};
}

static pc_status check_gradient(const pc__grad *grad, int i)
{
    const pc_tensor *g = grad->in_grad[i];
    const pc__meta *in = &grad->in_meta[i];
    if (!g || (pc__is_float((pc_dtype)g->dtype) && pc_device_equal(g->storage->device, grad->device) &&
               g->ndim == in->ndim && memcmp(g->shape, in->shape, (size_t)g->ndim * sizeof g->shape[0]) == 0))
        return PC_OK;
    char name[PC_DEVICE_NAME_MAX];
    return pc__fail(PC_ERR_SHAPE, "%s: its gradient rule made %s %s on %s for input %d, which is %s %s", grad->op->name,
                    pc_dtype_name((pc_dtype)g->dtype), PC__SHAPE_OF(g), pc_device_name(g->storage->device, name), i,
                    pc_dtype_name(in->dtype), PC__SHAPE_OF(in));
}

pc_status pc__grad_own(pc__grad *grad)
{
    const pc_op *op = pc__own_of(grad->op);
    const bool before = pc_failed();
    pc_op_meta in[PC_OP_INPUTS_MAX], out[PC_OP_OUTPUTS_MAX];
    metas_of(grad->in_meta, grad->n_in, in);
    metas_of(grad->out_meta, grad->n_out, out);
    const pc_op_gradient gradient = {.attributes = grad->attributes,
                                     .device = grad->device,
                                     .in_meta = in,
                                     .out_meta = out,
                                     .in = grad->in,
                                     .out = grad->out,
                                     .out_grad = grad->out_grad,
                                     .needs = grad->needs,
                                     .in_grad = grad->in_grad};
    PC__TRY(answer(grad->op, op->gradient(&gradient), before, "gradient rule"));
    for (int i = 0; i < grad->n_in; i++) {
        if (!grad->needs[i])
            grad->in_grad[i] = NULL; /* nobody takes it */
        PC__TRY(check_gradient(grad, i));
    }
    return PC_OK;
}

static pc_status check_device(const pc_op *op, const pc_tensor *first)
{
    char name[PC_DEVICE_NAME_MAX];
    const pc_device device = first->storage->device;
    if (device.type == PC_CUDA ? op->cuda : op->cpu)
        return PC_OK;
    return pc__fail(PC_ERR_UNSUPPORTED, "%s of %s has no kernel on %s; register it with one, or pc_to its tensors",
                    op->name, pc_dtype_name((pc_dtype)first->dtype), pc_device_name(device, name));
}

static pc_status check_call(const pc_op *op, pc_tensor *const *inputs, int n, pc_tensor *const *outputs)
{
    if (n != op->inputs)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d inputs; it takes %d", op->name, n, op->inputs);
    for (int i = 0; op->row.flags & PC__IN_PLACE && i < op->row.n_out; i++)
        if (!outputs[i])
            return pc_failed() ? pc_error_last()->status
                               : pc__fail(PC_ERR_ARGUMENT, "%s: output %d, which it is to write, is NULL", op->name, i);
    const pc_tensor *first = n ? inputs[0] : outputs[0];
    return first ? check_device(op, first) : PC_OK; /* NULL is told with what made it */
}

/* The inputs as kernels take them, in place of the program's. */
static pc_status bring(const pc_op *op, pc_tensor *const *inputs, pc_tensor **in)
{
    for (int i = 0; i < op->inputs; i++) {
        const bool fits = op->strided || !inputs[i] || pc__is_contiguous(inputs[i]);
        in[i] = fits ? inputs[i] : pc_contiguous(inputs[i]);
        if (!fits && !in[i])
            return pc_error_last()->status;
    }
    return PC_OK;
}

pc_status pc_op_call(const pc_op *op, pc_tensor *const *inputs, int n, const void *attributes, pc_tensor **outputs)
{
    PC__NEED(op);
    PC__NEED(outputs);
    if (op->inputs)
        PC__NEED(inputs);
    if (op->attribute_bytes)
        PC__NEED(attributes);
    const bool in_place = op->row.flags & PC__IN_PLACE;
    pc_tensor *in[PC_OP_INPUTS_MAX] = {NULL};
    pc_call call = {.op = &op->row,
                    .in = in,
                    .n_in = op->inputs,
                    .n_out = op->row.n_out,
                    .attributes = op->attribute_bytes ? attributes : NULL,
                    .attribute_bytes = op->attribute_bytes};
    pc_status status = check_call(op, inputs, n, outputs);
    for (int i = 0; in_place && i < call.n_out; i++)
        call.out[i] = outputs[i];
    if (status == PC_OK)
        status = bring(op, inputs, in);
    if (status == PC_OK)
        status = pc_dispatch(&call);
    for (int i = 0; i < op->inputs; i++)
        if (in[i] && in[i] != inputs[i])
            pc__tensor_discard(in[i]);
    for (int i = 0; !in_place && i < call.n_out; i++)
        outputs[i] = status == PC_OK ? call.out[i] : NULL;
    return status;
}

void pc_op_parallel(int64_t n, int64_t work, pc_op_part_fn part, void *context)
{
    PC__NEED_OR(, part);
    pc__parallel(pc__threads(work), n, part, context);
}
