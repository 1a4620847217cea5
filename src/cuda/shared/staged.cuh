/* staged.cuh: launches of kernels that have all in shared memory that they read more than once: first-level memory is better used
 * as that, where it lets in more of their blocks. */
#ifndef PC__CUDA_STAGED_CUH
#define PC__CUDA_STAGED_CUH

#include "cuda/runtime/staged.h"
#include "cuda/shared/dependent_launch.cuh"

namespace pc
{

template <class... P>
cudaError_t start_staged(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, cudaStream_t queue, int early,
                         P... parameters)
{
    pc__cuda_is_staged(reinterpret_cast<const void *>(kernel));
    return start_grid(kernel, blocks, threads, shared, queue, early, parameters...);
}

} // namespace pc

#endif
