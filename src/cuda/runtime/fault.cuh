/* fault.cuh: how a kernel says that it met something that cannot be. */
#ifndef PC__CUDA_FAULT_CUH
#define PC__CUDA_FAULT_CUH

#include "cuda/runtime/view.h"

namespace pc
{

/* The first one wins; what is wrong is `value` at entry `where`, which must be 0 to limit - 1. */
inline __device__ void fault(pc__cuda_fault *record, int kind, long long where, long long value, long long limit)
{
    if (atomicCAS(&record->kind, static_cast<int>(PC__FAULT_NONE), kind) != PC__FAULT_NONE)
        return;
    record->where = where;
    record->value = value;
    record->limit = limit;
}

} // namespace pc

#endif
