/* divisor.cuh: the quotients of divisor.h. */
#ifndef PC__CUDA_DIVISOR_CUH
#define PC__CUDA_DIVISOR_CUH

#include "cuda/shared/divisor.h"

namespace pc
{

__device__ __forceinline__ uint32_t over(uint32_t n, const pc__cuda_divisor &d)
{
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

} // namespace pc

#endif
