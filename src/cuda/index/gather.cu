/* gather.cu: single elements picked by indices along a dimension. An index that is out of range goes into the stream's record; its
 * element is left as it is. */
#include "cuda/index/element.h"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/divisor.cuh"

namespace
{

constexpr int THREADS = 256, AT_ONCE = 4;

/* Of a thread's elements of the result, where place 0 of their entries is in the tensor, and which entries these are. I: what counts
 * elements. */
template <class I>
__device__ __forceinline__ void find(const pc__cuda_picks &p, I (&left)[AT_ONCE], int64_t (&from)[AT_ONCE],
                                     int64_t (&entry)[AT_ONCE])
{
    for (int d = 0; d < p.dims - 1; d++) {
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const I size = static_cast<I>(p.size[d]),
                    whole = sizeof(I) == 4 ? pc::over(static_cast<uint32_t>(left[u]), p.over[d]) : left[u] / size;
            const int64_t rest = left[u] - whole * size;
            from[u] += rest * p.from[d];
            entry[u] += rest * p.at[d];
            left[u] = whole;
        }
    }
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
        from[u] += static_cast<int64_t>(left[u]) * p.from[p.dims - 1];
        entry[u] += static_cast<int64_t>(left[u]) * p.at[p.dims - 1];
    }
}

/* A thread has AT_ONCE elements in a turn, a block's lying side by side; behind the last one that once more, for nothing. */
template <class T, class I, bool LIST>
__global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ pc__cuda_picks p, const T *whole, T *part)
{
    const I total = static_cast<I>(p.total), step = static_cast<I>(gridDim.x) * (AT_ONCE * blockDim.x);
    pc::wait_for_earlier();
    for (I first = static_cast<I>(blockIdx.x) * (AT_ONCE * blockDim.x) + threadIdx.x; first < total; first += step) {
        I left[AT_ONCE];
        int64_t place[AT_ONCE], from[AT_ONCE] = {}, entry[AT_ONCE] = {};
        T x[AT_ONCE] = {};
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            left[u] = min(first + u * blockDim.x, total - 1);
            if (!LIST)
                place[u] = p.index[left[u]];
        }
        find(p, left, from, entry);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (LIST)
                place[u] = p.index[entry[u]];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (place[u] >= 0 && place[u] < p.n)
                x[u] = whole[from[u] + place[u] * p.along];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const I at = first + u * blockDim.x;
            if (at >= total)
                break;
            if (place[u] >= 0 && place[u] < p.n)
                part[at] = x[u];
            else
                pc::fault(p.fault, PC__FAULT_INDEX, LIST ? entry[u] : static_cast<int64_t>(at), place[u], p.n);
        }
    }
}

/* Smaller blocks of few elements, for each multiprocessor of a large GPU to have some. */
template <class T, class I, bool LIST> void launch(const pc__cuda_picks *p, const void *whole, void *part)
{
    enum { FULL = 264 * AT_ONCE * THREADS };
    const unsigned threads = p->total < FULL ? THREADS / 4 : THREADS;
    const int64_t each = AT_ONCE * threads, all = (p->total + each - 1) / each,
                  most = static_cast<int64_t>(p->multiprocessors) * 64;
    (void)pc::start(gather<T, I, LIST>, static_cast<unsigned>(all < most ? all : most), threads, p->queue, p->early, *p,
                    static_cast<const T *>(whole), static_cast<T *>(part));
}

template <class T> void gather_units(const pc__cuda_picks *p, const void *whole, void *part)
{
    if (p->total >= int64_t(1) << 30)
        return p->is_list ? launch<T, uint64_t, true>(p, whole, part) : launch<T, uint64_t, false>(p, whole, part);
    return p->is_list ? launch<T, uint32_t, true>(p, whole, part) : launch<T, uint32_t, false>(p, whole, part);
}

} // namespace

void pc__cuda_gather(const pc__cuda_picks *p, int bytes, const void *whole, void *part)
{
    switch (bytes) {
    case 8:
        return gather_units<uint64_t>(p, whole, part);
    case 4:
        return gather_units<uint32_t>(p, whole, part);
    case 2:
        return gather_units<uint16_t>(p, whole, part);
    default:
        return gather_units<uint8_t>(p, whole, part);
    }
}
