/* convolve.h: what the files about convolutions with taps apart or channels in groups share. */
#ifndef PC__CUDA_CONV_CONVOLVE_H
#define PC__CUDA_CONV_CONVOLVE_H

#include "cuda/conv/groups.h"
#include "cuda/conv/rows.h"
#include "ops/convolve.h"

/* A call of one of the three ops. `result` is y, x or the weight, by direction. */
typedef struct pc__convolution {
    const pc__convolve_attributes *attributes;
    int direction, dtype; /* pc__conv_direction */
    int64_t n, c, o;
    const void *x, *weight, *bias, *y;
    void *result;
} pc__convolution;

pc__convolution pc__convolution_of(const pc_call *call);

/* Without gaps and groups: a call of conv2d, or of its gradient; `choose`: only who is to do it (pc__conv_prepare). */
bool pc__convolution_is_plain(const pc__convolution *v);
pc_status pc__convolution_plain(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool choose);

/* What is so little work that it takes no longer than a launch does: false where it is more. */
bool pc__convolution_by_plain(pc_stream *stream, const pc__convolution *v);

/* What was asked for, of who is to do it (pc__conv_choice_for). */
pc_choice pc__convolution_choice(const pc_stream *stream, const pc__convolution *v);

/* By the tiles that convolutions without gaps have: whether the rule or PARACORD_ONLY says so, and they take it. */
bool pc__convolution_is_for_tiles(const pc_stream *stream, const pc__convolution *v);
pc_status pc__convolution_by_tiles(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool *done);

/* By cuDNN, where it has a way and was not ruled out, else by those tiles; making cuDNN's plan, ahead of a capture. */
pc_status pc__convolution_by_pieces(pc_stream *stream, const pc_call *call, const pc__convolution *v, bool *done);
pc_status pc__convolution_choose(pc_stream *stream, const pc_call *call, const pc__convolution *v);

/* windows.c: by products of gathered windows, where these are worth it; whether they are faster than cuDNN. */
bool pc__convolution_is_for_windows(const pc_stream *stream, const pc__convolution *v, const pc__cuda_groups *s);
pc_status pc__convolution_by_windows(pc_stream *stream, const pc_call *call, const pc__convolution *v,
                                     const pc__cuda_groups *s, bool *done);

/* Choose for a call of one of the ops, ahead of its capture. */
pc_status pc__convolution_prepare(pc_stream *stream, const pc_call *call);

#endif
