/* sum.cu: sums of [outer, reduced, inner]. Every thread adds short runs in the input's type (16-bit numbers in
 * float) and those in the wider one; threads then meet in a fixed tree. Nothing is added atomically, so the bits are
 * the same every time. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/reduce/reduce.h"
#include "cuda/reduce/result.cuh"
#include "cuda/shared/row.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256;

/* Of a block that has columns, by the elements of an access: so many sums of a thread take more registers. */
template <int N> constexpr int most_threads = N == 8 ? PC__WIDE_PACK_THREADS : PC__WIDE_THREADS;

template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

template <class T, int N> __device__ __forceinline__ pack<T, N> load(const T *from, bool there)
{
    pack<T, N> x = {};
    if (there)
        x = *reinterpret_cast<const pack<T, N> *>(from);
    return x;
}

/* Over `lanes` threads, for the first of them: a part of a warp, a warp, or all of the block, whose first warp then adds up
 * the others'. */
template <class A> __device__ __forceinline__ A joined(A total, int lanes, A (&warps)[PC__WIDE_THREADS / 32])
{
    total = sum_of_lanes(total, min(lanes, 32));
    if (lanes <= 32)
        return total;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = total;
    __syncthreads();
    return threadIdx.x < 32 ? sum_of_lanes(warps[threadIdx.x % (lanes / 32)], lanes / 32) : total;
}

/* A piece of a row, which `lanes` threads of a block add up. */
struct piece {
    int64_t id, at, n; /* of its result; its first element; how many */
    int lane;
    bool there;
};

__device__ __forceinline__ piece piece_of(const pc__cuda_reduction &r)
{
    piece p;
    const int shift = __ffs(r.lanes) - 1; /* a division takes as long as some rows */
    p.lane = threadIdx.x & (r.lanes - 1);
    p.id = static_cast<int64_t>(blockIdx.x) * (blockDim.x >> shift) + (threadIdx.x >> shift);
    p.there = p.id < r.outer * r.parts;
    const int64_t whole = r.parts == 1 ? p.id : quotient(p.id, r.parts), row = p.there ? whole : 0,
                  begin = p.there ? (p.id - row * r.parts) * r.piece : 0;
    p.at = row * r.reduced + begin;
    p.n = p.there ? min(r.piece, r.reduced - begin) : 0;
    return p;
}

/* [outer * parts] pieces, `lanes` threads each. A turn of a thread is 4 accesses, `lanes` packs apart. */
template <class T, class A, class O, int N>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    rows(const __grid_constant__ pc__cuda_reduction r, const T *in, O *out)
{
    __shared__ A warps[PC__WIDE_THREADS / 32];
    const piece p = piece_of(r);
    const int lanes = r.lanes;
    const int64_t n = p.n / N;
    const T *x = in + p.at;
    A total = 0;
    pc::wait_for_earlier();
    for (int64_t i = p.lane; i < n; i += 4 * lanes) {
        pack<T, N> a[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
            a[u] = load<T, N>(x + (i + u * lanes) * N, i + u * lanes < n);
        pc::math<T> run[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            run[u] = a[u].v[0];
#pragma unroll
            for (int k = 1; k < N; k++)
                run[u] += a[u].v[k];
        }
        total += static_cast<A>((run[0] + run[1]) + (run[2] + run[3]));
    }
    total = joined(total, lanes, warps);
    if (p.lane == 0 && p.there)
        out[p.id] = result_of<O>(total, r.divisor);
}

/* The same for rows that begin anywhere. */
template <class T, class A, class O>
__global__ void __launch_bounds__(PC__WIDE_THREADS)
    anywhere(const __grid_constant__ pc__cuda_reduction r, const T *in, O *out)
{
    __shared__ A warps[PC__WIDE_THREADS / 32];
    const piece p = piece_of(r);
    A total = 0;
    const auto add = [&](const auto &x, unsigned) {
        pc::math<T> run = x[0];
#pragma unroll
        for (int k = 1; k < static_cast<int>(sizeof(x) / sizeof(T)); k++)
            run += x[k];
        total += static_cast<A>(run);
    };
    pc::wait_for_earlier();
    pc::each_in_row<4>(in + p.at, static_cast<unsigned>(p.n), p.lane, r.lanes, add);
    total = joined(total, r.lanes, warps);
    if (p.lane == 0 && p.there)
        out[p.id] = result_of<O>(total, r.divisor);
}

/* Added in a tree, COUNT neighbours. */
template <int COUNT, class T, int N> __device__ __forceinline__ pc::math<T> tree(const pack<T, N> *a)
{
    if constexpr (COUNT > 1) {
        return tree<COUNT / 2>(a) + tree<COUNT / 2>(a + COUNT / 2);
    } else {
        pc::math<T> run = a->v[0];
#pragma unroll
        for (int k = 1; k < N; k++)
            run += a->v[k];
        return run;
    }
}

/* A block for each piece of a row: full turns, where no load is conditional, then what is left. */
template <class T, class A, class O, int N>
__global__ void __launch_bounds__(PC__LONG_THREADS)
    pieces(const T *in, O *out, int64_t reduced, int64_t parts, int64_t piece, double divisor)
{
    constexpr int AT_ONCE = PC__LONG_AT_ONCE;
    constexpr unsigned BLOCK = PC__LONG_THREADS;
    __shared__ A warps[BLOCK / 32];
    const int64_t row = blockIdx.x / parts, begin = (blockIdx.x - row * parts) * piece;
    const unsigned n = static_cast<unsigned>(min(piece, reduced - begin) / N);
    const pack<T, N> *x = reinterpret_cast<const pack<T, N> *>(in + row * reduced + begin);
    pc::wait_for_earlier();
    A total = 0;
    unsigned i = threadIdx.x;
    for (; i + (AT_ONCE - 1) * BLOCK < n; i += AT_ONCE * BLOCK) {
        pack<T, N> a[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            a[u] = x[i + u * BLOCK];
        total += static_cast<A>(tree<AT_ONCE>(a));
    }
    for (; i < n; i += BLOCK)
        total += static_cast<A>(tree<1>(x + i));
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    total = 0;
#pragma unroll
    for (unsigned w = 0; w < BLOCK / 32; w++)
        total += warps[w];
    out[blockIdx.x] = result_of<O>(total, divisor);
}

/* Eight rows of column k. */
template <class T, int N> __device__ __forceinline__ pc::math<T> eight(const pack<T, N> (&a)[8], int k)
{
    return ((a[0].v[k] + a[1].v[k]) + (a[2].v[k] + a[3].v[k])) + ((a[4].v[k] + a[5].v[k]) + (a[6].v[k] + a[7].v[k]));
}

/* Where column c is in shared memory: 16 threads that write the same element of their packs, or that read neighbouring
 * columns, have different banks. */
template <int N> __device__ __forceinline__ int slot(int c)
{
    return c / N * N + (c + c / 16) % N;
}

/* A block: `lanes` packs of neighbouring columns, threads / lanes rows at a time, 8 such turns under way. What a warp has of a
 * column is added up by shuffles, then what the warps have: a warp for a column where these are few, or else a thread. */
template <class T, class A, class O, int N>
__global__ void __launch_bounds__(most_threads<N>)
    columns(const __grid_constant__ pc__cuda_reduction r, const T *in, O *out)
{
    constexpr int ACROSS = 32 * N; /* columns of a block at most */
    __shared__ A sums[most_threads<N> / 32][ACROSS];
    const int lanes = r.lanes, height = blockDim.x / lanes, x = threadIdx.x % lanes, y = threadIdx.x / lanes;
    const int64_t tiles = (r.inner / N + lanes - 1) / lanes, piece = quotient(blockIdx.x, tiles),
                  outer = quotient(piece, r.parts), left = (blockIdx.x - piece * tiles) * lanes * N,
                  column = left + x * N;
    const int64_t begin = (piece - outer * r.parts) * r.piece, end = min(begin + r.piece, r.reduced);
    const T *from = in + outer * r.reduced * r.inner + column;
    A total[N] = {};
    pc::wait_for_earlier();
    if (column < r.inner)
        for (int64_t row = begin + y; row < end; row += 8 * height) {
            pack<T, N> a[8];
#pragma unroll
            for (int u = 0; u < 8; u++)
                a[u] = load<T, N>(from + (row + u * height) * r.inner, row + u * height < end);
#pragma unroll
            for (int k = 0; k < N; k++)
                total[k] += static_cast<A>(eight(a, k));
        }
    for (int step = 16; step >= lanes; step /= 2)
#pragma unroll
        for (int k = 0; k < N; k++)
            total[k] += __shfl_xor_sync(0xffffffffu, total[k], step);
    if (threadIdx.x % 32 < lanes)
#pragma unroll
        for (int k = 0; k < N; k++)
            sums[threadIdx.x / 32][slot<N>(x * N + k)] = total[k];
    __syncthreads();
    const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
    if (lanes * N <= warps) {
        const int c = threadIdx.x / 32;
        const A all = sum_of_lanes(lane < warps && c < lanes * N ? sums[lane][slot<N>(c)] : A(0), 32);
        if (lane == 0 && c < lanes * N && left + c < r.inner)
            out[piece * r.inner + left + c] = result_of<O>(all, r.divisor);
        return;
    }
    for (int c = threadIdx.x; c < lanes * N; c += blockDim.x) {
        A all = 0;
        for (int w = 0; w < warps; w++)
            all += sums[w][slot<N>(c)];
        if (left + c < r.inner)
            out[piece * r.inner + left + c] = result_of<O>(all, r.divisor);
    }
}

/* Results that are neighbours: one access or some, where they begin at whole ones. */
template <class O, int N, class A>
__device__ __forceinline__ void put_results(O *to, const A (&total)[N], double divisor)
{
    constexpr int TOGETHER = N * sizeof(O) > 16 ? 16 / sizeof(O) : N;
    if (N > 1 && reinterpret_cast<uintptr_t>(to) % sizeof(pack<O, TOGETHER>) == 0) {
#pragma unroll
        for (int k = 0; k < N; k += TOGETHER) {
            pack<O, TOGETHER> y;
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
                y.v[j] = result_of<O>(total[k + j], divisor);
            *reinterpret_cast<pack<O, TOGETHER> *>(to + k) = y;
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        to[k] = result_of<O>(total[k], divisor);
}

/* A thread: N neighbouring columns from top to bottom. */
template <class T, class A, class O, int N>
__global__ void __launch_bounds__(THREADS) singles(const __grid_constant__ pc__cuda_reduction r, const T *in, O *out)
{
    const int64_t width = r.inner / N, id = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t outer = id / width, column = (id - outer * width) * N;
    const T *from = in + outer * r.reduced * r.inner + column;
    pc::wait_for_earlier();
    if (id >= r.outer * width)
        return;
    A total[N] = {};
    for (int64_t row = 0; row < r.reduced; row += 8) {
        pack<T, N> a[8];
#pragma unroll
        for (int u = 0; u < 8; u++)
            a[u] = load<T, N>(from + (row + u) * r.inner, row + u < r.reduced);
#pragma unroll
        for (int k = 0; k < N; k++)
            total[k] += static_cast<A>(eight(a, k));
    }
    put_results<O, N>(out + outer * r.inner + column, total, r.divisor);
}

template <class T, class A, class O, int N> void launch(const pc__cuda_reduction *r, const T *in, O *out)
{
    const int threads = r->layout != PC__REDUCE_LONG && r->lanes > THREADS ? r->lanes : THREADS;
    const int64_t width = r->inner / N, tiles = (width + r->lanes - 1) / r->lanes, per_block = threads / r->lanes;
    const auto go = [r, threads](auto kernel, int64_t blocks, auto... parameters) {
        (void)pc::start(kernel, static_cast<unsigned>(blocks), threads, r->queue, r->early, parameters...);
    };
    if (r->layout == PC__REDUCE_LONG)
        (void)pc::start(pieces<T, A, O, N>, static_cast<unsigned>(r->outer * r->parts), PC__LONG_THREADS, r->queue,
                        r->early, in, out, r->reduced, r->parts, r->piece, r->divisor);
    else if (r->layout == PC__REDUCE_ANYWHERE)
        go(anywhere<T, A, O>, (r->outer * r->parts + per_block - 1) / per_block, *r, in, out);
    else if (r->layout == PC__REDUCE_ROWS)
        go(rows<T, A, O, N>, (r->outer * r->parts + per_block - 1) / per_block, *r, in, out);
    else if (r->layout == PC__REDUCE_COLUMNS)
        (void)pc::start(columns<T, A, O, N>, static_cast<unsigned>(tiles * r->outer * r->parts),
                        static_cast<unsigned>(r->threads), r->queue, r->early, *r, in, out);
    else
        (void)pc::start(singles<T, A, O, N>, static_cast<unsigned>((r->outer * width + r->threads - 1) / r->threads),
                        static_cast<unsigned>(r->threads), r->queue, r->early, *r, in, out);
}

template <class T, class A, class O> void sum(const pc__cuda_reduction *r, const void *in, void *out)
{
    constexpr int N = 16 / sizeof(T);
    if (r->pack == N)
        launch<T, A, O, N>(r, static_cast<const T *>(in), static_cast<O *>(out));
    else
        launch<T, A, O, 1>(r, static_cast<const T *>(in), static_cast<O *>(out));
}

/* From a type to itself, to float32 or to float64. */
template <class T> void sum_real(const pc__cuda_reduction *r, const void *in, void *out, int to)
{
    if (to == PC__CUDA_F64)
        sum<T, double, double>(r, in, out);
    else if (to == PC__CUDA_F32)
        sum<T, double, float>(r, in, out);
    else
        sum<T, double, T>(r, in, out);
}

/* From float32 to any. */
void sum_single(const pc__cuda_reduction *r, const void *in, void *out, int to)
{
    if (to == PC__CUDA_F16)
        sum<float, double, pc::f16>(r, in, out);
    else if (to == PC__CUDA_BF16)
        sum<float, double, pc::bf16>(r, in, out);
    else
        sum_real<float>(r, in, out, to);
}

/* From float64 to any. */
void sum_wide(const pc__cuda_reduction *r, const void *in, void *out, int to)
{
    switch (to) {
    case PC__CUDA_F16:
        return sum<double, double, pc::f16>(r, in, out);
    case PC__CUDA_BF16:
        return sum<double, double, pc::bf16>(r, in, out);
    case PC__CUDA_F32:
        return sum<double, double, float>(r, in, out);
    default:
        return sum<double, double, double>(r, in, out);
    }
}

} // namespace

void pc__cuda_sum(const pc__cuda_reduction *r, const void *in, int from, void *out, int to)
{
    switch (from) {
    case PC__CUDA_F16:
        return sum_real<pc::f16>(r, in, out, to);
    case PC__CUDA_BF16:
        return sum_real<pc::bf16>(r, in, out, to);
    case PC__CUDA_F32:
        return sum_single(r, in, out, to);
    case PC__CUDA_F64:
        return sum_wide(r, in, out, to);
    default:
        return sum<unsigned long long, unsigned long long, unsigned long long>(r, in, out);
    }
}
