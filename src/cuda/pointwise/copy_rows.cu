/* copy_rows.cu: copies into dense memory of rows that are no whole packs: with gaps, or the same ones again and again. A thread
 * writes a pack, whose elements may be of several rows. */
#include "cuda/pointwise/cast.h"
#include "cuda/pointwise/loop.cuh"

namespace
{

constexpr int DIMS = 3;

/* Where an element of the result is, and what it is a copy of. */
template <class T> struct position {
    const T *from;
    uint32_t at[DIMS]; /* coordinates, the last one in the row */
};

template <class T> __device__ __forceinline__ position<T> position_of(const pc__cuda_walk &w, uint32_t i)
{
    position<T> p;
    p.from = reinterpret_cast<const T *>(w.data[1]);
    for (int d = DIMS - 1; d >= 0; d--) {
        const pc__cuda_divisor by = {w.shape[d], w.magic[d], w.shift[d]};
        const uint32_t outer = d ? pc::over(i, by) : 0;
        p.at[d] = i - outer * w.shape[d];
        p.from += static_cast<size_t>(p.at[d]) * w.strides[1][d];
        i = outer;
    }
    return p;
}

/* To the next element. */
template <class T> __device__ __forceinline__ void step_on(const pc__cuda_walk &w, position<T> &p)
{
    p.from++;
    if (++p.at[2] < w.shape[2])
        return;
    p.at[2] = 0;
    p.from += static_cast<int64_t>(w.strides[1][1]) - w.shape[2];
    if (++p.at[1] < w.shape[1])
        return;
    p.at[1] = 0;
    p.from += static_cast<int64_t>(w.strides[1][0]) - static_cast<int64_t>(w.shape[1]) * w.strides[1][1];
}

template <class T> __global__ void __launch_bounds__(pc::THREADS) copy_rows(const __grid_constant__ pc__cuda_walk w)
{
    constexpr uint32_t N = 16 / sizeof(T);
    const uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    pc::wait_for_earlier();
    if (first >= w.count)
        return;
    T *to = reinterpret_cast<T *>(w.data[0]) + first;
    position<T> p = position_of<T>(w, first);
    if (first + N > w.count) {
        for (uint32_t i = first; i < w.count; i++, step_on(w, p))
            *to++ = *p.from;
        return;
    }
    pc::pack<T, N> y;
#pragma unroll
    for (uint32_t n = 0; n < N; n++) {
        y.v[n] = *p.from;
        if (n + 1 < N)
            step_on(w, p);
    }
    *reinterpret_cast<pc::pack<T, N> *>(to) = y;
}

template <class T> void copy(const pc__cuda_launch *l, const pc__cuda_walk &w)
{
    const uint32_t packs = (w.count + 16 / sizeof(T) - 1) / (16 / sizeof(T)), threads = pc::THREADS;
    pc::note(l, pc::start(copy_rows<T>, (packs + threads - 1) / threads, threads, l->queue, l->early, w));
}

} // namespace

bool pc__cuda_copy_rows(const pc__cuda_launch *l, size_t element_bytes)
{
    enum { MANY = 1 << 16 /* elements, of which single ones fill a large GPU too */ };
    const pc__cuda_walk &w = l->walk;
    const int rows = w.ndim - 2;
    if (l->packed || element_bytes > 4 || w.count < MANY || rows < 0 || w.ndim > DIMS || w.strides[0][rows + 1] != 1 ||
        w.strides[1][rows + 1] != 1 || w.strides[0][rows] != w.shape[rows + 1] ||
        (rows && w.strides[0][0] != w.shape[1] * w.shape[2]) || reinterpret_cast<uintptr_t>(w.data[0]) % 16 != 0)
        return false;
    pc__cuda_walk three = w;
    if (rows == 0) {
        three.shape[0] = 1;
        three.strides[1][0] = 0;
        for (int d = 1; d < DIMS; d++) {
            three.shape[d] = w.shape[d - 1];
            three.strides[1][d] = w.strides[1][d - 1];
            const pc__cuda_divisor by = pc__cuda_divisor_of(three.shape[d]);
            three.magic[d] = by.magic, three.shift[d] = static_cast<uint8_t>(by.shift);
        }
    }
    if (element_bytes == 1)
        copy<uint8_t>(l, three);
    else if (element_bytes == 2)
        copy<uint16_t>(l, three);
    else
        copy<uint32_t>(l, three);
    return true;
}
