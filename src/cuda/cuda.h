/* cuda.h: the pieces of the CUDA backend, host side. */
#ifndef PC__CUDA_H
#define PC__CUDA_H

#include "cuda/host.h"
#include "cuda/view.h"

typedef struct pc__cuda_stream {
    cudaStream_t stream;
    pc__cuda_fault *fault; /* host memory that the device writes */
} pc__cuda_stream;

/* Where kernels of this call go; the device is already the current one of the thread. */
static inline cudaStream_t pc__cuda_queue(const pc_stream *stream)
{
    return ((const pc__cuda_stream *)stream->implementation)->stream;
}

/* A tensor of the call as kernels see it. */
pc__view pc__cuda_view(const pc_tensor *t);

/* PC_OK for cudaSuccess; else an error with CUDA's words as its cause: PC_ERR_MEMORY, PC_ERR_LOST or PC_ERR_BACKEND. */
pc_status pc__cuda_check(cudaError_t status, const char *what);

/* What the launch just made has to say. */
pc_status pc__cuda_launched(const pc_call *call);

/* Device memory for the time of one call on this stream; it belongs to the stream and grows. NULL: an error. */
void *pc__cuda_scratch(pc_stream *stream, size_t bytes);

/* Streaming multiprocessors of the stream's device. */
int pc__cuda_multiprocessors(const pc_stream *stream);

/* table.c: kernels by op. */
const pc__kernel *pc__cuda_kernels(void);

#endif
