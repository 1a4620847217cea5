/* head.cu: the end of a network with one output by itself. */
#include "cuda/loss/head.cuh"

#include "cuda/shared/dependent_launch.cuh"

namespace
{

template <class T, int PIECES>
__global__ void __launch_bounds__(HEAD_THREADS, 1) head_kernel(const __grid_constant__ pc__cuda_head h)
{
    __shared__ typename head<T, PIECES>::results room;
    pc::wait_for_earlier();
    head<T, PIECES>(h, room).run();
}

template <class T> cudaError_t launch(const pc__cuda_head *h)
{
    constexpr int PIECES = PC__HEAD_INPUTS / HEAD_PIECE;
    return pc::start(h->layer.k <= HEAD_PIECE ? head_kernel<T, 1> : head_kernel<T, PIECES>, 1, HEAD_THREADS,
                     h->layer.queue, h->layer.early, *h);
}

} // namespace

int pc__cuda_head_wide(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32 ? is_wide<float>(l) : is_wide<pc::bf16>(l);
}

cudaError_t pc__cuda_head_launch(const pc__cuda_head *h)
{
    return h->layer.dtype == PC__CUDA_F32   ? launch<float>(h)
           : h->layer.dtype == PC__CUDA_F16 ? launch<pc::f16>(h)
                                            : launch<pc::bf16>(h);
}
