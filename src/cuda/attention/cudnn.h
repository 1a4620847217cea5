/* cudnn.h: attention as graphs of cuDNN's operations, which its engines know as one kernel. */
#ifndef PC__CUDA_ATTENTION_CUDNN_H
#define PC__CUDA_ATTENTION_CUDNN_H

#include "cuda/cudnn/builder.h"

#if PC__HAVE_CUDNN

/* Operands, by which graphs and their plans name them. NORMS: the logarithms of the rows' sums; MEANS: scratch memory, as
 * large. The last ones are numbers by value: the scale of scores, what stands where a row does not attend, and 1. */
enum {
    PC__ATTENTION_Q = 1,
    PC__ATTENTION_K,
    PC__ATTENTION_V,
    PC__ATTENTION_Y,
    PC__ATTENTION_G,
    PC__ATTENTION_DQ,
    PC__ATTENTION_DK,
    PC__ATTENTION_DV,
    PC__ATTENTION_NORMS,
    PC__ATTENTION_MEANS,
    PC__ATTENTION_SCALE,
    PC__ATTENTION_MASKED,
    PC__ATTENTION_ONE,
    PC__ATTENTION_NAMES
};

/* Compared as bytes: made from zeros. Matrices are [b][h] of them; strides of b, h and rows, in elements; columns lie side
 * by side. */
typedef struct pc__attention_shape {
    int64_t b, h, l, s, e, ev;
    int64_t strides[PC__ATTENTION_NORMS][3]; /* by name, those that the pass has */
    int32_t dtype;
    int32_t causal, backward;
} pc__attention_shape;

/* The graph of a pass. What cuDNN has for it is the same each time: the gradient of q is a product of its own, of scores'
 * gradients that lie in the workspace, not added up by atomics. */
cudnnBackendDescriptor_t pc__attention_graph(pc__cudnn_builder *b, const pc__attention_shape *shape);

/* The bytes of these gradients. */
int64_t pc__attention_slopes(const pc__attention_shape *shape);

#endif
#endif
