/* last_block.cuh: a result that several blocks make parts of is finished by the block that comes last. */
#ifndef PC__CUDA_LAST_BLOCK_CUH
#define PC__CUDA_LAST_BLOCK_CUH

namespace pc
{

/* True in the block that comes last of `count`; what the others wrote before is there to be read (past first-level
 * memory). All threads call it. The counter, 0 before, is 0 again. One thread's fences do for all that the barriers order
 * before and behind it. */
__device__ inline bool comes_last(unsigned *counter, unsigned count)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(counter, 1) == count - 1;
        if (last)
            *counter = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

} // namespace pc

#endif
