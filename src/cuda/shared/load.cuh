/* load.cuh: neighbours of a tensor of any floating type in as few accesses as they take. */
#ifndef PC__CUDA_PACK_CUH
#define PC__CUDA_PACK_CUH

namespace
{

/* Tensors lie on 16 bytes, so that GPUs with wider accesses must not be promised more. */
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) vector {
    T at[N];
};

} // namespace

#endif
