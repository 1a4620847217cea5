/* dependent_launch.cuh: launches that overlap with the end of the kernel before them in the queue (CUDA's programmatic dependent
 * launch, compute capability 9.0): the GPU starts them while that one still runs, and they wait themselves. All threads
 * of a kernel that is started so must call wait_for_earlier(), before they read or write memory other than the kernel's
 * arguments: then whoever waits for it waits for all before it, as with any other launch.
 *
 * In front of that it may read what the launch says is ready (pc__cuda_ready, ready.c, has the argument): weights are
 * on their way while the kernel in front still works. Only with ahead() or cp.async.cg: first-level memory may still
 * hold what was there before. And it writes nothing. */
#ifndef PC__CUDA_EARLY_CUH
#define PC__CUDA_EARLY_CUH

#include "cuda/runtime/start.h"

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

/* What lies at `from`, 2 to 16 bytes, from second-level memory. */
template <class V> __device__ __forceinline__ V ahead(const V *from)
{
    static_assert(sizeof(V) == 2 || sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "one access");
    V value;
    if constexpr (sizeof(V) == 16)
        *reinterpret_cast<uint4 *>(&value) = __ldcg(reinterpret_cast<const uint4 *>(from));
    else if constexpr (sizeof(V) == 8)
        *reinterpret_cast<uint2 *>(&value) = __ldcg(reinterpret_cast<const uint2 *>(from));
    else if constexpr (sizeof(V) == 4)
        *reinterpret_cast<unsigned *>(&value) = __ldcg(reinterpret_cast<const unsigned *>(from));
    else
        *reinterpret_cast<unsigned short *>(&value) = __ldcg(reinterpret_cast<const unsigned short *>(from));
    return value;
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
    const cudaError_t status = pc__cuda_start(&how, reinterpret_cast<const void *>(kernel), list);
    if (status == cudaSuccess)
        pc__cuda_started(queue);
    return status;
}

template <class... P>
cudaError_t start(void (*kernel)(P...), unsigned blocks, unsigned threads, cudaStream_t queue, int early,
                  P... parameters)
{
    return start_grid(kernel, dim3(blocks), dim3(threads), 0, queue, early, parameters...);
}

} // namespace pc

#endif
