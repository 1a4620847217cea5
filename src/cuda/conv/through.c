/* through.c: on the way back through a pooling and an activation in front of cuDNN's products, and the bias's gradient,
 * which cuDNN leaves. */
#include "cuda/conv/format.h"
#include "cuda/conv/pooled.h"
#include "cuda/conv/unrelu.h"
#include "cuda/pointwise/each.h"
#include "cuda/pointwise/elementwise.h"
#include "ops/reduce.h"

#include <paracord/ops.h>

static void launch_unrelu(const pc__cuda_launch *launch, const void *context)
{
    pc__cuda_pointwise(launch, PC__POINTWISE_relu_backward, *(const int *)context, 0);
}

static bool sums_on_the_way(const pc__conv_piece *p)
{
    return p->direction == PC__CONV_WEIGHTS && p->dbias && (p->s.pool > 1 || pc__cuda_has_unrelu(p->s.o, p->s.dtype));
}

static size_t gradient_bytes(const pc__conv_piece *p)
{
    return pc__cuda_whole((size_t)pc__conv_pixels(&p->s) * (size_t)p->s.o * pc__conv_number(p));
}

static size_t sums_bytes(const pc__conv_piece *p)
{
    return pc__cuda_whole(p->s.pool > 1 ? pc__cuda_conv_unpool_scratch(&p->s)
                                        : pc__cuda_unrelu_scratch(pc__conv_pixels(&p->s), p->s.o));
}

size_t pc__conv_through_scratch(const pc__conv_piece *p)
{
    if (p->direction == PC__CONV_FORWARD || (p->s.activation == PC_ACTIVATION_NONE && p->s.pool == 1))
        return 0;
    return gradient_bytes(p) + (sums_on_the_way(p) ? sums_bytes(p) : 0);
}

static pc_status unrelu(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, void *to)
{
    const int64_t count = pc__conv_pixels(&p->s) * p->s.o, one = 1;
    const int dtype = p->s.dtype;
    pc__conv_plain out, dy, y;
    pc_tensor *operands[3] = {pc__conv_as_tensor(&out, dtype, to, 1, &count, &one),
                              pc__conv_as_tensor(&dy, dtype, p->dy, 1, &count, &one),
                              pc__conv_as_tensor(&y, dtype, p->y, 1, &count, &one)};
    return pc__cuda_each(stream, call, 3, operands, launch_unrelu, &dtype);
}

static pc_status unrelu_and_sum(pc_stream *stream, const pc__conv_piece *p, void *to, void *sums)
{
    const pc__cuda_unrelu both = {.dy = p->dy,
                                  .y = p->y,
                                  .dz = to,
                                  .dbias = p->dbias,
                                  .rows = pc__conv_pixels(&p->s),
                                  .columns = p->s.o,
                                  .dtype = p->s.dtype,
                                  .early = pc__cuda_early(stream),
                                  .queue = pc__cuda_queue(stream)};
    pc__cuda_unrelu_and_sum(&both, sums);
    return PC_OK;
}

static pc_status unpool(pc_stream *stream, const pc__conv_piece *p, void *to, void *sums)
{
    pc__cuda_conv_unpool(pc__cuda_queue(stream), &p->s, p->dy, p->y, p->argmax, to, sums ? p->dbias : NULL, sums);
    return PC_OK;
}

pc_status pc__conv_through(pc_stream *stream, const pc_call *call, pc__conv_piece *p, void *scratch)
{
    void *const sums = sums_on_the_way(p) ? (char *)scratch + gradient_bytes(p) : NULL;
    PC__TRY(p->s.pool > 1 ? unpool(stream, p, scratch, sums)
            : sums        ? unrelu_and_sum(stream, p, scratch, sums)
                          : unrelu(stream, call, p, scratch));
    p->dy = scratch;
    p->dbias = sums ? NULL : p->dbias;
    p->s = pc__conv_alone(&p->s);
    return PC_OK;
}

/* Sums over pixels, by the kernel of sums, whose scratch memory is another one. */
pc_status pc__conv_add_up(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const void *dy)
{
    const pc__cuda_conv *s = &p->s;
    const int64_t rows = pc__conv_pixels(s), shape[2] = {rows, s->o}, strides[2] = {s->o, 1};
    const pc__reduce_attributes over = {.outer = 1, .reduced = rows, .inner = s->o, .divisor = 1};
    pc__conv_plain from, to;
    pc_tensor *in = pc__conv_as_tensor(&from, s->dtype, dy, 2, shape, strides);
    const pc_call sum = {.op = call->op,
                         .in = &in,
                         .n_in = 1,
                         .n_out = 1,
                         .out = {pc__conv_as_tensor(&to, s->dtype, p->dbias, 1, &shape[1], &strides[1])},
                         .attributes = &over,
                         .attribute_bytes = sizeof over};
    pc__cuda_deeper(stream, 1);
    const pc_status status = pc__cuda_op_sum(stream, &sum);
    pc__cuda_deeper(stream, -1);
    return status;
}
