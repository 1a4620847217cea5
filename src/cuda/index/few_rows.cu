/* few_rows.cu: rows added up by the place that each belongs to, where they are few: each unit of the result looks through all
 * of the index, which costs less than to sort it. */
#include "cuda/index/rows.h"
#include "cuda/index/sum_of.cuh"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256;

/* A thread for each unit of `whole`, in memory order. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    add_few(const __grid_constant__ pc__cuda_picking p, int64_t skip, const T *base, const T *picked, T *whole)
{
    typedef vector<T, N> V;
    __shared__ int64_t index[PC__CUDA_FEW_ROWS];
    const unsigned count = static_cast<unsigned>(p.count);
    pc::wait_for_earlier();
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        const int64_t place = p.index[i];
        index[i] = place == skip ? -1 : place;
        if (blockIdx.x == 0 && (place < 0 || place >= p.n))
            pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(i), place, p.n);
    }
    __syncthreads();
    const int64_t total = p.outer * p.n * p.row, step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; at < total; at += step) {
        const int64_t r = at / p.row, column = at - r * p.row, outer = r / p.n, place = r - outer * p.n;
        const V *from = reinterpret_cast<const V *>(picked) + outer * p.count * p.row + column;
        sum_of<T, N> sum = {};
        if (base)
            sum += reinterpret_cast<const V *>(base)[at];
        for (unsigned i = 0; i < count; i++)
            if (index[i] == place)
                sum += from[i * p.row];
        reinterpret_cast<V *>(whole)[at] = sum.rounded();
    }
}

template <class T, int N>
void add_units(const pc__cuda_picking *p, int64_t skip, const void *base, const void *picked, void *whole)
{
    const int64_t total = p->outer * p->n * p->row, most = static_cast<int64_t>(p->multiprocessors) * 16;
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    pc::start(add_few<T, N>, static_cast<unsigned>(blocks < most ? blocks : most), THREADS, p->queue, p->early, *p,
              skip, static_cast<const T *>(base), static_cast<const T *>(picked), static_cast<T *>(whole));
}

template <class T>
void add_as(const pc__cuda_picking *p, int packed, int64_t skip, const void *base, const void *picked, void *whole)
{
    if (packed)
        add_units<T, 16 / sizeof(T)>(p, skip, base, picked, whole);
    else
        add_units<T, 1>(p, skip, base, picked, whole);
}

} // namespace

void pc__cuda_add_few_rows(const pc__cuda_picking *p, int dtype, int packed, int64_t skip, const void *base,
                           const void *picked, void *whole)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return add_as<pc::f16>(p, packed, skip, base, picked, whole);
    case PC__CUDA_BF16:
        return add_as<pc::bf16>(p, packed, skip, base, picked, whole);
    default:
        return add_as<float>(p, packed, skip, base, picked, whole);
    }
}
