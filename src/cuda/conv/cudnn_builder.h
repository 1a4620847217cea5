/* cudnn_builder.h: how the files about cuDNN's plans make its descriptors. */
#ifndef PC__CUDA_CONV_CUDNN_BUILDER_H
#define PC__CUDA_CONV_CUDNN_BUILDER_H

#include "cuda/conv/cudnn.h"

#if PC__HAVE_CUDNN

enum { PC__CUDNN_DESCRIPTORS = 24 };

/* Descriptors on the way to a plan. After a failure the rest does nothing. */
typedef struct pc__cudnn_builder {
    const pc__cudnn_target *target;
    const pc__conv_shape *shape;
    bool failed;
    int count;
    cudnnBackendDescriptor_t made[PC__CUDNN_DESCRIPTORS];
} pc__cudnn_builder;

cudnnBackendDescriptor_t pc__cudnn_make(pc__cudnn_builder *b, cudnnBackendDescriptorType_t type);
void pc__cudnn_set(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count, const void *values);
void pc__cudnn_set_descriptor(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value);
void pc__cudnn_finish(pc__cudnn_builder *b, cudnnBackendDescriptor_t made);
void pc__cudnn_destroy(cudnnBackendDescriptor_t *made, int count);

/* The convolution of the builder's shape, with bias and ReLU where it has them. */
cudnnBackendDescriptor_t pc__cudnn_graph(pc__cudnn_builder *b);

#endif
#endif
