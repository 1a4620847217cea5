/* cumsum_packs.cuh: running sums of lists whose elements are neighbours in memory: a lane adds up 16 bytes as they lie there, before a
 * warp's lanes meet. */
#ifndef PC__CUDA_CUMSUM_PACKS_CUH
#define PC__CUDA_CUMSUM_PACKS_CUH

#include "cuda/index/line.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256;

/* Number `item` of lists times chunks: neighbours in `inner` next to each other. */
struct piece {
    int64_t list, chunk, first, end;
};

__device__ __forceinline__ piece piece_of(const pc__cuda_line &p, int64_t item)
{
    const int64_t chunk = p.chunks == 1 ? 0 : quotient(item, p.lists), first = chunk * p.chunk;
    return {item - chunk * p.lists, chunk, first, min(first + p.chunk, p.n)};
}

/* A chunk as it lies in memory, in packs of 16 bytes, the first of which has `skew` elements in front of element `begin`. */
template <class T> struct span {
    const T *from;
    int64_t begin;
    int skew, count, packs;
};

/* Packs lie on their size in `whole`, the tensor to be written or read. */
template <class T>
__device__ __forceinline__ span<T> span_of(const pc__cuda_line &p, const piece &w, const T *from, const T *whole)
{
    constexpr int N = pc::row_pack<T>::size;
    const int64_t begin = w.list * p.n + (p.reversed ? p.n - w.end : w.first);
    const int count = static_cast<int>(w.end - w.first);
    const int skew = static_cast<int>(reinterpret_cast<uintptr_t>(whole + begin) / sizeof(T) % N);
    return {from + begin - skew, begin, skew, count, (skew + count + N - 1) / N};
}

/* Where pack i of it in the order of sums lies. */
template <bool REVERSED, class T> __device__ __forceinline__ int pack_at(const span<T> &s, int i)
{
    return REVERSED ? s.packs - 1 - i : i;
}

/* Pack i of it, or beyond the last any; element by element where it does not lie on 16 bytes. */
template <bool REVERSED, class T> __device__ __forceinline__ uint4 raw_pack(const span<T> &s, int i)
{
    constexpr int N = pc::row_pack<T>::size;
    const int first = pack_at<REVERSED>(s, min(i, s.packs - 1)) * N;
    const T *place = s.from + first;
    if (reinterpret_cast<uintptr_t>(place) % sizeof(uint4) == 0)
        return *reinterpret_cast<const uint4 *>(place);
    uint4 raw = {};
#pragma unroll
    for (int u = 0; u < N; u++)
        if (first + u >= s.skew && first + u < s.skew + s.count)
            reinterpret_cast<T(&)[N]>(raw)[u] = place[u];
    return raw;
}

/* The numbers of pack i in the order of sums, zeros for those that are none of this chunk's. */
template <bool REVERSED, class T, class M, int N>
__device__ __forceinline__ void take_pack(const span<T> &s, int i, const uint4 &raw, M (&x)[N])
{
    const int at = pack_at<REVERSED>(s, i), low = s.skew - at * N, high = s.skew + s.count - at * N;
    const T(&all)[N] = reinterpret_cast<const T(&)[N]>(raw);
#pragma unroll
    for (int u = 0; u < N; u++)
        x[u] = M(all[REVERSED ? N - 1 - u : u]);
    if (low > 0 || high < N)
#pragma unroll
        for (int u = 0; u < N; u++) {
            const int place = REVERSED ? N - 1 - u : u;
            x[u] = place >= low && place < high ? x[u] : M(0);
        }
}

/* The same places of `to`, where packs lie on their size. */
template <bool REVERSED, class T, class M, int N>
__device__ __forceinline__ void put_pack(const span<T> &s, int i, const M (&x)[N], T *to)
{
    const int at = pack_at<REVERSED>(s, i), low = s.skew - at * N, high = s.skew + s.count - at * N;
    T *place = to + s.begin + (at * N - s.skew);
    uint4 raw;
    T(&all)[N] = reinterpret_cast<T(&)[N]>(raw);
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int u = 0; u < N; u += 2)
            reinterpret_cast<uint32_t(&)[N / 2]>(raw)[u / 2] =
                pc::word_of<T>(x[REVERSED ? N - 1 - u : u], x[REVERSED ? N - 2 - u : u + 1]);
    } else {
#pragma unroll
        for (int u = 0; u < N; u++)
            all[u] = T(x[REVERSED ? N - 1 - u : u]);
    }
    if (low <= 0 && high >= N) {
        __stcg(reinterpret_cast<uint4 *>(place), raw);
        return;
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        if (u >= low && u < high)
            place[u] = all[u];
}

/* WRITES: running sums from what is in front; else the sum of the chunk goes to `sums`. A chunk has `lanes` threads, a lane 16
 * bytes at a time; fewer than a warp's where that takes all of it. */
template <class T, class M, bool WRITES, bool REVERSED>
__global__ void __launch_bounds__(THREADS)
    add_packs(const __grid_constant__ pc__cuda_line p, int lanes, const T *from, T *to, M *sums)
{
    constexpr int N = pc::row_pack<T>::size;
    pc::wait_for_earlier();
    const int64_t items = p.lists * p.chunks, per_block = THREADS / lanes, step = gridDim.x * per_block;
    const int lane = threadIdx.x % lanes;
    for (int64_t first = blockIdx.x * per_block; first < items; first += step) {
        const int64_t item = first + threadIdx.x / lanes;
        const piece w = piece_of(p, min(item, items - 1)); /* all of a warp is there to exchange */
        const span<T> s = span_of(p, w, from, WRITES ? to : from);
        M total = WRITES && p.chunks > 1 ? sums[w.list * p.chunks + w.chunk] : M(0);
        uint4 next = raw_pack<REVERSED>(s, lane);
        for (int i = lane; i - lane < s.packs; i += lanes) {
            M x[N];
            take_pack<REVERSED>(s, i, next, x);
            if (lanes == 32) /* while these are added up */
                next = raw_pack<REVERSED>(s, i + lanes);
#pragma unroll
            for (int u = 1; u < N; u++)
                x[u] = x[u - 1] + x[u];
            M up_to = x[N - 1];
#pragma unroll
            for (int far = 1; far < 32; far *= 2) {
                const M other = __shfl_up_sync(0xffffffffu, up_to, far);
                up_to = lane >= far ? other + up_to : up_to;
            }
            const M before = __shfl_up_sync(0xffffffffu, up_to, 1), in_front = lane > 0 ? total + before : total;
            if (WRITES && item < items && i < s.packs) {
#pragma unroll
                for (int u = 0; u < N; u++)
                    x[u] = in_front + x[u];
                put_pack<REVERSED>(s, i, x, to);
            }
            total += __shfl_sync(0xffffffffu, up_to, lanes - 1, lanes);
        }
        if (!WRITES && lane == 0 && item < items)
            sums[w.list * p.chunks + w.chunk] = total;
    }
}

} // namespace

#endif
