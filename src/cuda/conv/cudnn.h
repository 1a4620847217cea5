/* cudnn.h: cuDNN's plans for convolutions. */
#ifndef PC__CUDA_CUDNN_H
#define PC__CUDA_CUDNN_H

#include "cuda/conv/choice.h"
#include "cuda/cudnn/builder.h"

#if PC__HAVE_CUDNN

/* A convolution ready to be run. */
typedef struct pc__cudnn_plan {
    cudnnBackendDescriptor_t plan, config;
    int64_t workspace; /* bytes */
    uint32_t engine;   /* a hash of the engine and of what is set of it */
    bool bare;         /* forward: bias and ReLU are still to follow */
} pc__cudnn_plan;

/* Operands of a plan, in its format: those that the direction reads. result is y, dx or dweight. Weights and their
 * gradient are [o][kh][kw][c], with planes [o][c][kh][kw]; everything is on 16 bytes. */
typedef struct pc__cudnn_operands {
    const void *x, *weight, *dy, *bias;
    void *result, *workspace;
} pc__cudnn_operands;

/* A convolution, with bias and ReLU where it has them. */
cudnnBackendDescriptor_t pc__conv_cudnn_graph(pc__cudnn_builder *b, const pc__conv_shape *shape);

/* At most `most` plans for a shape as cuDNN sees it (pc__conv_in_format), cuDNN's best guess first; how many. Only such as give the same bits each time,
 * compute at least as exactly as was asked for, 16 bits by matrix units, and are there without being compiled; bare in 16 bits
 * only with others, to be measured: a bias behind it rounds once more. What cuDNN says where there is none is its pc__cudnn.GetLastErrorString. */
int pc__cudnn_plans(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most);
void pc__cudnn_plan_free(pc__cudnn_plan *plan);

/* Queue it. On failure `words` say why. */
cudnnStatus_t pc__conv_cudnn_run(int device, cudaStream_t queue, const pc__cudnn_plan *plan,
                                 const pc__conv_shape *shape, const pc__cudnn_operands *operands, char *words,
                                 size_t n);

#endif
#endif
