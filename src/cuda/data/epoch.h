/* epoch.h: launchers of an epoch's order and table. */
#ifndef PC__CUDA_EPOCH_H
#define PC__CUDA_EPOCH_H

#include "cuda/runtime/view.h"
#include "ops/epoch_draw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* order[0..n-1]: the samples by their keys. keys: scratch memory. */
void pc__cuda_shuffle(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order, uint64_t *keys, cudaStream_t queue);

/* table[i]: the row of sample order[i]; without `shuffled` order[i] becomes i first. */
void pc__cuda_epoch_table(const pc__augment_plan *plan, int shuffled, int64_t n, int64_t *order, pc__augment_row *table,
                          cudaStream_t queue);

#ifdef __cplusplus
}
#endif
#endif
