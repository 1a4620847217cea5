/* rows_backward_warps.cu: gradients of layer_norm and rms_norm for whole rows of up to 1024 numbers of float32, a warp each: no
 * row waits for another one, and enough warps are there to have their loads under way. Sums over rows stay in registers, and
 * warps of a block join theirs in the end. A gradient that dx is added to, and dx in 16 bits, go with it.
 *
 * Compiled without contractions (cmake/Cuda.cmake), as what is added has the bits of an addition of its own. */
#include "cuda/norm/pack.cuh"
#include "cuda/norm/rows.h"
#include "cuda/shared/dependent_launch.cuh"

#define MULTIPROCESSORS 132
#define W 4 /* numbers of a pack */
#define LANES 32
#define FEW 2 /* rows that have a block's threads for themselves sooner, one after the other */

namespace
{

/* Blocks of a multiprocessor at once, and their warps, which have N packs of a row a lane: as many as registers allow. */
template <int N> constexpr int blocks_of = N == 1 ? 4 : N == 2 ? 3 : N == 4 ? 2 : 1;
template <int N> constexpr int warps_of = N == 6 ? 12 : 8;

/* The block's sums of a column, the warps' in order; to NULL they are not wanted. */
template <int N> __device__ __forceinline__ void join(const numbers<float, W> (&own)[N], float *room, float *to, int n)
{
    if (!to)
        return;
    constexpr int LINE = N * LANES * W, WARPS = warps_of<N>;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
#pragma unroll
    for (int i = 0; i < N; i++)
        put<float, W>(room, warp * LINE + (i * LANES + lane) * W, own[i]);
    __syncthreads();
    for (int column = threadIdx.x; column < n; column += WARPS * LANES) {
        float sum = room[column];
#pragma unroll
        for (int i = 1; i < WARPS; i++)
            sum += room[i * LINE + column];
        to[column] = sum;
    }
    __syncthreads();
}

/* With x' = (x - mean) rstd: dx = rstd (g w - mean(g w) - x' mean(g w x')). */
template <class G, int N>
__global__ void __launch_bounds__(warps_of<N> *LANES, blocks_of<N>) warps(const __grid_constant__ pc__cuda_norm_rows r)
{
    constexpr int WARPS = warps_of<N>;
    __shared__ alignas(16) float weight[N * LANES * W], room[WARPS * N * LANES * W];
    const int lane = threadIdx.x % LANES, n = (int)r.n;
    const long long step = (long long)gridDim.x * WARPS;
    numbers<float, W> dweight[N] = {}, dbias[N] = {};
    pc::wait_for_earlier();
    for (int i = threadIdx.x; i < N * LANES * W; i += WARPS * LANES)
        weight[i] = i >= n ? 0.0f : r.weight.at ? static_cast<const float *>(r.weight.at)[i] : 1.0f;
    __syncthreads();
#pragma unroll 1
    for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / LANES; row < r.rows; row += step) {
        vector<float, W> x[N], added[N];
        vector<G, W> g[N];
        const float mean = r.mean ? static_cast<const float *>(r.mean)[row] : 0.0f;
        const float rstd = static_cast<const float *>(r.rstd)[row];
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int at = (i * LANES + lane) * W;
            x[i] = {}, g[i] = {}, added[i] = {};
            if (at < n) {
                x[i] = raw_at<float, W>(r.x, row * n + at);
                g[i] = raw_at<G, W>(r.dy, row * n + at);
            }
        }
        if (r.added)
#pragma unroll
            for (int i = 0; i < N; i++)
                if ((i * LANES + lane) * W < n)
                    added[i] = raw_at<float, W>(r.added, row * n + (i * LANES + lane) * W);
        float first = 0, second = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const numbers<float, W> w = taken<float, W>(raw_at<float, W>(weight, (i * LANES + lane) * W));
            const numbers<float, W> gradient = taken<G, W>(g[i]);
#pragma unroll
            for (int j = 0; j < W; j++) {
                const float off = (x[i].at[j] - mean) * rstd, gw = gradient.at[j] * w.at[j];
                first = fma(gradient.at[j], w.at[j], first);
                second = fma(gw, off, second);
                dweight[i].at[j] = fma(gradient.at[j], off, dweight[i].at[j]);
                dbias[i].at[j] += gradient.at[j];
            }
        }
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            first += __shfl_xor_sync(0xffffffffu, first, distance);
            second += __shfl_xor_sync(0xffffffffu, second, distance);
        }
        first = r.centered ? first / float(n) : 0.0f, second /= float(n);
        if (!r.dx)
            continue;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int at = (i * LANES + lane) * W;
            if (at >= n)
                continue;
            const numbers<float, W> w = taken<float, W>(raw_at<float, W>(weight, at)), gradient = taken<G, W>(g[i]);
            numbers<float, W> dx;
#pragma unroll
            for (int j = 0; j < W; j++) {
                dx.at[j] = rstd * fma((mean - x[i].at[j]) * rstd, second, fma(gradient.at[j], w.at[j], -first));
                dx.at[j] = r.added ? dx.at[j] + added[i].at[j] : dx.at[j];
            }
            put<float, W>(r.dx, row * n + at, dx);
            if constexpr (sizeof(G) == 2)
                if (r.rounded)
                    put<G, W>(r.rounded, row * n + at, dx);
        }
    }
    if (!r.sums)
        return;
    float *sums = static_cast<float *>(r.sums) + (long long)blockIdx.x * 2 * n;
    join<N>(dweight, room, gridDim.x > 1 ? sums : static_cast<float *>(r.dweight.at), n);
    join<N>(dbias, room, gridDim.x > 1 ? sums + n : static_cast<float *>(r.dbias.at), n);
}

template <class G, int N> int64_t run(const pc__cuda_norm_rows &r, bool launch)
{
    constexpr int WARPS = warps_of<N>;
    const int64_t all = (r.rows + WARPS - 1) / WARPS, most = (int64_t)blocks_of<N> * MULTIPROCESSORS;
    const int64_t blocks = all < most ? all : most;
    if (launch && blocks)
        (void)pc::start(warps<G, N>, (unsigned)blocks, WARPS * LANES, r.queue, r.early, r);
    return blocks > 1 ? blocks : 1;
}

template <class G> int64_t run_length(const pc__cuda_norm_rows &r, bool launch)
{
    const int64_t packs = (r.n + LANES * W - 1) / (LANES * W);
    if (packs <= 1)
        return run<G, 1>(r, launch);
    if (packs <= 2)
        return run<G, 2>(r, launch);
    if (packs <= 4)
        return run<G, 4>(r, launch);
    if (packs <= 6)
        return run<G, 6>(r, launch);
    return packs <= 8 ? run<G, 8>(r, launch) : 0;
}

int64_t run_any(const pc__cuda_norm_rows *r, bool launch)
{
    const bool alone = r->rows <= FEW && !r->added && !r->rounded;
    if (r->dtype != PC__CUDA_F32 || !r->whole || alone)
        return 0;
    switch (r->dtype_y) {
    case PC__CUDA_F16:
        return run_length<pc::f16>(*r, launch);
    case PC__CUDA_BF16:
        return run_length<pc::bf16>(*r, launch);
    default:
        return run_length<float>(*r, launch);
    }
}

} // namespace

bool pc__cuda_norm_warps_backward(const pc__cuda_norm_rows *r)
{
    return run_any(r, true) > 0;
}

int64_t pc__cuda_norm_warps_blocks(const pc__cuda_norm_rows *r)
{
    return run_any(r, false);
}
