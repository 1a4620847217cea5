/* start.h: launches of kernels, for shared/dependent_launch.cuh and what is launched without it. */
#ifndef PC__CUDA_START_H
#define PC__CUDA_START_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cudaLaunchKernelExC with at most one attribute, an early start (shared/dependent_launch.cuh), on the thread's current device; quicker
 * after the first time of a kernel there. An error is CUDA's last one too. */
cudaError_t pc__cuda_start(const cudaLaunchConfig_t *how, const void *kernel, void **list);

/* Bytes of shared memory that a block may have on the thread's current device. Every kernel that is launched by pc__cuda_start
 * may have them. */
int pc__cuda_block_room(void);

/* How many kernels the thread has so launched into a queue (ready.c). */
void pc__cuda_starts_count(cudaStream_t queue); /* into this one, from 0 on */
void pc__cuda_started(cudaStream_t queue);      /* one more, if it is that queue */
int pc__cuda_starts_counted(void);

#ifdef __cplusplus
}
#endif
#endif
