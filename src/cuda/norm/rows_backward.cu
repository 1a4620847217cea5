/* rows_backward.cu: gradients of layer_norm and rms_norm for rows that are kept in registers. Blocks go through rows and keep
 * sums of them, for the gradients of weight and bias, so that all is read once; the next row is on its way meanwhile. */
#include "cuda/norm/pack.cuh"
#include "cuda/norm/rows.h"
#include "cuda/shared/dependent_launch.cuh"

#define MULTIPROCESSORS 132
#define FEW 2 /* turns of one block that take less time than a second kernel, which adds blocks' sums */

namespace
{

template <int LANES> constexpr int threads_of = LANES < 256 ? 256 : LANES;

/* Of a multiprocessor at once: what is under way to them covers how long memory takes. */
template <class T, int LANES, int N>
constexpr int blocks_of = LANES > 256 || N > 1 || sizeof(T) == 8 ? 1
                          : sizeof(T) == 2                       ? 3
                                                                 : 4;

/* N packs of a row, and of its gradient. */
template <class T, class G, int N, int W> struct loaded {
    vector<T, W> x[N];
    vector<G, W> g[N];
    pc::math<T> mean, rstd;
};

template <class T, class G, int LANES, int N, int W>
__device__ __forceinline__ void load(loaded<T, G, N, W> &to, const pc__cuda_norm_rows &r, long long row, int lane)
{
    const int n = (int)r.n;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int first = (i * LANES + lane) * W;
        if (row < r.rows && first < n) {
            to.x[i] = raw_at<T, W>(r.x, row * n + first);
            to.g[i] = raw_at<G, W>(r.dy, row * n + first);
        } else {
            to.x[i] = {}, to.g[i] = {};
        }
    }
    to.mean = row < r.rows && r.mean ? static_cast<const pc::math<T> *>(r.mean)[row] : pc::math<T>(0);
    to.rstd = row < r.rows ? static_cast<const pc::math<T> *>(r.rstd)[row] : pc::math<T>(0);
}

/* Two sums over LANES neighbouring threads, with one stop; the room is for one use in turn with another. */
template <int LANES, class M> __device__ __forceinline__ void sum_both(M &a, M &b, M (*room)[2])
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        a += __shfl_xor_sync(0xffffffffu, a, distance);
        b += __shfl_xor_sync(0xffffffffu, b, distance);
    }
    if (LANES == 32)
        return;
    constexpr int warps = LANES / 32;
    const int warp = threadIdx.x / 32, first = warp / warps * warps;
    if (threadIdx.x % 32 == 0)
        room[warp][0] = a, room[warp][1] = b;
    __syncthreads();
    a = b = 0;
#pragma unroll
    for (int i = 0; i < warps; i++)
        a += room[first + i][0], b += room[first + i][1];
}

/* Groups of a block that have a row add their sums to the first one's, in order. */
template <int LANES, int N, int W, class M>
__device__ __forceinline__ void join_groups(numbers<M, W> (&sums)[N], M *room, int group, int lane, long long rows)
{
    constexpr int groups = threads_of<LANES> / LANES;
#pragma unroll 1
    for (int k = 1; k < groups && k < rows; k++) {
        if (group == k)
#pragma unroll
            for (int i = 0; i < N * W; i++)
                room[i * LANES + lane] = sums[i / W].at[i % W];
        __syncthreads();
        if (group == 0)
#pragma unroll
            for (int i = 0; i < N * W; i++)
                sums[i / W].at[i % W] += room[i * LANES + lane];
        __syncthreads();
    }
}

/* Sums with products are fma by name: a compiler's own choice would differ between dtypes of the gradient.
 * With x' = (x - mean) rstd: dx = rstd (g w - mean(g w) - x' mean(g w x')). */
template <class T, class G, int LANES, int N, int W>
__global__ void __launch_bounds__(threads_of<LANES>, blocks_of<T, LANES, N>) held(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    constexpr int groups = threads_of<LANES> / LANES;
    __shared__ M between[2][threads_of<LANES> / 32][2], room[groups > 1 ? LANES * N * W : 1];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, n = (int)r.n;
    const long long step = (long long)gridDim.x * groups;
    long long row = (long long)blockIdx.x * groups + group;
    numbers<M, W> weight[N], dweight[N] = {}, dbias[N] = {};
    loaded<T, G, N, W> next;
    pc::wait_for_earlier();
    load<T, G, LANES, N, W>(next, r, row, lane);
#pragma unroll
    for (int i = 0; i < N; i++)
        weight[i] =
            (i * LANES + lane) * W < n ? parameters<T, W>(r.weight, (i * LANES + lane) * W, 1) : numbers<M, W>{};
    const int turns = (int)((r.rows + step - 1) / step);
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++, row += step) {
        const loaded<T, G, N, W> now = next;
        const bool there = row < r.rows;
        const M mean = now.mean, rstd = now.rstd;
        if (turn + 1 < turns)
            load<T, G, LANES, N, W>(next, r, row + step, lane);
        M first = 0, second = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const numbers<M, W> x = taken<T, W>(now.x[i]), g = taken<G, W>(now.g[i]);
#pragma unroll
            for (int j = 0; j < W; j++) {
                const M off = (x.at[j] - mean) * rstd, gw = g.at[j] * weight[i].at[j];
                first = fma(g.at[j], weight[i].at[j], first);
                second = fma(gw, off, second);
                dweight[i].at[j] = fma(g.at[j], off, dweight[i].at[j]);
                dbias[i].at[j] += g.at[j];
            }
        }
        sum_both<LANES>(first, second, between[turn % 2]);
        first = r.centered ? first / M(n) : M(0), second /= M(n);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (!r.dx || !there || (i * LANES + lane) * W >= n)
                continue;
            const numbers<M, W> x = taken<T, W>(now.x[i]), g = taken<G, W>(now.g[i]);
            numbers<M, W> dx;
#pragma unroll
            for (int j = 0; j < W; j++)
                dx.at[j] = rstd * fma((mean - x.at[j]) * rstd, second, fma(g.at[j], weight[i].at[j], -first));
            put<T, W>(r.dx, row * n + (i * LANES + lane) * W, dx);
        }
    }
    if (!r.sums)
        return;
    const long long rows = r.rows - (long long)blockIdx.x * groups;
    join_groups<LANES, N, W>(dweight, room, group, lane, rows);
    join_groups<LANES, N, W>(dbias, room, group, lane, rows);
    M *sums = static_cast<M *>(r.sums) + (long long)blockIdx.x * 2 * n;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j < W; j++) {
            const int place = (i * LANES + lane) * W + j;
            if (group != 0 || place >= n)
                continue;
            if (gridDim.x > 1)
                sums[place] = dweight[i].at[j], sums[n + place] = dbias[i].at[j];
            else
                put_gradient<T>(r.dweight, place, dweight[i].at[j]), put_gradient<T>(r.dbias, place, dbias[i].at[j]);
        }
}

template <class T, class G, int LANES, int N, int W> int64_t run(const pc__cuda_norm_rows &r, bool launch)
{
    const int64_t groups = threads_of<LANES> / LANES, all = (r.rows + groups - 1) / groups;
    constexpr int64_t most = (blocks_of<T, LANES, N> == 4 ? 4 : 3) * MULTIPROCESSORS;
    const int64_t blocks = all <= FEW ? all > 0 : all < most ? all : most;
    if (launch && blocks)
        (void)pc::start(held<T, G, LANES, N, W>, (unsigned)blocks, threads_of<LANES>, r.queue, r.early, r);
    return blocks > 1 ? blocks : 1;
}

template <class T, class G> int64_t run_singles(const pc__cuda_norm_rows &r, bool launch)
{
    if (r.n <= 32)
        return run<T, G, 32, 1, 1>(r, launch);
    if (r.n <= 256)
        return run<T, G, 32, 8, 1>(r, launch);
    if (r.n <= 512 && r.rows <= FEW)
        return run<T, G, 256, 2, 1>(r, launch);
    if (r.n <= 1024)
        return run<T, G, 128, 8, 1>(r, launch);
    return r.n <= 4096 ? run<T, G, 512, 8, 1>(r, launch) : 0;
}

template <class T, class G> int64_t run_whole(const pc__cuda_norm_rows &r, bool launch)
{
    constexpr int W = 16 / sizeof(T);
    const int64_t packs = r.n / W;
    if (packs <= 32)
        return run<T, G, 32, 1, W>(r, launch);
    if (packs <= 64)
        return run<T, G, 64, 1, W>(r, launch);
    if (packs <= 128)
        return run<T, G, 128, 1, W>(r, launch);
    if (packs <= 256)
        return run<T, G, 256, 1, W>(r, launch);
    if (packs <= 512)
        return run<T, G, 512, 1, W>(r, launch);
    return packs <= 1024 ? run<T, G, 512, 2, W>(r, launch) : 0;
}

int64_t run_any(const pc__cuda_norm_rows *r, bool launch)
{
    int64_t blocks = 0;
    with_both(*r, [&](auto x, auto y) {
        typedef decltype(x) T;
        typedef decltype(y) G;
        blocks = r->whole ? run_whole<T, G>(*r, launch) : run_singles<T, G>(*r, launch);
    });
    return blocks;
}

} // namespace

bool pc__cuda_norm_held_backward(const pc__cuda_norm_rows *r)
{
    return pc__cuda_norm_warps_backward(r) || run_any(r, true) > 0;
}

int64_t pc__cuda_norm_held_blocks(const pc__cuda_norm_rows *r)
{
    const int64_t blocks = pc__cuda_norm_warps_blocks(r);
    return blocks ? blocks : run_any(r, false);
}
