/* max_backward.cu: what a maximum's gradient is to its elements. Along dimensions a thread writes 16 bytes, and goes from one
 * place to the next, or where many results are neighbours some elements of one result; of the whole the equals are counted
 * first. */
#include "cuda/reduce/max_backward.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, WIDE = 1024;

template <class U, int W> struct alignas(W * sizeof(U)) pack {
    U at[W];
};

template <class U>
__global__ void __launch_bounds__(THREADS)
    to_places(const U *__restrict__ g, const int64_t *__restrict__ places, U *__restrict__ dx, long long count,
              long long reduced, long long inner)
{
    constexpr int W = 16 / sizeof(U);
    const long long first = (static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x) * W;
    const long long row = quotient(first, inner);
    long long outer = quotient(row, reduced), along = row - outer * reduced, across = first - row * inner;
    pc::wait_for_earlier();
    if (first >= count)
        return;
    long long place = places[outer * inner + across];
    U value = g[outer * inner + across];
    pack<U, W> y;
    if (inner == 1 && along + W <= reduced) { /* most of what long rows are */
        const long long ahead = place - along;
        const int one = ahead >= 0 && ahead < W ? static_cast<int>(ahead) : W;
#pragma unroll
        for (int j = 0; j < W; j++)
            y.at[j] = j == one ? value : U(0);
        *reinterpret_cast<pack<U, W> *>(dx + first) = y;
        return;
    }
#pragma unroll
    for (int j = 0; j < W; j++) {
        y.at[j] = place == along ? value : U(0);
        bool other = inner > 1; /* the next element is another result's */
        if (++across == inner) {
            across = 0;
            if (++along == reduced)
                along = 0, outer++, other = true;
        }
        if (j + 1 < W && other && first + j + 1 < count) {
            place = places[outer * inner + across];
            value = g[outer * inner + across];
        }
    }
    if (first + W <= count)
        *reinterpret_cast<pack<U, W> *>(dx + first) = y;
    else
        for (int j = 0; j < W && first + j < count; j++)
            dx[first + j] = y.at[j];
}

/* Where many results are neighbours, a thread has one of them, and writes some of its elements. */
template <class U>
__global__ void __launch_bounds__(THREADS) to_columns(const U *__restrict__ g, const int64_t *__restrict__ places,
                                                      U *__restrict__ dx, unsigned inner, int reduced, int rows)
{
    const unsigned across = blockIdx.x * THREADS + threadIdx.x;
    const int first = static_cast<int>(blockIdx.y) * rows, end = min(reduced, first + rows);
    pc::wait_for_earlier();
    if (across >= inner)
        return;
    const long long result = static_cast<long long>(blockIdx.z) * inner + across;
    const int place = static_cast<int>(places[result]);
    const U value = g[result];
    U *to = dx + (static_cast<long long>(blockIdx.z) * reduced + first) * inner + across;
#pragma unroll 4
    for (int i = first; i < end; i++, to += inner)
        *to = i == place ? value : U(0);
}

/* True where they are neighbours enough to fill accesses. */
template <class U> bool launch_columns(const pc__cuda_max_places *b)
{
    constexpr int ROWS = 16, FEW = 128 /* bytes */, MOST = 65535 /* blocks along y and z */;
    const int64_t outer = b->count / (b->reduced * b->inner);
    if (b->inner * static_cast<int64_t>(sizeof(U)) < FEW || b->inner > INT32_MAX / 2 || outer > MOST ||
        b->reduced > MOST * static_cast<int64_t>(ROWS))
        return false;
    const dim3 blocks(static_cast<unsigned>((b->inner + THREADS - 1) / THREADS),
                      static_cast<unsigned>((b->reduced + ROWS - 1) / ROWS), static_cast<unsigned>(outer));
    (void)pc::start_grid(to_columns<U>, blocks, dim3(THREADS), 0, b->queue, b->early, static_cast<const U *>(b->g),
                         b->places, static_cast<U *>(b->dx), static_cast<unsigned>(b->inner),
                         static_cast<int>(b->reduced), ROWS);
    return true;
}

template <class U> void launch_places(const pc__cuda_max_places *b)
{
    if (launch_columns<U>(b))
        return;
    const long long threads = (b->count * static_cast<long long>(sizeof(U)) + 15) / 16;
    (void)pc::start(to_places<U>, static_cast<unsigned>((threads + THREADS - 1) / THREADS), THREADS, b->queue, b->early,
                    static_cast<const U *>(b->g), b->places, static_cast<U *>(b->dx), static_cast<long long>(b->count),
                    static_cast<long long>(b->reduced), static_cast<long long>(b->inner));
}

/* Where there is a NaN, the maximum is one. */
template <class M> __device__ __forceinline__ bool is_most(M x, M most)
{
    return x == most || x != x;
}

template <class T> __device__ __forceinline__ long long chosen(const T *x, pc::math<T> most, long long n)
{
    int mine = 0;
#pragma unroll 4
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        mine += is_most<pc::math<T>>(x[i], most);
    return mine;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    count(const T *__restrict__ x, const T *__restrict__ most, long long *counts, long long n, long long piece)
{
    const long long begin = blockIdx.x * piece;
    pc::wait_for_earlier();
    const long long mine = chosen<T>(x + begin, *most, min(piece, n - begin));
    const long long all = block_join<plus, THREADS>(mine, 0LL);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = all;
}

template <class T, int SIZE>
__global__ void __launch_bounds__(SIZE)
    share(const T *__restrict__ g, const T *__restrict__ x, const T *__restrict__ most, T *__restrict__ dx,
          const long long *counts, int parts, long long n, long long piece)
{
    typedef pc::math<T> M;
    const long long begin = blockIdx.x * piece, here = min(piece, n - begin);
    pc::wait_for_earlier();
    const M value = *most;
    long long mine = 0;
    for (int i = threadIdx.x; i < parts; i += SIZE)
        mine += counts[i];
    if (parts == 0)
        mine = chosen<T>(x, value, n);
    const T part = T(M(*g) / M(block_join<plus, SIZE>(mine, 0LL)));
    x += begin, dx += begin;
#pragma unroll 4
    for (long long i = threadIdx.x; i < here; i += SIZE)
        dx[i] = is_most<M>(x[i], value) ? part : T(M(0));
}

template <class T> void launch_shares(const pc__cuda_max_shares *b)
{
    const T *g = static_cast<const T *>(b->g), *x = static_cast<const T *>(b->x),
            *most = static_cast<const T *>(b->most);
    T *dx = static_cast<T *>(b->dx);
    const long long n = b->count, piece = b->piece;
    const unsigned parts = static_cast<unsigned>(b->parts);
    const long long *counts = b->counts;
    if (parts == 0)
        (void)pc::start(share<T, WIDE>, 1, WIDE, b->queue, b->early, g, x, most, dx, counts, 0, n, n);
    else if (pc::start(count<T>, parts, THREADS, b->queue, b->early, x, most, b->counts, n, piece) == cudaSuccess)
        (void)pc::start(share<T, THREADS>, parts, THREADS, b->queue, b->early, g, x, most, dx, counts, b->parts, n,
                        piece);
}

} // namespace

void pc__cuda_max_to_places(const pc__cuda_max_places *b)
{
    if (b->bytes == 2)
        launch_places<uint16_t>(b);
    else if (b->bytes == 4)
        launch_places<uint32_t>(b);
    else
        launch_places<unsigned long long>(b);
}

void pc__cuda_max_to_shares(const pc__cuda_max_shares *b)
{
    switch (b->dtype) {
    case PC__CUDA_F16:
        return launch_shares<pc::f16>(b);
    case PC__CUDA_BF16:
        return launch_shares<pc::bf16>(b);
    case PC__CUDA_F32:
        return launch_shares<float>(b);
    default:
        return launch_shares<double>(b);
    }
}
