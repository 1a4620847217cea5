/* format.h: operands of a convolution in our format and in the one that cuDNN is given (choice.h), and memory that kernels
 * of other ops are to see as tensors. Plain C without cuDNN's headers. */
#ifndef PC__CUDA_CONV_FORMAT_H
#define PC__CUDA_CONV_FORMAT_H

#include "cuda/conv/way.h"

#include <paracord/ops.h>

/* Memory as a tensor, without a count of who holds it. */
typedef struct pc__conv_plain {
    pc__storage storage;
    pc_tensor tensor;
} pc__conv_plain;

pc_tensor *pc__conv_as_tensor(pc__conv_plain *t, int dtype, const void *data, int ndim, const int64_t *shape,
                              const int64_t *strides);

static inline size_t pc__conv_number(const pc__conv_piece *p)
{
    return pc_dtype_size((pc_dtype)p->s.dtype);
}

/* Pixels of all results, each of s.o channels. */
static inline int64_t pc__conv_pixels(const pc__cuda_conv *s)
{
    return s->n * s->oh * s->ow;
}

/* Without what follows it. */
static inline pc__cuda_conv pc__conv_alone(const pc__cuda_conv *s)
{
    pc__cuda_conv alone = *s;
    alone.pool = 1, alone.activation = PC_ACTIVATION_NONE;
    alone.yh = s->oh, alone.yw = s->ow;
    return alone;
}

/* Pictures of one operand, ours with c channels, cuDNN's with `made`. */
typedef struct pc__conv_pictures {
    int format, dtype, c, made;
    bool planes;              /* ours lie in C order */
    int64_t n, area;          /* pixels of one */
    const pc__cuda_conv *s;   /* inputs that are folded: how, */
    const pc__conv_shape *to; /* and to what; else NULL */
} pc__conv_pictures;

pc__conv_pictures pc__conv_inputs(const pc__conv_piece *p, const pc__conv_shape *made);
pc__conv_pictures pc__conv_results(const pc__conv_piece *p, const pc__conv_shape *made);

/* Bytes in cuDNN's format, a multiple of 256; 0 where ours is the same. */
size_t pc__conv_pictures_room(const pc__conv_pictures *of);
size_t pc__conv_weight_room(const pc__cuda_conv *s, const pc__conv_shape *made);

/* From our format, or `back` to it, where there is room for the other one. */
pc_status pc__conv_turn_pictures(pc_stream *stream, const pc_call *call, const pc__conv_pictures *of, const void *from,
                                 void *to, bool back);
pc_status pc__conv_turn_weight(pc_stream *stream, const pc_call *call, const pc__cuda_conv *s,
                               const pc__conv_shape *made, const void *from, void *to, bool back);

/* through.c: the bias's gradient from dy in front of the activation. */
pc_status pc__conv_add_up(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const void *dy);

#endif
