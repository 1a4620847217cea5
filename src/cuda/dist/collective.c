/* collective.c: collectives are queued by their group's engine. */
#include "cuda/runtime/cuda.h"
#include "ops/collective.h"

#define NAME(op, in_place, peer)                                                                                       \
    pc_status pc__cuda_op_##op(pc_stream *stream, const pc_call *call)                                                 \
    {                                                                                                                  \
        return pc__collective_run(stream, call);                                                                       \
    }
PC__COLLECTIVES(NAME)
