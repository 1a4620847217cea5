/* plan.h: how a reduction of [outer, reduced, inner] goes over its input. */
#ifndef PC__CUDA_REDUCE_PLAN_H
#define PC__CUDA_REDUCE_PLAN_H

#include "cuda/pointwise/each.h"
#include "cuda/reduce/reduce.h"
#include "cuda/reduce/short.h"
#include "ops/reduce.h"

/* How to go over [outer, reduced, inner] at `in`; `two_passes` allows several parts. With `anywhere` rows have packs wherever
 * they begin. */
pc__cuda_reduction pc__cuda_plan(pc_stream *stream, const pc__reduce_attributes *a, const void *in,
                                 size_t element_bytes, int pack, bool two_passes, bool anywhere);

/* `pack`, or 1 where not every access would be a whole one. */
int pc__cuda_pack_at(const pc__reduce_attributes *a, const void *in, int pack);

/* Elements in 16 bytes. */
static inline int pc__cuda_vector_of(int dtype)
{
    return 16 / (int)pc_dtype_size((pc_dtype)dtype);
}

#endif
