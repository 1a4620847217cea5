/* slabs.h: launchers of sums and extremes along the middle of [outer][reduced][inner] where up to eight rows lie over each
 * other. */
#ifndef PC__CUDA_REDUCE_SLABS_H
#define PC__CUDA_REDUCE_SLABS_H

#include "cuda/runtime/view.h"
#include "cuda/shared/divisor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__SLABS_ROWS = 8 };

/* Without gaps. A thread has `pack` columns, neighbours: 1, or PC__SLABS_SUM_PACK or PC__SLABS_MAX_PACK, of which rows are whole
 * multiples; then `in`, `out` and `places` lie on 16 bytes. */
typedef struct pc__cuda_slabs {
    const void *in;
    void *out;               /* of extremes NULL: places alone */
    int64_t *places;         /* of extremes */
    unsigned count;          /* packs of all results, below 2^31 */
    pc__cuda_divisor across; /* packs of a row */
    int rows;                /* 1 to PC__SLABS_ROWS */
    int pack;
    int from, to;   /* dtypes */
    double divisor; /* of sums: a whole number below 2^24; 1: none */
    int least;      /* minima instead of maxima */
    int early;
    cudaStream_t queue;
} pc__cuda_slabs;

/* Neighbours of that many bytes each that a thread has: 16 bytes, but of extremes, which have places of 8, 4 at most. */
#define PC__SLABS_SUM_PACK(bytes) (16 / (int)(bytes))
#define PC__SLABS_MAX_PACK(bytes) ((bytes) < 4 ? 4 : 16 / (int)(bytes))

/* Of the dtypes that pc__cuda_sum has; added in the arithmetic of their dtype, float32 for 16 bits. */
void pc__cuda_slabs_sum(const pc__cuda_slabs *slabs);

/* Of a dtype to itself; the first of equals, NaN beats everything. */
void pc__cuda_slabs_max(const pc__cuda_slabs *slabs);

#ifdef __cplusplus
}
#endif
#endif
