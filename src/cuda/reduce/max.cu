/* max.cu: maxima and minima of [outer, reduced, inner] with their places. The better of two is the same in whatever order
 * it is asked, and an element may be compared twice, so loads beyond the end take the first element instead. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/reduce/piece.cuh"
#include "cuda/reduce/best.cuh"
#include "cuda/reduce/reduce.h"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, AT_ONCE = 4, HIGH = 4 /* threads of a column */;

template <class T, class Order> struct best {
    T value;
    long long place;
};

/* NaN beats all; of equals the first. */
template <class T, class Order> __device__ __forceinline__ void meet(best<T, Order> &a, T value, long long place)
{
    const bool a_nan = a.value != a.value, b_nan = value != value;
    const bool equal = a.value == value || (a_nan && b_nan);
    if (equal ? place < a.place : b_nan || (!a_nan && Order::beats(value, a.value)))
        a = {value, place};
}

template <class T, class Order>
__device__ __forceinline__ void meet(leader<T, Order> &a, pc::math<T> value, unsigned place)
{
    a.meet(value, place);
}

/* Elements begin + y, begin + y + height, ... below end of the column at `x`, whose neighbours are `inner` apart; without
 * such, the one at begin. */
template <class Order, class T>
__device__ __forceinline__ best<T, Order> scan(const T *x, int64_t inner, int64_t begin, int64_t end, int y, int height)
{
    constexpr int TURN = 8;
    const T *base = x + begin * inner;
    const unsigned n = static_cast<unsigned>(end - begin);
    const int64_t step = height * inner;
    leader<T, Order> a = {*base, 0};
    x = base + y * inner;
    for (unsigned at = y; at < n; at += TURN * height) {
        T value[TURN];
#pragma unroll
        for (int u = 0; u < TURN; u++) {
            value[u] = *(at + u * height < n ? x : base);
            x += step;
        }
#pragma unroll
        for (int u = 0; u < TURN; u++)
            a.see(value[u], at + u * height);
    }
    return {static_cast<T>(a.value), begin + a.place};
}

/* The same of results of a first pass, from row y on, with the places that these have. */
template <class Order, class T>
__device__ __forceinline__ best<T, Order> scan_results(const T *x, const int64_t *places, int64_t inner, int64_t y,
                                                       int64_t end, int64_t height)
{
    best<T, Order> a = {x[0], places[0]};
    for (int64_t r = y; r < end; r += AT_ONCE * height) {
        T value[AT_ONCE];
        long long place[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int64_t i = r + u * height < end ? r + u * height : 0;
            value[u] = x[i * inner];
            place[u] = places[i * inner];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            meet(a, value[u], place[u]);
    }
    return a;
}

/* The best of `lanes` neighbours of a warp, which all get it; of those that are a multiple of `apart` away. */
template <class B> __device__ __forceinline__ void meet_lanes(B &a, int lanes, int apart = 1)
{
    for (int step = lanes / 2; step >= apart; step /= 2) {
        const auto value = static_cast<decltype(a.value)>(__shfl_xor_sync(0xffffffffu, a.value, step));
        meet(a, value, __shfl_xor_sync(0xffffffffu, a.place, step));
    }
}

/* The best of `lanes` threads, for the first of them: a part of a warp, a warp, or all of the block, whose first warp then
 * asks the others'. */
template <class B> __device__ __forceinline__ void meet_all(B &a, int lanes)
{
    __shared__ B warps[PC__WIDE_THREADS / 32];
    meet_lanes(a, min(lanes, 32));
    if (lanes <= 32)
        return;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = a;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    a = warps[threadIdx.x % (lanes / 32)];
    meet_lanes(a, lanes / 32);
}

/* [outer * parts] pieces, `lanes` threads each. */
template <class T, class Order>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    rows(const __grid_constant__ pc__cuda_reduction r, const T *__restrict__ in, T *__restrict__ out,
         int64_t *__restrict__ out_places)
{
    const int lanes = r.lanes, lane = threadIdx.x % lanes;
    const piece p = piece_of(r);
    const T *x = in + p.row * r.reduced + p.begin;
    pc::wait_for_earlier();
    leader<T, Order> a = {x[0], 0};
    pc::each_in_row<4>(x, p.count, lane, lanes, a);
    meet_all(a, lanes);
    if (lane == 0 && p.there) {
        put(out, p.id, a.value);
        out_places[p.id] = p.begin + a.place;
    }
}

/* The same of results and their places: a row's are few. */
template <class T, class Order>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    rows_of_results(const __grid_constant__ pc__cuda_reduction r, const T *in, const int64_t *places, T *out,
                    int64_t *out_places)
{
    const int lanes = r.lanes, lane = threadIdx.x % lanes;
    const int64_t id = static_cast<int64_t>(blockIdx.x) * (blockDim.x / lanes) + threadIdx.x / lanes;
    const int64_t row = min(id, r.outer - 1);
    pc::wait_for_earlier();
    const best<T, Order> own =
        scan_results<Order>(in + row * r.reduced, places + row * r.reduced, 1, lane, r.reduced, lanes);
    best<pc::math<T>, Order> a = {own.value, own.place};
    meet_all(a, lanes);
    if (lane == 0 && id < r.outer) {
        put(out, id, a.value);
        out_places[id] = a.place;
    }
}

/* A block: `lanes` neighbouring columns, threads / lanes rows at a time. A warp's threads of a column meet first, then the
 * warps. */
template <class T, class Order>
__global__ void __launch_bounds__(PC__WIDE_THREADS) columns(const __grid_constant__ pc__cuda_reduction r, const T *in,
                                                            const int64_t *places, T *out, int64_t *out_places)
{
    __shared__ best<pc::math<T>, Order> bests[PC__WIDE_THREADS / 32][32];
    pc::wait_for_earlier();
    const int lanes = r.lanes, height = blockDim.x / lanes, x = threadIdx.x % lanes, y = threadIdx.x / lanes;
    const int64_t tiles = (r.inner + lanes - 1) / lanes, piece = quotient(blockIdx.x, tiles),
                  outer = quotient(piece, r.parts), left = (blockIdx.x - piece * tiles) * lanes;
    const int64_t begin = (piece - outer * r.parts) * r.piece, end = min(begin + r.piece, r.reduced);
    const int64_t start = outer * r.reduced * r.inner + min(left + x, r.inner - 1);
    const best<T, Order> own = places ? scan_results<Order>(in + start, places + start, r.inner, y, end, height)
                                      : scan<Order>(in + start, r.inner, begin, end, y, height);
    best<pc::math<T>, Order> a = {own.value, own.place};
    meet_lanes(a, 32, lanes);
    if (threadIdx.x % 32 < lanes)
        bests[threadIdx.x / 32][x] = a;
    __syncthreads();
    const int warps = blockDim.x / 32, warp = threadIdx.x % warps,
              column = threadIdx.x / warps; /* a thread: one's best */
    if (threadIdx.x / 32 * 32 / warps >= lanes)
        return;
    a = bests[warp][min(column, lanes - 1)];
    meet_lanes(a, warps);
    if (warp == 0 && column < lanes && left + column < r.inner) {
        put(out, piece * r.inner + left + column, a.value);
        out_places[piece * r.inner + left + column] = a.place;
    }
}

/* A thread: one column from top to bottom. */
template <class T, class Order>
__global__ void __launch_bounds__(THREADS) singles(const __grid_constant__ pc__cuda_reduction r, const T *in,
                                                   const int64_t *places, T *out, int64_t *out_places)
{
    pc::wait_for_earlier();
    const int64_t id = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (id >= r.outer * r.inner)
        return;
    const int64_t outer = id / r.inner, start = outer * r.reduced * r.inner + (id - outer * r.inner);
    const best<T, Order> a = places ? scan_results<Order>(in + start, places + start, r.inner, 0, r.reduced, 1)
                                    : scan<Order>(in + start, r.inner, 0, r.reduced, 0, 1);
    put(out, id, pc::math<T>(a.value));
    out_places[id] = a.place;
}

/* The same by HIGH threads for each column: where these are too few to occupy the chip, and long. */
template <class T, class Order>
__global__ void __launch_bounds__(THREADS)
    high_singles(const __grid_constant__ pc__cuda_reduction r, const T *in, T *out, int64_t *out_places)
{
    constexpr int WIDE = THREADS / HIGH;
    __shared__ best<pc::math<T>, Order> bests[HIGH][WIDE];
    pc::wait_for_earlier();
    const int x = threadIdx.x % WIDE, y = threadIdx.x / WIDE;
    const int64_t id = static_cast<int64_t>(blockIdx.x) * WIDE + x, column = min(id, r.outer * r.inner - 1),
                  outer = quotient(column, r.inner);
    const T *first = in + outer * r.reduced * r.inner + (column - outer * r.inner);
    const best<T, Order> own = scan<Order>(first, r.inner, 0, r.reduced, y, HIGH);
    best<pc::math<T>, Order> a = {own.value, own.place};
    bests[y][x] = a;
    __syncthreads();
    if (y > 0 || id != column)
        return;
#pragma unroll
    for (int k = 1; k < HIGH; k++)
        meet(a, bests[k][x].value, bests[k][x].place);
    put(out, id, a.value);
    out_places[id] = a.place;
}

/* Whether columns of one thread each are so. */
inline bool are_high(const pc__cuda_reduction *r)
{
    enum { SHORT = 32, FULL = 1 << 17 };
    return r->reduced > SHORT && r->outer * r->inner < FULL;
}

template <class T, class Order>
void extreme(const pc__cuda_reduction *r, const void *from, const int64_t *places, void *to, int64_t *out_places)
{
    const T *in = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    const int threads = r->lanes > THREADS ? r->lanes : THREADS;
    const int64_t tiles = (r->inner + r->lanes - 1) / r->lanes, per_block = threads / r->lanes;
    const auto go = [&](auto kernel, int64_t blocks, int block) {
        (void)pc::start(kernel, static_cast<unsigned>(blocks), block, r->queue, r->early, *r, in, places, out,
                        out_places);
    };
    const int64_t row_blocks = (r->outer * r->parts + per_block - 1) / per_block;
    if (r->layout == PC__REDUCE_ROWS && !places)
        (void)pc::start(rows<T, Order>, static_cast<unsigned>(row_blocks), threads, r->queue, r->early, *r, in, out,
                        out_places);
    else if (r->layout == PC__REDUCE_ROWS)
        go(rows_of_results<T, Order>, row_blocks, threads);
    else if (r->layout == PC__REDUCE_COLUMNS)
        go(columns<T, Order>, tiles * r->outer * r->parts, r->threads);
    else if (!places && are_high(r))
        (void)pc::start(high_singles<T, Order>,
                        static_cast<unsigned>((r->outer * r->inner + THREADS / HIGH - 1) / (THREADS / HIGH)), THREADS,
                        r->queue, r->early, *r, in, out, out_places);
    else
        go(singles<T, Order>, (r->outer * r->inner + THREADS - 1) / THREADS, THREADS);
}

template <class Order>
void of_dtype(const pc__cuda_reduction *r, const void *in, int dtype, const int64_t *places, void *out,
              int64_t *out_places)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return extreme<uint8_t, Order>(r, in, places, out, out_places);
    case PC__CUDA_I32:
        return extreme<int32_t, Order>(r, in, places, out, out_places);
    case PC__CUDA_I64:
        return extreme<long long, Order>(r, in, places, out, out_places);
    case PC__CUDA_F16:
        return extreme<pc::f16, Order>(r, in, places, out, out_places);
    case PC__CUDA_BF16:
        return extreme<pc::bf16, Order>(r, in, places, out, out_places);
    case PC__CUDA_F32:
        return extreme<float, Order>(r, in, places, out, out_places);
    default:
        return extreme<double, Order>(r, in, places, out, out_places);
    }
}

} // namespace

void pc__cuda_max(const pc__cuda_reduction *r, const void *in, int dtype, const int64_t *places, void *out,
                  int64_t *out_places)
{
    if (r->least)
        of_dtype<the_smaller>(r, in, dtype, places, out, out_places);
    else
        of_dtype<the_larger>(r, in, dtype, places, out, out_places);
}
