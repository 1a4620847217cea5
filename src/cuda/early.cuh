/* early.cuh: launches that overlap with the end of the kernel before them in the queue (CUDA's programmatic dependent
 * launch, compute capability 9.0): the GPU starts them while that one still runs, and they wait themselves. All threads
 * of a kernel that is started so must call wait_for_earlier(), before they read or write memory other than the kernel's
 * arguments: then whoever waits for it waits for all before it, as with any other launch. */
#ifndef PC__CUDA_EARLY_CUH
#define PC__CUDA_EARLY_CUH

#include "cuda/start.h"

namespace pc
{

/* Then let the kernel behind this one in the queue be prepared as soon as all blocks here have come so far. It waits in
 * turn until this one is done. */
__device__ __forceinline__ void wait_for_earlier()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* With `shared` bytes of dynamic shared memory. An error is CUDA's last one too, as with any other launch. */
template <class... P>
cudaError_t start_grid(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, cudaStream_t queue, int early,
                       P... parameters)
{
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = blocks;
    how.blockDim = threads;
    how.dynamicSmemBytes = shared;
    how.stream = queue;
    how.attrs = &overlap;
    how.numAttrs = early ? 1 : 0;
    void *list[] = {&parameters...};
    return pc__cuda_start(&how, reinterpret_cast<const void *>(kernel), list);
}

template <class... P>
cudaError_t start(void (*kernel)(P...), unsigned blocks, unsigned threads, cudaStream_t queue, int early,
                  P... parameters)
{
    return start_grid(kernel, dim3(blocks), dim3(threads), 0, queue, early, parameters...);
}

} // namespace pc

#endif
