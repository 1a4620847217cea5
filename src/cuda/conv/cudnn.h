/* cudnn.h: cuDNN, which is opened when a convolution first asks for it, and its plans for convolutions. Without its
 * headers at build time there is none (PC__HAVE_CUDNN 0). */
#ifndef PC__CUDA_CUDNN_H
#define PC__CUDA_CUDNN_H

#include "cuda/conv/choice.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if defined(CUDNN_MAJOR) && CUDNN_MAJOR == 9
#define PC__HAVE_CUDNN 1
#else
#define PC__HAVE_CUDNN 0
#endif

/* Why there is no cuDNN, or NULL when there is; opens it. */
const char *pc__cudnn_missing(void);

#if PC__HAVE_CUDNN

/* The functions that are used, under cuDNN's own names. */
#define PC__CUDNN_EACH(F)                                                                                              \
    F(GetVersion)                                                                                                      \
    F(GetLastErrorString)                                                                                              \
    F(Create)                                                                                                          \
    F(SetStream)                                                                                                       \
    F(BackendCreateDescriptor)                                                                                         \
    F(BackendDestroyDescriptor)                                                                                        \
    F(BackendSetAttribute)                                                                                             \
    F(BackendGetAttribute)                                                                                             \
    F(BackendFinalize)                                                                                                 \
    F(BackendExecute)

typedef struct pc__cudnn_functions {
#define PC__CUDNN_POINTER(name) __typeof__(&cudnn##name) name;
    PC__CUDNN_EACH(PC__CUDNN_POINTER)
#undef PC__CUDNN_POINTER
} pc__cudnn_functions;

/* To be used once pc__cudnn_missing has said NULL. */
extern pc__cudnn_functions pc__cudnn;

/* The first line of what cuDNN says about the calling thread's last failure. */
void pc__cudnn_words(char *words, size_t n);

/* What plans are for: an open device, or (from cuDNN 9.8 on) a description of one, which need not be there; the other
 * one is NULL. */
typedef struct pc__cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} pc__cudnn_target;

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

/* At most `most` plans for a shape as cuDNN sees it (pc__conv_in_format), cuDNN's best guess first; how many. Only such as give the same bits each time,
 * compute at least as exactly as was asked for, 16 bits by matrix units, and are there without being compiled; bare in 16 bits
 * only with others, to be measured: a bias behind it rounds once more. What cuDNN says where there is none is its pc__cudnn.GetLastErrorString. */
int pc__cudnn_plans(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most);
void pc__cudnn_plan_free(pc__cudnn_plan *plan);

/* Queue it on the stream that the handle has. */
cudnnStatus_t pc__cudnn_run(cudnnHandle_t handle, const pc__cudnn_plan *plan, const pc__conv_shape *shape,
                            const pc__cudnn_operands *operands);

#endif
#endif
