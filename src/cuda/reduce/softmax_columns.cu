/* softmax_columns.cu: softmax and its kin along the middle of [outer][n][inner], where neighbours in memory belong to
 * different results. A block has up to 32 neighbouring columns, each thread some of a column's rows. It goes down twice,
 * the second time out of the caches: first for the maximum and the sum, which is corrected as the maximum rises. Long
 * columns that are few are cut, as rows are (softmax_long.cu). */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

#define THREADS PC__COLUMNS_THREADS
#define AT_ONCE PC__COLUMNS_AT_ONCE

namespace
{

struct sizes {
    long long n, inner, piece;
    unsigned parts;
    int lanes;
};

/* Backward there is no maximum: it stays 0. */
template <class T, int OP> __device__ __forceinline__ so_far<T> nothing()
{
    typedef pc::math<T> M;
    return traits<OP>::backward ? so_far<T>{M(0), M(0)} : so_far<T>::nothing();
}

/* Rows row, row + step, ... of which `left` lie below the end. */
template <class T, int OP>
__device__ __forceinline__ void take(so_far<T> &a, const pc::math<T> (&x)[AT_ONCE], const pc::math<T> (&y)[AT_ONCE],
                                     long long left, int step)
{
    typedef pc::math<T> M;
    const auto there = [&](int u) { return (long long)u * step < left; };
    if (!traits<OP>::backward) {
        M higher = a.most;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            higher = there(u) ? larger()(higher, x[u]) : higher;
        a.rise_to(higher);
    }
    const M base = traits<OP>::backward ? M(0) : a.base();
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
        a.sum += there(u) ? summand<T, OP>(x[u], y[u], base) : M(0);
}

/* What a thread has to do: rows begin + y, + height, ... below end of a column of n. */
struct part {
    long long first, begin, end; /* of the column: its first element; rows of this piece */
    int x, y, height;
    bool there; /* else beyond the last column: the last one once more, for nothing */
};

__device__ __forceinline__ part part_of(const sizes &s)
{
    const long long tiles = (s.inner + s.lanes - 1) / s.lanes, tile = blockIdx.x / s.parts, outer = tile / tiles;
    part p;
    p.height = THREADS / s.lanes;
    p.x = threadIdx.x % s.lanes;
    p.y = threadIdx.x / s.lanes;
    const long long column = (tile - outer * tiles) * s.lanes + p.x;
    p.there = column < s.inner;
    p.first = outer * s.n * s.inner + (p.there ? column : s.inner - 1);
    p.begin = (blockIdx.x - tile * s.parts) * s.piece;
    p.end = min(p.begin + s.piece, s.n);
    return p;
}

/* Of the threads of a column. */
template <class T> __device__ __forceinline__ so_far<T> joined(so_far<T> mine, const part &p, int lanes)
{
    __shared__ so_far<T> together[THREADS];
    together[threadIdx.x] = mine;
    for (int half = p.height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (p.y < half) {
            mine += together[threadIdx.x + half * lanes];
            together[threadIdx.x] = mine;
        }
    }
    __syncthreads();
    return together[p.x];
}

template <class T, int OP>
__device__ __forceinline__ so_far<T> found(const T *a, const T *b, const part &p, long long inner)
{
    typedef pc::math<T> M;
    so_far<T> mine = nothing<T, OP>();
    for (long long row = p.begin + p.y; row < p.end; row += AT_ONCE * p.height) {
        M in_a[AT_ONCE], in_b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long at = p.first + min(row + u * p.height, p.end - 1) * inner;
            in_a[u] = a[at];
            in_b[u] = OP == PC__SOFTMAX_BACKWARD ? M(b[at]) : M(0);
        }
        take<T, OP>(mine, in_a, in_b, p.end - row, p.height);
    }
    return mine;
}

template <class T, int OP>
__device__ __forceinline__ void put(const T *a, const T *b, T *out, const part &p, long long inner,
                                    const so_far<T> &all)
{
    typedef pc::math<T> M;
    const M sum = finished<M, OP>(all.sum);
    for (long long row = p.begin + p.y; p.there && row < p.end; row += AT_ONCE * p.height) {
        M in_a[AT_ONCE], in_b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const long long at = p.first + min(row + u * p.height, p.end - 1) * inner;
            in_a[u] = a[at];
            in_b[u] = traits<OP>::backward ? M(b[at]) : M(0);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const M term = OP == PC__SOFTMAX ? summand<T, OP>(in_a[u], M(0), all.most) : M(0);
            if (row + u * p.height < p.end)
                out[p.first + (row + u * p.height) * inner] = T(element<T, OP>(in_a[u], in_b[u], term, all.most, sum));
        }
    }
}

template <class T, int OP>
__global__ void __launch_bounds__(THREADS)
    columns(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, sizes s)
{
    const part p = part_of(s);
    pc::wait_for_earlier();
    const so_far<T> all = joined(found<T, OP>(a, b, p, s.inner), p, s.lanes);
    put<T, OP>(a, b, out, p, s.inner, all);
}

/* between[tile][column][part] */
template <class T, int OP>
__global__ void __launch_bounds__(THREADS)
    find_pieces(const T *__restrict__ a, const T *__restrict__ b, so_far<T> *between, sizes s)
{
    const part p = part_of(s);
    pc::wait_for_earlier();
    const so_far<T> own = joined(found<T, OP>(a, b, p, s.inner), p, s.lanes);
    const long long tile = blockIdx.x / s.parts;
    if (p.y == 0)
        between[(tile * s.lanes + p.x) * s.parts + blockIdx.x % s.parts] = own;
}

template <class T, int OP>
__global__ void __launch_bounds__(THREADS)
    put_pieces(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, const so_far<T> *between, sizes s)
{
    const part p = part_of(s);
    pc::wait_for_earlier();
    const so_far<T> *own = between + (blockIdx.x / s.parts * s.lanes + p.x) * s.parts;
    so_far<T> mine = nothing<T, OP>();
    for (unsigned i = p.y; i < s.parts; i += p.height)
        mine += own[i];
    put<T, OP>(a, b, out, p, s.inner, joined(mine, p, s.lanes));
}

template <class T, int OP> void launch(const pc__cuda_softmax_columns *c)
{
    const T *a = (const T *)c->a, *b = (const T *)c->b;
    T *out = (T *)c->out;
    const sizes s = {c->n, c->inner, c->piece, (unsigned)c->parts, c->lanes};
    const unsigned blocks = (unsigned)(c->blocks * c->parts);
    so_far<T> *between = (so_far<T> *)c->between;
    if (c->parts == 1)
        (void)pc::start(columns<T, OP>, blocks, THREADS, c->queue, c->early, a, b, out, s);
    else if (pc::start(find_pieces<T, OP>, blocks, THREADS, c->queue, c->early, a, b, between, s) == cudaSuccess)
        (void)pc::start(put_pieces<T, OP>, blocks, THREADS, c->queue, c->early, a, b, out, (const so_far<T> *)between,
                        s);
}

} // namespace

void pc__cuda_softmax_down(const pc__cuda_softmax_columns *c, enum pc__cuda_softmax_op op)
{
    with_kind(c->dtype, op, [&](auto kind) { launch<typename decltype(kind)::number, kind.op>(c); });
}
