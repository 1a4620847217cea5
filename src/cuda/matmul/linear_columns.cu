/* linear_columns.cu: linear layers of many inputs backward, for batches of up to 32 rows, by blocks of columns of x.
 * (In tiles of 32 x 64, a block each, most of the time is waits.) x and the first weights are on their way before the
 * kernel in front is done, where they are ready. */
#include "cuda/matmul/linear_columns.cuh"

#include "cuda/matmul/linear_few.h"

namespace
{

constexpr int ROUNDS_MOST = 2; /* each is a wait, which tiles, whose sums over the outputs are cut, have once */

template <class T>
__global__ void __launch_bounds__(THREADS, 3) backward_kernel(const __grid_constant__ pc__cuda_linear l)
{
    __shared__ alignas(16) float shared[SHARED];
    columns<T> here(l, shared);
    typename columns<T>::operands some;
    here.read_ahead(some);
    pc::wait_for_earlier();
#pragma unroll 1
    for (int first = 0; first < l.n; first += OUTPUTS) {
        const int outputs = min(OUTPUTS, l.n - first);
        here.bring(some, first, outputs);
        here.multiply_all(first, outputs);
    }
    if (l.dx)
        here.finish_dx();
}

/* Behind the head of a network, as which one more block works. */
template <class T>
__global__ void __launch_bounds__(THREADS, 3)
    behind_head_kernel(const __grid_constant__ pc__cuda_linear l, const __grid_constant__ pc__cuda_head h)
{
    __shared__ alignas(16) float shared[SHARED];
    typedef typename head<T, 1>::results results;
    static_assert(sizeof(results) <= sizeof shared && HEAD_THREADS == THREADS && OUTPUTS == HEAD_PIECE, "a block's");
    columns<T> here(l, shared);
    typename columns<T>::operands some;
    const bool is_head = blockIdx.x == gridDim.x - 1;
    if (!is_head)
        here.read_ahead(some);
    pc::wait_for_earlier();
    if (is_head) {
        head<T, 1>(h, *reinterpret_cast<results *>(shared)).run();
        return;
    }
    here.bring_behind(some, h);
    here.multiply_all(0, l.n);
    if (l.dx)
        here.finish_dx();
}

template <class T> cudaError_t run(const pc__cuda_linear *l, const pc__cuda_head *h)
{
    const unsigned blocks = (l->k + COLUMNS - 1) / COLUMNS;
    return h ? pc::start(behind_head_kernel<T>, blocks + 1, THREADS, l->queue, l->early, *l, *h)
             : pc::start(backward_kernel<T>, blocks, THREADS, l->queue, l->early, *l);
}

} // namespace

int pc__cuda_linear_has_columns(const pc__cuda_linear *l)
{
    const uintptr_t places = reinterpret_cast<uintptr_t>(l->x) | reinterpret_cast<uintptr_t>(l->weight) |
                             reinterpret_cast<uintptr_t>(l->y) | reinterpret_cast<uintptr_t>(l->dy) |
                             reinterpret_cast<uintptr_t>(l->dx) | reinterpret_cast<uintptr_t>(l->dweight);
    return l->m <= ROWS && l->n <= ROUNDS_MOST * OUTPUTS && l->k >= 8 * l->multiprocessors && places % 16 == 0 &&
           (l->n | l->k | static_cast<int>(l->x_row)) % 4 == 0 && !pc__cuda_linear_few_suits_backward(l);
}

cudaError_t pc__cuda_linear_columns(const pc__cuda_linear *l, const pc__cuda_head *h)
{
    return l->dtype == PC__CUDA_F32   ? run<float>(l, h)
           : l->dtype == PC__CUDA_F16 ? run<pc::f16>(l, h)
                                      : run<pc::bf16>(l, h);
}
