/* loop.cuh: two kernels for everything that works element by element.
 *
 * Where all operands are dense, a thread takes one item, or two that become narrower, and there are as many blocks as that needs:
 * `flat`. Its parameters are the addresses; those of the other, which walks, are some 300 bytes, which each launch writes.
 *
 * Walking, a block takes tiles of 4 items per thread, a warp's accesses next to each other; with packs that is 64 bytes
 * per thread and operand under way before the first use, which is what it takes to fill the memory pipes. Costly functions
 * have 2 packs, slow ones of few elements 1 of these. There are more blocks than fit at once, so that the hardware evens out the load; only
 * beyond that limit do blocks loop. */
#ifndef PC__CUDA_LOOP_CUH
#define PC__CUDA_LOOP_CUH

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/pointwise/loop.h"

namespace pc
{

constexpr int AT_ONCE = 4; /* items of a thread at most */
constexpr int THREADS = 256;
constexpr int BLOCKS = 512; /* for each multiprocessor */

/* N neighbours, in one access. */
template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

/* Where U items of each of K operands begin, in elements. */
template <int K, int U> struct places {
    uint32_t at[K][U];
};

/* The items first, first + blockDim.x, ... Beyond the end it is the last one over and over: loads need no condition. */
template <int K, int U> __device__ __forceinline__ void locate(const pc__cuda_walk &w, uint32_t first, places<K, U> &p)
{
    uint32_t rest[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        rest[u] = min(first + u * blockDim.x, w.count - 1);
#pragma unroll
        for (int k = 0; k < K; k++)
            p.at[k][u] = 0;
    }
#pragma unroll 1
    for (int d = w.ndim - 1; d > 0; d--) {
        const pc__cuda_divisor shape = {w.shape[d], w.magic[d], w.shift[d]};
#pragma unroll
        for (int u = 0; u < U; u++) {
            const uint32_t outer = over(rest[u], shape), own = rest[u] - outer * shape.by;
#pragma unroll
            for (int k = 0; k < K; k++)
                p.at[k][u] += own * w.strides[k][d];
            rest[u] = outer;
        }
    }
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int k = 0; k < K; k++)
            p.at[k][u] += rest[u] * w.strides[k][0];
}

/* ODD: the walk may have operands that repeat an element or lie askew. Without the question all loads go out in one row. */
template <bool ODD, class T, int N, int U>
__device__ __forceinline__ void load(const pc__cuda_walk &w, int k, const uint32_t (&at)[U], pack<T, N> (&x)[U])
{
    const T *data = reinterpret_cast<const T *>(w.data[k]);
    if (ODD && (w.askew >> k & 1)) {
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int n = 0; n < N; n++)
                x[u].v[n] = data[at[u] + n];
        return;
    }
    if (ODD && (w.splat >> k & 1)) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            const T one = data[at[u]];
#pragma unroll
            for (int n = 0; n < N; n++)
                x[u].v[n] = one;
        }
        return;
    }
#pragma unroll
    for (int u = 0; u < U; u++)
        x[u] = *reinterpret_cast<const pack<T, N> *>(data + at[u]);
}

/* Element i of operand k, of what the packs leave over. */
template <class T> __device__ __forceinline__ T single(const pc__cuda_walk &w, int k, uint32_t i)
{
    return reinterpret_cast<const T *>(w.data[k])[w.splat >> k & 1 ? 0 : i];
}

/* What a function object says of itself: types of its result and its inputs, and how many there are. */
template <class O_, int INPUTS_, class A_ = char, class B_ = char, class C_ = char> struct shape_of {
    typedef O_ O;
    typedef A_ A;
    typedef B_ B;
    typedef C_ C;
    static constexpr int inputs = INPUTS_;
    static constexpr bool costly = false;     /* an element takes several instructions, one behind the other */
    static constexpr bool slow = false;       /* many */
    static constexpr bool parametric = false; /* it has a `number`, too */
    static constexpr int largest(int a, int b)
    {
        return a > b ? a : b;
    }
    static constexpr int widest = largest(largest(sizeof(O), sizeof(A)), largest(sizeof(B), sizeof(C)));
    static constexpr int pack = widest == 1 ? PC__CUDA_PACK : 16 / widest;
};

template <class F>
__device__ __forceinline__ typename F::O apply(const F &f, typename F::A a, typename F::B b, typename F::C c)
{
    if constexpr (F::inputs == 0)
        return f();
    else if constexpr (F::inputs == 1)
        return f(a);
    else if constexpr (F::inputs == 2)
        return f(a, b);
    else
        return f(a, b, c);
}

/* Items of a thread: fewer where each takes its time, for the time is that of a thread until large tensors fill the chip. */
template <class F, int N> constexpr int items_of = N > 1 && F::costly ? AT_ONCE / 2 : AT_ONCE;

/* U items of a thread, which begin there */
template <class F, int N, bool ODD, int U>
__device__ __forceinline__ void map_items(const pc__cuda_walk &w, const F &f, uint32_t first,
                                          const places<F::inputs + 1, U> &p)
{
    typedef typename F::O O;
    pack<typename F::A, N> a[U] = {};
    pack<typename F::B, N> b[U] = {};
    pack<typename F::C, N> c[U] = {};
    if constexpr (F::inputs > 0)
        load<ODD>(w, 1, p.at[1], a);
    if constexpr (F::inputs > 1)
        load<ODD>(w, 2, p.at[2], b);
    if constexpr (F::inputs > 2)
        load<ODD>(w, 3, p.at[3], c);
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * blockDim.x >= w.count)
            return; /* a division takes its time */
        pack<O, N> y;
#pragma unroll
        for (int n = 0; n < N; n++)
            y.v[n] = apply(f, a[u].v[n], b[u].v[n], c[u].v[n]);
        *reinterpret_cast<pack<O, N> *>(reinterpret_cast<O *>(w.data[0]) + p.at[0][u]) = y;
    }
}

/* out = f(in...) */
template <class F, int N, int U = items_of<F, N>>
__global__ void __launch_bounds__(THREADS) map(const __grid_constant__ pc__cuda_walk w, const F f)
{
    const uint32_t tile = U * blockDim.x;
    for (uint32_t base = blockIdx.x * tile; base < w.count; base += gridDim.x * tile) {
        places<F::inputs + 1, U> p;
        locate(w, base + threadIdx.x, p);
        wait_for_earlier(); /* the places do not depend on it; every block has an item, so all threads come here */
        if (F::inputs > 0 && N > 1 && (w.splat | w.askew))
            map_items<F, N, (F::inputs > 0 && N > 1)>(w, f, base + threadIdx.x, p);
        else
            map_items<F, N, false>(w, f, base + threadIdx.x, p);
    }
    if (N > 1 && blockIdx.x == 0 && threadIdx.x < w.tail) {
        const uint32_t i = w.count * N + threadIdx.x;
        typedef typename F::O O;
        typename F::A a = {};
        typename F::B b = {};
        typename F::C c = {};
        if constexpr (F::inputs > 0)
            a = single<typename F::A>(w, 1, i);
        if constexpr (F::inputs > 1)
            b = single<typename F::B>(w, 2, i);
        if constexpr (F::inputs > 2)
            c = single<typename F::C>(w, 3, i);
        reinterpret_cast<O *>(w.data[0])[i] = apply(f, a, b, c);
    }
}

/* Dense operands: `count` packs, and `tail` elements after them. */
template <class F> struct line {
    void *out;
    const void *in[F::inputs ? F::inputs : 1];
    uint32_t count, tail;
};

template <class T, int N> __device__ __forceinline__ pack<T, N> item(const void *data, uint32_t i)
{
    return static_cast<const pack<T, N> *>(data)[i];
}

/* Item i of packs of N */
template <class F, int N> __device__ __forceinline__ void flat_item(const line<F> &w, const F &f, uint32_t i)
{
    pack<typename F::A, N> a = {};
    pack<typename F::B, N> b = {};
    pack<typename F::C, N> c = {};
    if constexpr (F::inputs > 0)
        a = item<typename F::A, N>(w.in[0], i);
    if constexpr (F::inputs > 1)
        b = item<typename F::B, N>(w.in[1], i);
    if constexpr (F::inputs > 2)
        c = item<typename F::C, N>(w.in[2], i);
    pack<typename F::O, N> y;
#pragma unroll
    for (int n = 0; n < N; n++)
        y.v[n] = apply(f, a.v[n], b.v[n], c.v[n]);
    static_cast<pack<typename F::O, N> *>(w.out)[i] = y;
}

/* out = f(in...), dense; the threads after the last pack take an element of the tail each. A block has U packs for each thread. */
template <class F, int U> __global__ void __launch_bounds__(THREADS) flat(const __grid_constant__ line<F> w, const F f)
{
    wait_for_earlier();
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t i = (blockIdx.x * U + u) * blockDim.x + threadIdx.x;
        if (i < w.count)
            flat_item<F, F::pack>(w, f, i);
        else if (i - w.count < w.tail)
            flat_item<F, 1>(w, f, w.count * F::pack + (i - w.count));
    }
}

/* Small work goes in small blocks, to more multiprocessors. */
inline unsigned threads_for(uint32_t items, unsigned each, int multiprocessors)
{
    unsigned threads = THREADS;
    while (threads > 64 && items < threads * each * (unsigned)multiprocessors)
        threads /= 2;
    return threads;
}

inline unsigned blocks_for(uint32_t items, unsigned per_block, int multiprocessors)
{
    const unsigned all = (items + per_block - 1) / per_block, most = BLOCKS * (unsigned)multiprocessors;
    return all < most ? all : most;
}

inline void note(const pc__cuda_launch *l, cudaError_t status)
{
    if (status != cudaSuccess)
        *l->status = status;
}

template <class F> void run_flat(const pc__cuda_launch *l, F f)
{
    const pc__cuda_walk &w = l->walk;
    line<F> all;
    all.out = w.data[0];
    for (int k = 0; k < F::inputs; k++)
        all.in[k] = w.data[k + 1];
    all.count = w.count;
    all.tail = w.tail;
    const uint32_t items = w.count + w.tail;
    const unsigned threads = threads_for(items, 1, l->multiprocessors), one = (items + threads - 1) / threads;
    if constexpr (F::inputs == 1 && sizeof(typename F::O) < sizeof(typename F::A)) { /* stores are less than 16 bytes */
        if (one >= 8u * (unsigned)l->multiprocessors)
            return note(l, start(flat<F, 2>, (one + 1) / 2, threads, l->queue, l->early, all, f));
    }
    note(l, start(flat<F, 1>, one, threads, l->queue, l->early, all, f));
}

template <class F> void run(const pc__cuda_launch *l, F f)
{
    if (l->flat)
        return run_flat(l, f);
    auto kernel = l->packed ? map<F, F::pack> : map<F, 1>;
    unsigned each = l->packed ? items_of<F, F::pack> : items_of<F, 1>;
    if constexpr (F::slow)
        if (!l->packed && l->walk.count <= PC__CUDA_FEW_SLOW)
            kernel = map<F, 1, 1>, each = 1;
    const unsigned threads = threads_for(l->walk.count, each, l->multiprocessors);
    const unsigned blocks = blocks_for(l->walk.count, threads * each, l->multiprocessors);
    note(l, start(kernel, blocks, threads, l->queue, l->early, l->walk, f));
}

} // namespace pc

#endif
