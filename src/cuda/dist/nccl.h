/* nccl.h: NCCL, opened when a group first works on GPUs. Where its header was missing at build time, nothing of it is there
 * (PC__HAVE_NCCL 0). */
#ifndef PC__CUDA_NCCL_H
#define PC__CUDA_NCCL_H

#include "cuda/runtime/cuda.h"
#include "ops/collective.h"

#if defined(__has_include)
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#endif

#ifdef NCCL_MAJOR
#define PC__HAVE_NCCL 1
#else
#define PC__HAVE_NCCL 0
#endif

#if PC__HAVE_NCCL

#define PC__NCCL_EACH(F)                                                                                               \
    F(GetVersion)                                                                                                      \
    F(GetUniqueId)                                                                                                     \
    F(GetErrorString)                                                                                                  \
    F(GetLastError)                                                                                                    \
    F(CommInitRankConfig)                                                                                              \
    F(CommGetAsyncError)                                                                                               \
    F(CommAbort)                                                                                                       \
    F(CommDestroy)                                                                                                     \
    F(AllReduce)                                                                                                       \
    F(Broadcast)                                                                                                       \
    F(Reduce)                                                                                                          \
    F(AllGather)                                                                                                       \
    F(ReduceScatter)                                                                                                   \
    F(Send)                                                                                                            \
    F(Recv)                                                                                                            \
    F(GroupStart)                                                                                                      \
    F(GroupEnd)

typedef struct pc__nccl_functions {
#define PC__NCCL_POINTER(name) __typeof__(&nccl##name) name;
    PC__NCCL_EACH(PC__NCCL_POINTER)
#undef PC__NCCL_POINTER
} pc__nccl_functions;

/* Valid once pc__nccl_missing has said NULL. */
extern pc__nccl_functions pc__nccl;

/* PC_OK, or an error with NCCL's words. comm may be NULL. */
pc_status pc__nccl_check(ncclResult_t result, ncclComm_t comm, const char *what);

/* nccl_calls.c: queue the call on the stream. */
ncclResult_t pc__nccl_queue(ncclComm_t comm, int size, int rank, cudaStream_t queue, const pc_call *call);

#endif

/* Why NCCL cannot be used, or NULL. */
const char *pc__nccl_missing(void);

extern const pc__engine pc__cuda_nccl;

#endif
