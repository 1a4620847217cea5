/* list.cuh: kernels over a list of tensors, whose blocks lie one tensor's behind the other's. */
#ifndef PC__CUDA_LIST_CUH
#define PC__CUDA_LIST_CUH

namespace pc
{

/* Whose block this is: the last of `count` tensors that starts at or before it. */
__device__ __forceinline__ int part_of(const unsigned *starts, int count)
{
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (starts[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

} // namespace pc

#endif
