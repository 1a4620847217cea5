/* library.h: cuDNN, which is opened when an op first asks for it. Without its headers at build time there is none
 * (PC__HAVE_CUDNN 0). */
#ifndef PC__CUDA_CUDNN_LIBRARY_H
#define PC__CUDA_CUDNN_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

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

/* cuDNN's handle of a device, made when first asked for, with that device current; NULL where that fails. */
cudnnHandle_t pc__cudnn_handle(int device);

/* Queue a finished plan: `count` operands by the names that its graph has for them. On failure `words` say why. */
typedef struct pc__cudnn_run {
    cudnnBackendDescriptor_t plan;
    int64_t count;
    const int64_t *ids;
    const void *const *pointers;
    void *workspace;
} pc__cudnn_run;
cudnnStatus_t pc__cudnn_execute(int device, cudaStream_t queue, const pc__cudnn_run *run, char *words, size_t n);

#endif
#endif
