/* gemm.cu: the product without cuBLASLt: 64 x 64 of c to a block of 256 threads, 4 x 4 to a thread in registers, 16 of
 * k at a time through shared memory. Each operand is read along whichever dimension lies side by side in memory. It
 * stands in where the library is missing or takes no such shape; it is to be right, not fast. */
#include "cuda/matmul/gemm.h"

#include "cuda/shared/activations.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 256
#define TILE 64
#define DEPTH 16
#define ROW (TILE + 4) /* of a tile in shared memory: whole 16 bytes, and columns in different banks */
#define GRID_MOST 65535

namespace
{

/* An operand's part of a tile that a thread brings in: places (i, k), (i + down, k + deeper), ... of it. */
struct walk {
    int i, k, down, deeper;
};

__device__ inline walk walk_of(bool along_k)
{
    const int t = threadIdx.x;
    return along_k ? walk{t / DEPTH, t % DEPTH, THREADS / DEPTH, 0} : walk{t % TILE, t / TILE, 0, THREADS / TILE};
}

/* tile[k][i] = from[i * outer + k * inner] for `outers` x `inners` elements, the rest zero. */
template <class T>
__device__ inline void load(pc::math<T> (*tile)[ROW], walk w, const T *from, long long outer, long long inner,
                            long long outers, long long inners)
{
    from += w.i * outer + w.k * inner;
#pragma unroll
    for (int part = 0; part < TILE * DEPTH / THREADS; part++) {
        tile[w.k][w.i] = w.i < outers && w.k < inners ? pc::math<T>(*from) : pc::math<T>(0);
        from += w.down * outer + w.deeper * inner;
        w.i += w.down, w.k += w.deeper;
    }
}

template <class T> __device__ inline void product(const pc__cuda_gemm &g, long long batch, pc::math<T> (&sum)[4][4])
{
    __shared__ pc::math<T> left[DEPTH][ROW], right[DEPTH][ROW];
    const long long across = (g.n + TILE - 1) / TILE;
    const long long row = blockIdx.x / across * TILE, column = blockIdx.x % across * TILE;
    const T *a = (const T *)g.a + batch * g.a_batch + row * g.a_rs;
    const T *b = (const T *)g.b + batch * g.b_batch + column * g.b_cs;
    const walk at_a = walk_of(g.a_cs == 1), at_b = walk_of(g.b_rs == 1);
    const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
#pragma unroll 1
    for (long long k = 0; k < g.k; k += DEPTH) {
        load(left, at_a, a + k * g.a_cs, g.a_rs, g.a_cs, g.m - row, g.k - k);
        load(right, at_b, b + k * g.b_rs, g.b_cs, g.b_rs, g.n - column, g.k - k);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] += left[d][y + i] * right[d][x + j];
        __syncthreads();
    }
}

template <class T, class O> __global__ void __launch_bounds__(THREADS, 2) plain_kernel(const pc__cuda_gemm g)
{
    typedef pc::math<T> M;
    const long long across = (g.n + TILE - 1) / TILE;
    const long long row = blockIdx.x / across * TILE + threadIdx.x / 16 * 4;
    const long long column = blockIdx.x % across * TILE + threadIdx.x % 16 * 4;
#pragma unroll 1
    for (long long batch = blockIdx.y; batch < g.batch; batch += gridDim.y) {
        M sum[4][4] = {};
        product<T>(g, batch, sum);
        const long long pitch = g.pitch ? g.pitch : g.n;
        O *c = (O *)g.c + batch * g.m * pitch;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (row + i < g.m && column + j < g.n) {
                    const M bias = g.bias ? M(((const T *)g.bias)[column + j]) : M(0);
                    c[(row + i) * pitch + column + j] = O(activated(g.activation, sum[i][j] + bias));
                }
    }
}

/* W neighbours to a thread: an access. Rows of c are `pitch` apart, the first n elements of each have a bias. WHOLE: n, pitch and
 * places are multiples of W, so that neighbours have neighbours of the bias. */
template <class T, int W, bool WHOLE>
__global__ void __launch_bounds__(THREADS) finish_kernel(T *__restrict__ c, const T *__restrict__ bias, int activation,
                                                         long long count, long long n, long long pitch)
{
    typedef pc::math<T> M;
    struct alignas(W * sizeof(T)) pack {
        T at[W];
    };
    const long long i = ((long long)blockIdx.x * THREADS + threadIdx.x) * W;
    if (i >= count)
        return;
    long long column = bias ? i - quotient(i, pitch) * pitch : 0;
    pack y, b = {};
    if (i + W <= count) {
        y = *reinterpret_cast<const pack *>(c + i);
    } else {
#pragma unroll
        for (int j = 0; j < W; j++)
            y.at[j] = c[min(i + j, count - 1)];
    }
    if (WHOLE && bias && column < n)
        b = *reinterpret_cast<const pack *>(bias + column);
#pragma unroll
    for (int j = 0; j < W; j++) {
        const T some = WHOLE || !bias || column >= n ? b.at[j] : bias[column];
        y.at[j] = T(activated(activation, M(y.at[j]) + M(some)));
        column = column + 1 == pitch ? 0 : column + 1;
    }
    if (i + W <= count) {
        *reinterpret_cast<pack *>(c + i) = y;
        return;
    }
#pragma unroll
    for (int j = 0; j < W; j++)
        if (i + j < count)
            c[i + j] = y.at[j];
}

template <class T, class O = T> void plain(cudaStream_t queue, const pc__cuda_gemm *g)
{
    const int64_t tiles = (g->m + TILE - 1) / TILE * ((g->n + TILE - 1) / TILE);
    const dim3 grid((unsigned)tiles, (unsigned)(g->batch < GRID_MOST ? g->batch : GRID_MOST));
    plain_kernel<T, O><<<grid, THREADS, 0, queue>>>(*g);
}

template <class T, int W, bool WHOLE> void finish_by(cudaStream_t queue, const pc__cuda_gemm *g)
{
    const long long pitch = pc__cuda_gemm_row(g), count = g->batch * g->m * pitch, threads = (count + W - 1) / W;
    finish_kernel<T, W, WHOLE><<<(unsigned)((threads + THREADS - 1) / THREADS), THREADS, 0, queue>>>(
        (T *)g->c, (const T *)g->bias, g->activation, count, (long long)g->n, pitch);
}

template <class T> void finish(cudaStream_t queue, const pc__cuda_gemm *g)
{
    constexpr int W = 16 / sizeof(T);
    const bool aligned = (uintptr_t)g->c % 16 == 0;
    if (aligned && (uintptr_t)g->bias % 16 == 0 && g->n % W == 0 && pc__cuda_gemm_row(g) % W == 0)
        finish_by<T, W, true>(queue, g);
    else if (aligned)
        finish_by<T, W, false>(queue, g);
    else
        finish_by<T, 1, false>(queue, g);
}

} // namespace

void pc__cuda_gemm_plain(cudaStream_t queue, const pc__cuda_gemm *g)
{
    switch (g->dtype) {
    case PC__CUDA_F16:
        return g->wide ? plain<pc::f16, float>(queue, g) : plain<pc::f16>(queue, g);
    case PC__CUDA_BF16:
        return g->wide ? plain<pc::bf16, float>(queue, g) : plain<pc::bf16>(queue, g);
    case PC__CUDA_F32:
        return plain<float>(queue, g);
    default:
        return plain<double>(queue, g);
    }
}

void pc__cuda_gemm_finish(cudaStream_t queue, const pc__cuda_gemm *g)
{
    switch (g->dtype) {
    case PC__CUDA_F16:
        return finish<pc::f16>(queue, g);
    case PC__CUDA_BF16:
        return finish<pc::bf16>(queue, g);
    case PC__CUDA_F32:
        return finish<float>(queue, g);
    default:
        return finish<double>(queue, g);
    }
}
