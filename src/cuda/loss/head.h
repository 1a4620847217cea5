/* head.h: the end of a network with one output in a recorded training step as one launch: the last linear layer, the
 * binary cross entropy of its logits, a batch's score, and the layer's gradients. By itself each is a launch that waits
 * more than it computes.
 *
 * Calls come one by one, and nobody knows what follows. So a recording holds such a layer back, and what goes on from
 * it, to the layer's gradients; those of the layer in front of it launch all, if they can (linear_columns.cu). Whatever
 * else is queued comes behind what is held: asking for the queue lets it go. */
#ifndef PC__CUDA_HEAD_H
#define PC__CUDA_HEAD_H

#include "cuda/matmul/linear.h"
#include "cuda/loss/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is held: the layer of one output, and what has come behind it. */
enum pc__cuda_head_stage { PC__HEAD_NONE, PC__HEAD_LAYER, PC__HEAD_LOSS, PC__HEAD_SCORE, PC__HEAD_BACKWARD };

typedef struct pc__cuda_head {
    enum pc__cuda_head_stage stage;
    pc__cuda_linear layer; /* of the backward call too, when it has come */
    const float *labels;   /* [m] */
    float *loss;
    float *dlogits; /* [m], the loss's gradient, */
    void *rounded;  /* and that in the layer's dtype, where this has 16 bits */
    pc__cuda_score score;
} pc__cuda_head;

#define PC__HEAD_ROWS 64    /* of a batch, at most */
#define PC__HEAD_INPUTS 512 /* of the layer, at most */
#define PC__HEAD_BEHIND 128 /* the same where another layer's gradients go with it */

/* All of it, with the bits of the single launches. The layer's rows can be read in fours (pc__cuda_head_wide). */
cudaError_t pc__cuda_head_launch(const pc__cuda_head *head);
int pc__cuda_head_wide(const pc__cuda_linear *layer);

#ifdef __cplusplus
}
#else

#include "tensor/call.h"

/* Whether the layer, or the call that goes on from what is held on the stream, is held now. */
bool pc__cuda_head_layer(const pc_stream *stream, const pc__cuda_linear *layer);
bool pc__cuda_head_loss(const pc_stream *stream, const pc_call *call);
bool pc__cuda_head_score(const pc_stream *stream, const pc__cuda_score *score);
bool pc__cuda_head_backward(const pc_stream *stream, const pc_call *call);

/* Whether the layer in front of what is held makes its gradients together with that: then all is launched. */
bool pc__cuda_head_behind(const pc_stream *stream, pc__cuda_linear *layer);

#endif
#endif
