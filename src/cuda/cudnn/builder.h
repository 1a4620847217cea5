/* builder.h: how graphs of cuDNN's operations are written, and plans for them made. */
#ifndef PC__CUDA_CUDNN_BUILDER_H
#define PC__CUDA_CUDNN_BUILDER_H

#include <stdbool.h>

#include "cuda/cudnn/library.h"

#if PC__HAVE_CUDNN

/* What plans are for: an open device, or (from cuDNN 9.8 on) a description of one, which need not be there; the other
 * one is NULL. */
typedef struct pc__cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} pc__cudnn_target;

enum { PC__CUDNN_DESCRIPTORS = 128, PC__CUDNN_OPERATIONS = 32 };

/* Descriptors on the way to a plan. After a failure the rest does nothing. */
typedef struct pc__cudnn_builder {
    const pc__cudnn_target *target;
    bool failed;
    int count, operations;
    cudnnBackendDescriptor_t made[PC__CUDNN_DESCRIPTORS];
    cudnnBackendDescriptor_t operation[PC__CUDNN_OPERATIONS]; /* of the graph, in their order */
} pc__cudnn_builder;

cudnnBackendDescriptor_t pc__cudnn_make(pc__cudnn_builder *b, cudnnBackendDescriptorType_t type);
void pc__cudnn_set(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count, const void *values);
void pc__cudnn_set_descriptor(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value);
void pc__cudnn_finish(pc__cudnn_builder *b, cudnnBackendDescriptor_t made);
void pc__cudnn_destroy(cudnnBackendDescriptor_t *made, int count);

/* A tensor of four dimensions; strides in elements. Memory is on 16 bytes. */
typedef struct pc__cudnn_tensor {
    int64_t id;
    cudnnDataType_t type;
    int64_t shape[4], strides[4];
    bool between;  /* it lies between operations, and nowhere in memory */
    bool by_value; /* one number in the host's memory, read when the plan is run */
} pc__cudnn_tensor;
cudnnBackendDescriptor_t pc__cudnn_tensor_make(pc__cudnn_builder *b, const pc__cudnn_tensor *t);

/* y = mode(x, with), or of x alone; `choose` says element by element which of the two, for BINARY_SELECT. */
typedef struct pc__cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; /* that it is computed in */
    int64_t axis;         /* of GEN_INDEX */
    cudnnBackendDescriptor_t x, with, choose, y;
} pc__cudnn_pointwise;

/* Each becomes the next operation of the graph. c = a b; y = x added up, or its maximum, along the dimensions that y has
 * one entry of; y is x with other strides. */
void pc__cudnn_add_pointwise(pc__cudnn_builder *b, const pc__cudnn_pointwise *p);
void pc__cudnn_add_matmul(pc__cudnn_builder *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t with,
                          cudnnBackendDescriptor_t y);
void pc__cudnn_add_reduction(pc__cudnn_builder *b, cudnnReduceTensorOp_t by, cudnnBackendDescriptor_t x,
                             cudnnBackendDescriptor_t y);
void pc__cudnn_add_reshape(pc__cudnn_builder *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);
void pc__cudnn_add_operation(pc__cudnn_builder *b, cudnnBackendDescriptor_t made);

/* The graph of the operations that were added. */
cudnnBackendDescriptor_t pc__cudnn_graph_of(pc__cudnn_builder *b);

/* plans.c: the engines, as they are to be set, that cuDNN's guess of that mode has for a graph, the likeliest first; how
 * many, all of them to be destroyed by the caller. And the plan of one, with its bytes of workspace; false where it cannot. */
int pc__cudnn_configs(const pc__cudnn_target *target, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                      cudnnBackendDescriptor_t *configs, int most);
bool pc__cudnn_plan_of(const pc__cudnn_target *target, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan,
                       int64_t *workspace);

#endif
#endif
