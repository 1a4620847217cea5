/* join.h: launchers of index_select and index_add. */
#ifndef PC__CUDA_JOIN_H
#define PC__CUDA_JOIN_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `whole` is [outer, n, row], `picked` is [outer, count, row]; index[i], 0 to n - 1, is the place of picked entry i. */
typedef struct pc__cuda_picking {
    const int64_t *index;
    int64_t outer, n, count, row;
    int multiprocessors;
    pc__cuda_fault *fault;
    cudaStream_t queue;
} pc__cuda_picking;

/* picked = whole[index]; `row` counts units of 16, 8, 4, 2 or 1 bytes, on which both are aligned. */
void pc__cuda_select(const pc__cuda_picking *picking, int unit, const void *whole, void *picked);

/* whole[index] += picked, entry by entry in order: the bits are the CPU's. float32 or float64. */
void pc__cuda_add_rows(const pc__cuda_picking *picking, int dtype, void *whole, const void *picked);

#ifdef __cplusplus
}
#endif
#endif
