/* way.h: a convolution as its three products, each by our kernels or by cuDNN. */
#ifndef PC__CUDA_CONV_WAY_H
#define PC__CUDA_CONV_WAY_H

#include "cuda/conv/conv.h"
#include "cuda/conv/choice.h"
#include "cuda/runtime/cuda.h"

/* One of cuDNN's ways for a shape. Those that were chosen stay as long as the process. */
typedef struct pc__conv_way pc__conv_way;

/* One product with all that belongs to it: bias and activation forward; backward the way through the activation, and
 * the gradient of the bias beside that of the weights. */
typedef struct pc__conv_piece {
    pc__cuda_conv s;
    int direction;           /* pc__conv_direction */
    int dilation[2], groups; /* pc__conv_is_grouped; 0 means 1 */
    const void *x, *weight, *bias, *y, *dy;
    const void *staged_dy; /* dy in the format of cuDNN's way, or NULL */
    const uint8_t *argmax;
    void *result; /* y, dx or dweight */
    void *dbias;
    uint8_t *places;   /* forward: argmax to be written */
    void *packed;      /* input: weights of 16-bit numbers as its kernels order them, or NULL: they are not yet */
    pc__conv_way *way; /* cuDNN's, or NULL: our kernels do it, */
    const struct pc__row *own; /* by this row, or NULL: by the one that the rule picks */
} pc__conv_piece;

/* conv.c: those of the pieces, at most two, that have a way, by cuDNN. done[i] is false for the others, and for all
 * where there is too little memory. */
pc_status pc__conv_by_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *pieces, int count,
                            bool *done);

/* way.c: the thread's choice, unless PARACORD_ONLY makes another. */
pc_choice pc__conv_choice_for(const pc_stream *stream, const pc__conv_piece *piece);

/* geometry.c: whether cuDNN is so much faster that kernels of their own for the pooling or the activation behind it pay. */
bool pc__conv_is_worth_apart(const pc_stream *stream, const pc__conv_piece *piece, pc_choice choice);

/* Whether it has taps apart or groups, which rows of ours do not have, but for pc__conv_gaps_row. */
static inline bool pc__conv_is_grouped(const pc__conv_piece *p)
{
    return p->dilation[0] > 1 || p->dilation[1] > 1 || p->groups > 1;
}

/* way.c: who does the piece, told in its `way` and `own`: no way of cuDNN's where our kernels were chosen, cuDNN
 * cannot do it, or there is none. May wait for the stream, to measure. */
pc_status pc__conv_choose(pc_stream *stream, const pc_call *call, pc__conv_piece *piece);

/* conv.c: choose for a call of conv2d or conv2d_backward, ahead of its capture: cuDNN's plans are made before that. */
pc_status pc__conv_prepare(pc_stream *stream, const pc_call *call);

/* Both in the same format. */
bool pc__conv_same_format(const pc__conv_way *a, const pc__conv_way *b);

/* geometry.c: the call, with what is to be known of the stream. */
pc_status pc__conv_geometry(const pc_stream *stream, const pc_call *call, pc__cuda_conv *s);

/* geometry.c: what cuDNN is asked for, in our format. */
pc__conv_shape pc__conv_shape_of(const pc__conv_piece *piece);

/* Bytes of dy in the way's format, 0 where that is ours; and bringing it there. */
size_t pc__conv_staged_bytes(const pc__conv_piece *piece, const pc__conv_way *way);
pc_status pc__conv_stage(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, const pc__conv_way *way,
                         void *to);

/* by_cudnn.c: by that way; scratch has so many bytes. *done is false where cuDNN turned out to refuse it, now and
 * from then on. */
size_t pc__conv_cudnn_scratch(const pc__conv_piece *piece, const pc__conv_way *way);
pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_way *way,
                         void *scratch, bool *done);

/* Bring a gradient's piece in front of its pooling and activation: its dy is then in the scratch memory, which has so
 * many bytes (0: there is neither), and the bias's gradient, where it was to be made and there is a kernel that does both,
 * is made and no longer asked for. */
size_t pc__conv_through_scratch(const pc__conv_piece *piece);
pc_status pc__conv_through(pc_stream *stream, const pc_call *call, pc__conv_piece *piece, void *scratch);

#endif
