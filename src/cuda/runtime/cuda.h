/* cuda.h: the pieces of the CUDA backend that kernels' host side uses. What only the device itself needs is in state.h.
 */
#ifndef PC__CUDA_H
#define PC__CUDA_H

#include "cuda/runtime/host.h"
#include "cuda/runtime/view.h"

typedef struct pc__cuda_stream {
    cudaStream_t stream;            /* where work goes now: its own, or that of a recording */
    pc__cuda_fault *fault;          /* of the call at hand: host memory that the device writes */
    unsigned *counters;             /* PC__CUDA_COUNTERS of them, in device memory */
    struct pc__cuda_branch *branch; /* of the recording that the stream is part of, or NULL */
    bool met;                       /* the next work of that branch comes behind another one's too, */
    bool met_asked;                 /* and the call at hand has some */
    int scratch_level;              /* above 0 while a kernel runs inside others, which hold the scratch of theirs */
    bool prepares;                  /* a recording asks who is to do the call, and nothing is queued (prepare.c) */
    bool takes_all;                 /* rows are asked what they can do, not what they are good for (rows.h) */
    bool holds;                     /* work is held back, to be one launch with what follows (head.h) */
    const char *note;               /* how the call at hand is done, for timelines and plans, or NULL; static storage */
    uint64_t started, complete;     /* tickets: ready.c */
} pc__cuda_stream;

#define PC__CUDA_COUNTERS 4096

/* Around a kernel inside the one at hand, by 1 and back by -1. */
static inline void pc__cuda_deeper(const pc_stream *stream, int levels)
{
    ((pc__cuda_stream *)stream->implementation)->scratch_level += levels;
}

/* Launch what a recording holds back. What goes wrong, now or before, stays CUDA's last error, too. */
cudaError_t pc__cuda_let_go(const pc_stream *stream);

/* Where kernels of this call go, behind what is held back; the device is already the current one of the thread. Ask
 * again after pc__cuda_small_hold. */
cudaStream_t pc__cuda_queue(const pc_stream *stream);

/* small.c: keep a small call for a launch with others, or false. It is all that its op does; `number` is what is filled
 * in, or saxpy's factor, and operands[0] the output. */
bool pc__cuda_small_hold(pc_stream *stream, int function, double number, int count, pc_tensor *const *operands);

/* Where kernels of this call write what they find wrong while they run. */
static inline pc__cuda_fault *pc__cuda_fault_of(const pc_stream *stream)
{
    return ((const pc__cuda_stream *)stream->implementation)->fault;
}

/* Zeros in device memory, by which the blocks of a kernel count who is done, so that the last one can put the parts
 * together. Every kernel leaves them zero: what runs in this queue runs one after the other. */
static inline unsigned *pc__cuda_counters(const pc_stream *stream)
{
    return ((const pc__cuda_stream *)stream->implementation)->counters;
}

/* A tensor of the call as kernels see it. */
pc__view pc__cuda_view(const pc_tensor *t);

/* PC_OK for cudaSuccess; else an error with CUDA's words as its cause: PC_ERR_MEMORY, PC_ERR_LOST or PC_ERR_BACKEND. */
pc_status pc__cuda_check(cudaError_t status, const char *what);

/* What the launch just made has to say. */
pc_status pc__cuda_launched(const pc_call *call);

/* Device memory for the time of one call on this stream (device/workspace.h), aligned to 256 bytes. The next request of
 * the same call may be the same memory: ask once for all. NULL: an error. */
void *pc__cuda_scratch(pc_stream *stream, size_t bytes);

/* The same, NULL without an error where there is too little. */
void *pc__cuda_try_scratch(pc_stream *stream, size_t bytes);

/* What so many bytes take of it where something else follows that is to be as well aligned. */
static inline size_t pc__cuda_whole(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* half.c: whether the call has 16-bit numbers and no kernel for them, and such a call by way of float32. */
bool pc__cuda_wants_floats(const pc_call *call);
pc_status pc__cuda_in_floats(pc_stream *stream, const pc_call *call, pc__kernel kernel);

/* Streaming multiprocessors of the stream's device. */
int pc__cuda_multiprocessors(const pc_stream *stream);

/* Bytes of shared memory that a block may have there. */
int pc__cuda_block_room_of(const pc_stream *stream);

/* True where the stream's device and driver let kernels be started early (shared/dependent_launch.cuh), and only work of the same queue
 * comes right before. */
bool pc__cuda_early(const pc_stream *stream);

/* ready.c: whether kernels of the call at hand find a tensor of it whole in memory before they wait for the kernel in
 * front of them, and may then read it so (shared/dependent_launch.cuh); of what the call overwrites, what was there before. */
bool pc__cuda_ready(const pc_stream *stream, const pc_tensor *t);

/* table.c: kernels by op. One that is not written is NULL there: pc_dispatch names it. */
const pc__kernel *pc__cuda_kernels(void);

/* device.c: make it the thread's current device. */
pc_status pc__cuda_enter(int index);

/* backend.h's is_faster_apart of convolutions (conv/) and of regions (pointwise/region.c). */
bool pc__cuda_conv2d_is_faster_apart(const pc_call *call);
bool pc__cuda_region_is_faster_apart(const pc_call *call);

/* conv/: backend.h's reads_planes and keeps_planes. */
bool pc__cuda_reads_planes(const pc_call *call);
bool pc__cuda_keeps_planes(const pc_call *call);

/* prepare.c: backend.h's graph_prepare. */
pc_status pc__cuda_prepare(pc_stream *stream, const pc_call *call);

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    pc_status pc__cuda_op_##name(pc_stream *stream, const pc_call *call);
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

#endif
