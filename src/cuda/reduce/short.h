/* short.h: reductions of few elements for each result, and of inputs with gaps. */
#ifndef PC__CUDA_SHORT_H
#define PC__CUDA_SHORT_H

#include "cuda/reduce/reduce.h"
#include "cuda/runtime/cuda.h"
#include "ops/reduce.h"

/* How many pieces of so many elements n are; the last one may be shorter. */
static inline int64_t pc__cuda_pieces(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

/* Extremes and other kinds take what is reduced as one dimension alone; others have no results side by side in a block. */
typedef enum pc__short_kind { PC__SHORT_SUMS, PC__SHORT_EXTREMES, PC__SHORT_OTHERS } pc__short_kind;

/* True where the call is one for short.cuh; then *s is it. `pack`: elements in an access of the other kernels. */
bool pc__cuda_plan_short(pc_stream *stream, const pc__reduce_attributes *a, const pc_tensor *t, int pack,
                         pc__short_kind kind, pc__cuda_short *s);

/* Results that are few and long become parts of some thousand elements. */
void pc__cuda_cut_short(pc__cuda_short *s, int64_t reduced);

#endif
