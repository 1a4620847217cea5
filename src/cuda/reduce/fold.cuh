/* fold.cuh: one reduction for all that keeps a state of the numbers so far. A kind F of it has
 *
 *     typedef ... type, state;           of elements; plain, of whole 32-bit words, at most PC__FOLD_STATE bytes
 *     state nothing() const;
 *     void see(state &, const type (&x)[N], int64_t at) const;    N neighbours, the first of them element `at` of the result's
 *     void meet(state &, const state &later) const;
 *     void store(const state &, int64_t result) const;
 *
 * and where it knows better than one state after the other:
 *
 *     void over_lanes(state &, int lanes) const;    of neighbouring lanes of a warp, for the first of them
 *     void row_of_few(state &, const type (&x)[EACH], int count) const;    a warp's row (fold_few.cuh)
 *     void store_all(const state (&)[W], int64_t first) const;    W neighbouring results
 *
 * Threads and blocks meet in a tree that depends on sizes alone, and nothing is added atomically. */
#ifndef PC__CUDA_FOLD_CUH
#define PC__CUDA_FOLD_CUH

#include "cuda/reduce/fold.h"
#include "cuda/reduce/fold_few.cuh"
#include "cuda/reduce/fold_lanes.cuh"
#include "cuda/reduce/piece.cuh"
#include "cuda/reduce/short.cuh"
#include "cuda/reduce/store_as.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

/* Over `lanes` threads, a part of a warp, a warp or all of the block, for the first of them. */
template <class F> __device__ __forceinline__ void join_all(const F &f, typename F::state &mine, int lanes)
{
    __shared__ alignas(8) unsigned char room[PC__WIDE_THREADS / 32 * PC__FOLD_STATE];
    typename F::state *warps = reinterpret_cast<typename F::state *>(room);
    join_lanes(f, mine, min(lanes, 32), 0);
    if (lanes <= 32)
        return;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    mine = warps[threadIdx.x % (lanes / 32)];
    join_lanes(f, mine, lanes / 32, 0);
}

template <class F>
__device__ __forceinline__ void leave(const F &f, const typename F::state &mine, int parts, void *between, int64_t at)
{
    if (parts == 1)
        f.store(mine, at);
    else
        static_cast<typename F::state *>(between)[at] = mine;
}

/* [outer * parts] pieces, `lanes` threads each. */
template <class F>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    fold_rows(const __grid_constant__ pc__cuda_reduction r, const __grid_constant__ F f,
              const typename F::type *__restrict__ in, void *between)
{
    const int lanes = r.lanes, lane = threadIdx.x & (lanes - 1);
    const piece p = piece_of(r);
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    pc::each_in_row<4>(in + p.row * r.reduced + p.begin, p.count, lane, lanes,
                       [&](const auto &x, unsigned at) { f.see(mine, x, p.begin + at); });
    join_all(f, mine, lanes);
    if (lane == 0 && p.there)
        leave(f, mine, r.parts, between, p.id);
}

/* Every `height`-th row of a column from `begin` on; the last ones are under way together, too. */
template <class F>
__device__ __forceinline__ void see_column(const F &f, typename F::state &mine, const typename F::type *x,
                                           int64_t inner, int64_t begin, int64_t end, int64_t height)
{
    constexpr int TURN = 8;
    typedef typename F::type T;
    int64_t row = begin;
    for (; row + (TURN - 1) * height < end; row += TURN * height) {
        T v[TURN];
#pragma unroll
        for (int u = 0; u < TURN; u++)
            v[u] = x[(row + u * height) * inner];
        f.see(mine, v, row);
    }
    const int left = row < end ? static_cast<int>((end - row - 1) / height) + 1 : 0;
    const int64_t two = row + (left & 4) * height, one = two + (left & 2) * height;
    T four_left[4], two_left[2], one_left[1];
    if (left & 4)
#pragma unroll
        for (int u = 0; u < 4; u++)
            four_left[u] = x[(row + u * height) * inner];
    if (left & 2)
#pragma unroll
        for (int u = 0; u < 2; u++)
            two_left[u] = x[(two + u * height) * inner];
    if (left & 1)
        one_left[0] = x[one * inner];
    if (left & 4)
        f.see(mine, four_left, row);
    if (left & 2)
        f.see(mine, two_left, two);
    if (left & 1)
        f.see(mine, one_left, one);
}

/* A block: `lanes` neighbouring columns, threads / lanes rows at a time. */
template <class F>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    fold_columns(const __grid_constant__ pc__cuda_reduction r, const __grid_constant__ F f,
                 const typename F::type *__restrict__ in, void *between)
{
    __shared__ alignas(8) unsigned char room[PC__WIDE_THREADS * PC__FOLD_STATE];
    typename F::state *states = reinterpret_cast<typename F::state *>(room);
    const int lanes = r.lanes, height = blockDim.x / lanes, x = threadIdx.x % lanes, y = threadIdx.x / lanes;
    const int64_t tiles = (r.inner + lanes - 1) / lanes, piece = quotient(blockIdx.x, tiles),
                  outer = quotient(piece, r.parts), column = (blockIdx.x - piece * tiles) * lanes + x;
    const int64_t begin = (piece - outer * r.parts) * r.piece, end = min(begin + r.piece, r.reduced);
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    if (column < r.inner)
        see_column(f, mine, in + outer * r.reduced * r.inner + column, r.inner, begin + y, end, height);
    states[threadIdx.x] = mine;
    for (int half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half)
            f.meet(states[threadIdx.x], states[threadIdx.x + half * lanes]);
    }
    if (y == 0 && column < r.inner)
        leave(f, states[threadIdx.x], r.parts, between, piece * r.inner + column);
}

/* W neighbouring results, by the kind's own way where it has one that writes them together. */
template <class F, int W>
__device__ __forceinline__ auto store_all(const F &f, const typename F::state (&mine)[W], int64_t at, int)
    -> decltype(f.store_all(mine, at))
{
    f.store_all(mine, at);
}

template <class F, int W>
__device__ __forceinline__ void store_all(const F &f, const typename F::state (&mine)[W], int64_t at, long)
{
#pragma unroll
    for (int w = 0; w < W; w++)
        f.store(mine[w], at + w);
}

/* A thread: W neighbouring columns from top to bottom, whose rows are accesses each. */
template <class F, int W>
__global__ void __launch_bounds__(PC__FOLD_THREADS)
    fold_singles(const __grid_constant__ pc__cuda_reduction r, const __grid_constant__ F f,
                 const typename F::type *__restrict__ in)
{
    typedef typename F::type T;
    const int64_t id = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W;
    pc::wait_for_earlier();
    if (id >= r.outer * r.inner)
        return;
    const int64_t outer = quotient(id, r.inner);
    const T *x = in + outer * r.reduced * r.inner + (id - outer * r.inner);
    typename F::state mine[W];
#pragma unroll
    for (int w = 0; w < W; w++)
        mine[w] = f.nothing();
    if constexpr (W == 1) {
        see_column(f, mine[0], x, r.inner, 0, r.reduced, 1);
    } else {
        constexpr int TURN = 4;
        for (int64_t row = 0; row < r.reduced; row += TURN) {
            pc::row_pack<T> v[TURN];
#pragma unroll
            for (int u = 0; u < TURN; u++)
                if (row + u < r.reduced)
                    v[u] = *reinterpret_cast<const pc::row_pack<T> *>(x + (row + u) * r.inner);
#pragma unroll
            for (int u = 0; u < TURN; u++)
                if (row + u < r.reduced)
#pragma unroll
                    for (int w = 0; w < W; w++)
                        f.see(mine[w], reinterpret_cast<const T(&)[1]>(v[u].at[w]), row + u);
        }
    }
    store_all(f, mine, id, 0);
}

/* A block: rows of few elements, side by side to shared memory, `pitch` apart there; a thread has one then. */
template <class F>
__global__ void __launch_bounds__(PC__FOLD_THREADS)
    fold_short(const __grid_constant__ pc__cuda_reduction r, const __grid_constant__ F f,
               const typename F::type *__restrict__ in)
{
    extern __shared__ __align__(8) char shared[];
    typedef typename F::type T;
    T *const rows = reinterpret_cast<T *>(shared);
    const int n = static_cast<int>(r.reduced), pitch = n | 1;
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x;
    const int count = static_cast<int>(min(r.outer - begin, static_cast<int64_t>(blockDim.x)));
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    const T *from = in + begin * n;
#pragma unroll 4
    for (int i = threadIdx.x; i < count * n; i += blockDim.x)
        rows[i / n * pitch + i % n] = from[i];
    __syncthreads();
    if (threadIdx.x >= count)
        return;
    see_column(f, mine, rows + threadIdx.x * pitch, 1, 0, n, 1);
    f.store(mine, begin + threadIdx.x);
}

/* Of an input with gaps: a result has `lanes` threads, a part of a warp, a warp or a block. */
template <class F>
__global__ void __launch_bounds__(PC__SHORT_LANES)
    fold_gaps(const __grid_constant__ pc__cuda_short s, const __grid_constant__ F f,
              const typename F::type *__restrict__ in)
{
    const short_part p = short_part_of(s);
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    see_column(f, mine, in + p.first, s.step, p.lane, p.n, s.lanes);
    join_all(f, mine, s.lanes);
    if (p.writes)
        f.store(mine, p.result);
}

/* A block: the parts of one result. */
template <class F>
__global__ void __launch_bounds__(PC__FOLD_THREADS)
    fold_parts(const __grid_constant__ F f, const typename F::state *between, int64_t parts, int64_t inner)
{
    const int64_t outer = quotient(blockIdx.x, inner);
    const typename F::state *from = between + outer * parts * inner + (blockIdx.x - outer * inner);
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    for (int64_t i = threadIdx.x; i < parts; i += blockDim.x)
        f.meet(mine, from[i * inner]);
    join_all(f, mine, blockDim.x);
    if (threadIdx.x == 0)
        f.store(mine, blockIdx.x);
}

/* Whether rows are many, of too few elements for several threads each, and a block's fit in shared memory. */
inline bool is_short(const pc__cuda_reduction &r, size_t size)
{
    enum { FEW = 32, MANY = 32768, MOST_BYTES = 48 << 10 };
    return r.inner == 1 && r.reduced <= FEW && r.outer >= MANY &&
           (r.reduced | 1) * size * PC__FOLD_THREADS <= MOST_BYTES;
}

template <class F> void fold_many(const pc__cuda_reduction &r, const F &f, const typename F::type *in)
{
    const size_t bytes = static_cast<size_t>(r.reduced | 1) * sizeof(typename F::type) * PC__FOLD_THREADS;
    const int64_t blocks = (r.outer + PC__FOLD_THREADS - 1) / PC__FOLD_THREADS;
    (void)pc::start_grid(fold_short<F>, dim3(static_cast<unsigned>(blocks)), dim3(PC__FOLD_THREADS), bytes, r.queue,
                         r.early, r, f, in);
}

/* Rows that a thread reads as they lie: no more than a sector of memory holds several of. */
inline bool is_tiny(const pc__cuda_reduction &r, size_t size)
{
    enum { BYTES = 16, SOME = 2048 };
    return r.inner == 1 && r.reduced * size <= BYTES && r.outer >= SOME;
}

/* Smaller blocks where large ones would leave multiprocessors without any; 16 bytes an access of columns that are many, since a
 * GPU starts no more than a block in a nanosecond or so. */
template <class F> void fold_each(const pc__cuda_reduction &r, const F &f, const typename F::type *in, const void *out)
{
    enum { FULL = 264 * PC__FOLD_THREADS /* two blocks for each multiprocessor of a large GPU */ };
    constexpr int W = 16 / sizeof(typename F::type);
    const int64_t columns = r.outer * r.inner;
    const uintptr_t places = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out);
    const bool wide = r.inner % W == 0 && columns / W >= FULL && places % 16 == 0;
    const int64_t each = wide ? columns / W : columns;
    const unsigned threads = each < FULL ? PC__FOLD_THREADS / 4 : PC__FOLD_THREADS;
    (void)pc::start(wide ? fold_singles<F, W> : fold_singles<F, 1>,
                    static_cast<unsigned>((each + threads - 1) / threads), threads, r.queue, r.early, r, f, in);
}

/* The results of several parts each. */
template <class F> void join_parts(const pc__cuda_fold *d, const F &f)
{
    const pc__cuda_reduction *r = &d->how;
    if (r->parts == 1)
        return;
    unsigned size = 32;
    while (size < r->parts && size < PC__FOLD_THREADS)
        size *= 2;
    (void)pc::start(fold_parts<F>, static_cast<unsigned>(r->outer * r->inner), size, r->queue, r->early, f,
                    static_cast<const typename F::state *>(d->between), r->parts, r->inner);
}

template <class F> void fold(const pc__cuda_fold *d, const F &f)
{
    const pc__cuda_reduction *r = &d->how;
    const typename F::type *in = static_cast<const typename F::type *>(d->in);
    if (d->gaps)
        return start_short(fold_gaps<F>, d->gaps, *d->gaps, f, in);
    if (r->layout == PC__REDUCE_SINGLES || is_tiny(*r, sizeof(typename F::type)))
        return fold_each(*r, f, in, d->out);
    if (is_short(*r, sizeof(typename F::type)))
        return fold_many(*r, f, in);
    if (r->layout == PC__REDUCE_ROWS && r->outer <= PC__FEW_ROWS && r->reduced <= PC__FEW_ELEMENTS)
        return start_few(static_cast<unsigned>(r->outer), static_cast<unsigned>(r->reduced), f, in, r->queue, r->early);
    const int threads = r->lanes > PC__FOLD_THREADS ? r->lanes : PC__FOLD_THREADS;
    const int64_t per_block = threads / r->lanes, tiles = (r->inner + r->lanes - 1) / r->lanes;
    const auto go = [r](auto kernel, int64_t blocks, int size, auto... parameters) {
        (void)pc::start(kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(size), r->queue, r->early,
                        parameters...);
    };
    if (r->layout == PC__REDUCE_ROWS)
        go(fold_rows<F>, (r->outer * r->parts + per_block - 1) / per_block, threads, *r, f, in, d->between);
    else
        go(fold_columns<F>, tiles * r->outer * r->parts, r->threads, *r, f, in, d->between);
    join_parts(d, f);
}

/* fold of the kind F<T> by the dtype of a float. */
template <template <class> class F> void fold_floats(const pc__cuda_fold *d)
{
    switch (d->from) {
    case PC__CUDA_F16:
        return fold(d, F<pc::f16>(d));
    case PC__CUDA_BF16:
        return fold(d, F<pc::bf16>(d));
    case PC__CUDA_F32:
        return fold(d, F<float>(d));
    default:
        return fold(d, F<double>(d));
    }
}

} // namespace

#endif
