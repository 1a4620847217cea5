/* join.c: cat. */
#include "cuda/pointwise/each.h"
#include "ops/join.h"

PC__CUDA_KERNEL(cat)
{
    const pc__dim_attributes *a = call->attributes;
    pc_tensor *out = call->out[0];
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        pc_tensor part = *out; /* the place of input i in the output, as a view without an owner */
        part.shape[a->dim] = call->in[i]->shape[a->dim];
        part.offset = out->offset + at * out->strides[a->dim];
        at += part.shape[a->dim];
        PC__TRY(pc__cuda_copy_tensor(stream, call, &part, call->in[i]));
    }
    return PC_OK;
}
