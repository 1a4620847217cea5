/* tiles.cuh: element by element where one input is dense along another dimension than the output. A block takes a tile of
 * 64 x 64 elements, or of 32 x 32 where those would be few, which goes by way of shared memory, so that a warp reads
 * neighbours along the one dimension and writes neighbours along the other; each thread has 16 elements of each input
 * under way, or 4. Narrow tensors have tiles that are as narrow, and longer. */
#ifndef PC__CUDA_TILES_CUH
#define PC__CUDA_TILES_CUH

#include "cuda/pointwise/loop.cuh"

namespace pc
{

/* Where the tile's first elements are: its place along `along` and along the last dimension, and each operand's. */
template <int K> struct corner {
    uint32_t top, left, at[K];
};

template <int TALL, int WIDE, int K> __device__ __forceinline__ corner<K> corner_of(const pc__cuda_walk &w, int along)
{
    const int last = w.ndim - 1;
    const uint32_t across = (w.shape[last] + WIDE - 1) / WIDE, down = (w.shape[along] + TALL - 1) / TALL;
    const uint32_t row = blockIdx.x / across;
    uint32_t rest = row / down;
    corner<K> c;
    c.left = (blockIdx.x - row * across) * WIDE;
    c.top = (row - rest * down) * TALL;
#pragma unroll
    for (int k = 0; k < K; k++)
        c.at[k] = c.top * w.strides[k][along] + c.left * w.strides[k][last];
#pragma unroll 1
    for (int d = last - 1; d >= 0; d--) {
        if (d == along)
            continue;
        const uint32_t outer = rest / w.shape[d], own = rest - outer * w.shape[d];
#pragma unroll
        for (int k = 0; k < K; k++)
            c.at[k] += own * w.strides[k][d];
        rest = outer;
    }
    return c;
}

/* out = f(in...), of which `turned` is dense along `along`, the output along the last dimension: a block has TALL along the
 * one and WIDE along the other. Loads beyond the end take the last element. */
template <int TALL, int WIDE, class F>
__global__ void __launch_bounds__(THREADS)
    tiles(const __grid_constant__ pc__cuda_walk w, int along, int turned, const F f)
{
    typedef typename F::A T;
    constexpr int K = F::inputs + 1, STEPS = TALL * WIDE / THREADS, IN = THREADS / TALL, OUT = THREADS / WIDE;
    __shared__ T tile[WIDE][TALL + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)]; /* a column lies in different banks */
    const int last = w.ndim - 1, x = threadIdx.x % WIDE, y = threadIdx.x / WIDE;
    const int in_x = threadIdx.x % TALL, in_y = threadIdx.x / TALL;
    const corner<K> c = corner_of<TALL, WIDE, K>(w, along);
    const int height = min(w.shape[along] - c.top, (uint32_t)TALL), width = min(w.shape[last] - c.left, (uint32_t)WIDE);
    const T *from = reinterpret_cast<const T *>(w.data[turned]) + c.at[turned == 2 ? K - 1 : 1] + min(in_x, height - 1);
    const uint32_t step = w.strides[turned][last];
    T own[STEPS], beside[F::inputs == 2 ? STEPS : 1];
    wait_for_earlier();
#pragma unroll
    for (int k = 0; k < STEPS; k++)
        own[k] = from[min(in_y + k * IN, width - 1) * step];
    if constexpr (F::inputs == 2) {
        const int other = 3 - turned;
        const uint32_t down = w.strides[other][along];
        const T *there = reinterpret_cast<const T *>(w.data[other]) + c.at[other == 2 ? 2 : 1] +
                         min(x, width - 1) * w.strides[other][last];
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            beside[k] = there[min(y + k * OUT, height - 1) * down];
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++)
        tile[in_y + k * IN][in_x] = own[k];
    __syncthreads();
    typename F::O *out = reinterpret_cast<typename F::O *>(w.data[0]) + c.at[0] + x;
    const uint32_t down = w.strides[0][along];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        const int row = y + k * OUT;
        const T value = tile[x][row];
        if (row >= height || x >= width)
            continue;
        if constexpr (F::inputs == 2)
            out[row * down] = turned == 1 ? f(value, beside[k]) : f(beside[k], value);
        else
            out[row * down] = f(value);
    }
}

template <int TALL, int WIDE, class F> void run_tiles_of(const pc__cuda_launch *l, int along, int turned, F f)
{
    const pc__cuda_walk &w = l->walk;
    const uint32_t height = w.shape[along], width = w.shape[w.ndim - 1];
    const uint32_t blocks = ((height + TALL - 1) / TALL) * ((width + WIDE - 1) / WIDE);
    note(l, start(tiles<TALL, WIDE, F>, w.count / height / width * blocks, THREADS, l->queue, l->early, w, along,
                  turned, f));
}

/* NARROW: narrow tensors have tiles of their own; functions have no kernels for these, there would be too many. */
template <bool NARROW, class F> void run_tiles(const pc__cuda_launch *l, int along, int turned, F f)
{
    enum { MANY = 1 << 20, SIDE = 32 };
    const pc__cuda_walk &w = l->walk;
    const uint32_t height = w.shape[along], width = w.shape[w.ndim - 1];
    if (w.count < MANY || (!NARROW && (width <= SIDE || height <= SIDE)))
        return run_tiles_of<SIDE, SIDE>(l, along, turned, f);
    if constexpr (NARROW) {
        if (width <= SIDE)
            return run_tiles_of<4 * SIDE, SIDE>(l, along, turned, f);
        if (height <= SIDE)
            return run_tiles_of<SIDE, 4 * SIDE>(l, along, turned, f);
    }
    run_tiles_of<2 * SIDE, 2 * SIDE>(l, along, turned, f);
}

} // namespace pc

#endif
