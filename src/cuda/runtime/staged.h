/* staged.h: kernels that have all in shared memory that they read more than once (shared/staged.cuh). */
#ifndef PC__CUDA_STAGED_H
#define PC__CUDA_STAGED_H

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel's launches of several turns of blocks, of which more would fit if first-level memory were divided otherwise, get as
 * much shared memory as lets them in (start.c). */
void pc__cuda_is_staged(const void *kernel);

#ifdef __cplusplus
}
#endif
#endif
