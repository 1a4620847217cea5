/* convolution.c: calls of the three ops of convolutions with taps apart or channels in groups as others see them: as calls of
 * conv2d where there are neither, and as pieces that cuDNN may do. */
#include "cuda/conv/convolve.h"
#include "cuda/conv/format.h"
#include "cuda/conv/plain.h"
#include "ops/conv2d.h"
#include "ops/table.h"

pc__convolution pc__convolution_of(const pc_call *call)
{
    const pc__convolve_attributes *a = call->attributes;
    const int direction = call->op->index == PC__OP_convolve         ? PC__CONV_FORWARD
                          : call->op->index == PC__OP_convolve_input ? PC__CONV_INPUT
                                                                     : PC__CONV_WEIGHTS;
    const pc_tensor *first = call->in[0], *second = call->in[1];
    pc__convolution v = {.attributes = a,
                         .direction = direction,
                         .dtype = first->dtype,
                         .n = first->shape[0],
                         .result = pc__data(call->out[0])};
    v.c = direction == PC__CONV_INPUT ? second->shape[1] * a->groups : first->shape[1];
    v.o = direction == PC__CONV_FORWARD ? second->shape[0]
          : direction == PC__CONV_INPUT ? first->shape[1]
                                        : second->shape[1];
    v.x = direction == PC__CONV_INPUT ? NULL : pc__data(first);
    v.y = direction == PC__CONV_INPUT ? pc__data(first) : direction == PC__CONV_WEIGHTS ? pc__data(second) : NULL;
    v.weight = direction == PC__CONV_WEIGHTS ? NULL : pc__data(second);
    v.bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
    return v;
}

bool pc__convolution_is_plain(const pc__convolution *v)
{
    const pc__convolve_attributes *a = v->attributes;
    return a->groups == 1 && a->dilation[0] == 1 && a->dilation[1] == 1;
}

/* --- as calls of conv2d --- */

/* A tensor that the call lacks: one of no elements, or that of a shape whose elements nobody reads. */
static pc_tensor *stand_in(pc__conv_plain *plain, const pc__convolution *v, pc_device device, int ndim,
                           const int64_t *shape)
{
    const int64_t area = ndim == 4 ? shape[2] * shape[3] : 0;
    const int64_t strides[4] = {ndim == 4 ? shape[1] * area : 1, 1, ndim == 4 ? shape[3] * shape[1] : 1,
                                ndim == 4 ? shape[1] : 1};
    pc_tensor *t = pc__conv_as_tensor(plain, v->dtype, v->result, ndim, shape, strides);
    t->storage->device = device;
    return t;
}

/* What kernels ask of an op. */
static const pc__op plain_ops[] = {{.name = "conv2d", .index = PC__OP_conv2d, .n_out = 2},
                                   {.name = "conv2d_backward", .index = PC__OP_conv2d_backward, .n_out = 3}};

pc_status pc__convolution_plain(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool choose)
{
    const pc__convolve_attributes *a = v->attributes;
    const int64_t none[4] = {0}, x_shape[4] = {v->n, v->c, a->size[0], a->size[1]};
    const int64_t weight_shape[4] = {v->o, v->c, a->kernel[0], a->kernel[1]};
    const bool forward = v->direction == PC__CONV_FORWARD, input = v->direction == PC__CONV_INPUT;
    pc__conv2d_attributes attributes = {
        .spec = {.stride = {a->stride[0], a->stride[1]}, .padding = {a->padding[0], a->padding[1]}, .pool = 1},
        .needs = {input, !input, false}};
    pc__conv_plain plain[5];
    pc_tensor *in[5];
    pc_call inner = {.op = &plain_ops[!forward],
                     .in = in,
                     .n_in = forward ? call->n_in : 5,
                     .n_out = plain_ops[!forward].n_out,
                     .attributes = &attributes,
                     .attribute_bytes = sizeof attributes};
    const pc_device device = stream->device;
    pc_tensor *const empty = stand_in(&plain[0], v, device, 1, none);
    inner.out[0] = inner.out[1] = inner.out[2] = empty;
    inner.out[!forward && !input] = call->out[0];
    if (forward) {
        memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
    } else {
        in[0] = input ? stand_in(&plain[1], v, device, 4, x_shape) : call->in[0];
        in[1] = input ? call->in[1] : stand_in(&plain[2], v, device, 4, weight_shape);
        if (!input) /* in C order, as is its gradient */
            memcpy(in[1]->strides, call->out[0]->strides, 4 * sizeof *in[1]->strides);
        in[4] = call->in[input ? 0 : 1];
        in[2] = in[4]; /* y, which is not read without an activation */
        in[3] = empty;
    }
    if (choose)
        return pc__conv_prepare(stream, &inner);
    return (forward ? pc__cuda_op_conv2d : pc__cuda_op_conv2d_backward)(stream, &inner);
}

/* --- by cuDNN --- */

static pc__conv_piece piece_of(const pc_stream *stream, const pc__convolution *v)
{
    const pc__convolve_attributes *a = v->attributes;
    const int oh = (int)pc__convolve_out(a, 0), ow = (int)pc__convolve_out(a, 1);
    return (pc__conv_piece){.s = {.dtype = v->dtype,
                                  .activation = PC_ACTIVATION_NONE,
                                  .early = pc__cuda_early(stream),
                                  .multiprocessors = pc__cuda_multiprocessors(stream),
                                  .tf32 = pc_matmul_precision_get() == PC_PRECISION_TF32,
                                  .n = v->n,
                                  .h = (int)a->size[0],
                                  .w = (int)a->size[1],
                                  .c = (int)v->c,
                                  .o = (int)v->o,
                                  .kh = (int)a->kernel[0],
                                  .kw = (int)a->kernel[1],
                                  .sh = a->stride[0],
                                  .sw = a->stride[1],
                                  .ph = a->padding[0],
                                  .pw = a->padding[1],
                                  .oh = oh,
                                  .ow = ow,
                                  .pool = 1,
                                  .yh = oh,
                                  .yw = ow,
                                  .dh = a->dilation[0],
                                  .dw = a->dilation[1],
                                  .groups = (int)a->groups},
                            .direction = v->direction,
                            .dilation = {a->dilation[0], a->dilation[1]},
                            .groups = (int)a->groups,
                            .x = v->x,
                            .weight = v->weight,
                            .bias = v->bias,
                            .dy = v->y,
                            .result = v->result};
}

pc_choice pc__convolution_choice(const pc_stream *stream, const pc__convolution *v)
{
    const pc__conv_piece p = piece_of(stream, v);
    return pc__conv_choice_for(stream, &p);
}

bool pc__convolution_by_plain(pc_stream *stream, const pc__convolution *v)
{
    const pc__conv_piece p = piece_of(stream, v);
    const cudaStream_t queue = pc__cuda_queue(stream);
    if (v->attributes->planes || pc__conv_choice_for(stream, &p) == PC_CHOICE_CUDNN || !pc__conv_is_plain_grouped(&p) ||
        !pc__cuda_conv_plain_fits(&p.s))
        return false;
    if (v->direction == PC__CONV_FORWARD)
        pc__cuda_conv_plain_forward(queue, &p.s, v->x, v->weight, v->bias, v->result);
    else if (v->direction == PC__CONV_INPUT)
        pc__cuda_conv_plain_input(queue, &p.s, v->weight, NULL, v->y, v->result);
    else
        pc__cuda_conv_plain_weights(queue, &p.s, v->x, NULL, v->y, v->result, NULL);
    pc__rows_say(stream, "by plain");
    return true;
}

pc_status pc__convolution_choose(pc_stream *stream, const pc_call *call, const pc__convolution *v)
{
    pc__conv_piece p = piece_of(stream, v);
    return pc__conv_choose(stream, call, &p);
}

static pc_status by_tiles(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, bool *done)
{
    const pc__row *row = pc__conv_gaps_row(p);
    if (!row)
        return PC_OK;
    void *scratch = pc__cuda_scratch(stream, row->workspace(p));
    if (!scratch)
        return PC_ERR_MEMORY;
    PC__TRY(row->run(stream, call, p, scratch, done));
    *done = true;
    pc__rows_say(stream, row->note);
    return pc__cuda_launched(call);
}

/* The piece as tiles do it: 16-bit numbers as floats, which matrix units multiply exactly as TF32. */
static pc__conv_piece floats_of(const pc_stream *stream, const pc__convolution *v)
{
    pc__conv_piece p = piece_of(stream, v);
    if (pc__is_half((pc_dtype)p.s.dtype))
        p.s.dtype = PC_F32, p.s.tf32 = true;
    return p;
}

bool pc__convolution_is_for_tiles(const pc_stream *stream, const pc__convolution *v)
{
    const pc__conv_piece p = floats_of(stream, v);
    const pc__conv_shape shape = pc__conv_shape_of(&p);
    const bool half = pc__is_half(v->dtype);
    const bool rule = half ? pc__conv_has_matrix_units(stream) && pc__conv_is_for_tiles_of_halves(&shape)
                           : pc__conv_is_for_tiles(&shape);
    const pc_choice choice = pc__conv_choice_for(stream, &p);
    const bool by_rule = choice == PC_CHOICE_RULE || (half && choice == PC_CHOICE_MEASURED); /* of kernels alone */
    return pc__conv_gaps_row(&p) && (pc__conv_is_forced_to_tiles(&p) || (rule && by_rule));
}

static pc_status tiles_of_floats(pc_stream *stream, const pc_call *call)
{
    const pc__convolution v = pc__convolution_of(call);
    pc__conv_piece p = piece_of(stream, &v);
    bool done;
    p.s.tf32 = true;
    return by_tiles(stream, call, &p, &done);
}

pc_status pc__convolution_by_tiles(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool *done)
{
    const pc__conv_piece p = piece_of(stream, v);
    if (!pc__is_half(v->dtype))
        return by_tiles(stream, call, &p, done);
    pc_error before = pc__error_take();
    const pc_status status = pc__cuda_in_floats(stream, call, tiles_of_floats);
    if (status != PC_OK && status != PC_ERR_MEMORY)
        return status;
    (void)pc__error_take();
    (void)pc__error_put(&before);
    *done = status == PC_OK; /* where memory for floats is missing others do it */
    return PC_OK;
}

pc_status pc__convolution_by_pieces(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool *done)
{
    pc__conv_piece p = piece_of(stream, v);
    *done = false;
    PC__TRY(pc__conv_choose(stream, call, &p));
    if (p.way)
        PC__TRY(pc__conv_by_cudnn(stream, call, &p, 1, done));
    if (*done)
        pc__rows_say(stream, "by cuDNN");
    return *done ? PC_OK : by_tiles(stream, call, &p, done);
}
