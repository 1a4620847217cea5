/* rows.cu: layer_norm and rms_norm of rows up to 32 KB (of 4096 elements where they are no whole 16 bytes, of 8192 in pairs of
 * 16 bits), which are read once and kept in registers, by a warp or a block: the kernel takes as long as reading and writing does. */
#include "cuda/norm/pack.cuh"
#include "cuda/norm/rows.h"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int MANY_ROWS = 2112; /* a block for each of 132 multiprocessors */
constexpr int FEW_ROWS = 528;   /* which do not fill a GPU with warps */

/* Those of a lane's packs. */
template <class T, int LANES, class M, int N, int W>
__device__ __forceinline__ void take_parameters(const pc__cuda_norm_rows &r, int lane, numbers<M, W> (&weight)[N],
                                                numbers<M, W> (&bias)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int first = (i * LANES + lane) * W;
        if (first < (int)r.n)
            weight[i] = parameters<T, W>(r.weight, first, 1), bias[i] = parameters<T, W>(r.bias, first, 0);
    }
}

/* Rows [n] of `lanes` threads, N packs of W numbers each; a block has several rows where these have a warp, which has ROWS of them one
 * after the other. ADDS: something is added to x first. */
template <class T, class Y, bool ADDS, int LANES, int N, int W, int ROWS>
__global__ void __launch_bounds__(LANES == 32 ? 128 : LANES) held(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    __shared__ M room[2][LANES / 32 * (LANES == 32 ? 4 : 1)];
    const int lane = threadIdx.x % LANES, n = (int)r.n;
    numbers<M, W> weight[N], bias[N];
    pc::wait_for_earlier();
    constexpr bool FIRST = ROWS > 1 || N == 1; /* else they would take registers while x is on its way */
    if constexpr (FIRST)
        take_parameters<T, LANES>(r, lane, weight, bias);
#pragma unroll 1
    for (int k = 0; k < ROWS; k++) {
        const long long own = ((long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES) * ROWS + k;
        const long long row = own < r.rows ? own : r.rows - 1; /* beyond the end: the last one again, for nothing */
        const T *x = static_cast<const T *>(r.x) + row * n;
        numbers<M, W> in[N];
        vector<Y, W> added[ADDS ? N : 1];
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int first = (i * LANES + lane) * W;
            vector<T, W> raw = {};
            if (first < n)
                raw = raw_at<T, W>(x, first);
            in[i] = taken<T, W>(raw);
            if constexpr (ADDS) {
                added[i] = {};
                if (first < n)
                    added[i] = raw_at<Y, W>(r.added, row * n + first);
            }
        }
        if constexpr (ADDS) {
#pragma unroll
            for (int i = 0; i < N; i++) {
                const numbers<M, W> more = taken<Y, W>(added[i]);
#pragma unroll
                for (int j = 0; j < W; j++)
                    in[i].at[j] += more.at[j];
                if ((i * LANES + lane) * W < n && own < r.rows)
                    put<T, W>(r.sum, row * n + (i * LANES + lane) * W, in[i]);
            }
        }
        M sum = 0, mean = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < N * W; i++)
            sum += in[i / W].at[i % W]; /* zeros beyond the end */
        if (r.centered)
            mean = sum_over<LANES>(sum, room[0]) / M(n);
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int j = 0; j < W; j++) {
                in[i].at[j] -= mean;
                if ((i * LANES + lane) * W < n)
                    squares = fma(in[i].at[j], in[i].at[j], squares);
            }
        const M rstd = 1 / root_of(sum_over<LANES>(squares, room[1]) / M(n) + M(r.eps));
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int first = (i * LANES + lane) * W;
            if (first >= n || own >= r.rows)
                continue;
            if constexpr (!FIRST)
                weight[i] = parameters<T, W>(r.weight, first, 1), bias[i] = parameters<T, W>(r.bias, first, 0);
#pragma unroll
            for (int j = 0; j < W; j++)
                in[i].at[j] = fma(in[i].at[j] * rstd, weight[i].at[j], bias[i].at[j]);
            put<Y, W>(r.y, row * n + first, in[i]);
        }
        if (lane == 0 && own < r.rows && r.mean)
            static_cast<M *>(r.mean)[row] = mean;
        if (lane == 0 && own < r.rows && r.rstd)
            static_cast<M *>(r.rstd)[row] = rstd;
    }
}

template <class T, class Y, int LANES, int N, int W, int ROWS = 1> bool launch(const pc__cuda_norm_rows &r)
{
    const int warps = LANES == 32 ? 4 : 1;
    const int64_t together = warps * ROWS;
    const unsigned blocks = (unsigned)((r.rows + together - 1) / together);
    if constexpr (sizeof(T) == 4 && W > 1)
        if (r.added) {
            (void)pc::start(held<T, Y, true, LANES, N, W, ROWS>, blocks, LANES * warps, r.queue, r.early, r);
            return true;
        }
    (void)pc::start(held<T, Y, false, LANES, N, W, ROWS>, blocks, LANES * warps, r.queue, r.early, r);
    return true;
}

template <class T, class Y> bool launch_singles(const pc__cuda_norm_rows &r)
{
    if (r.n <= 32)
        return launch<T, Y, 32, 1, 1>(r);
    if (r.n <= 256)
        return launch<T, Y, 32, 8, 1>(r);
    if (r.n <= 512 && r.rows < FEW_ROWS)
        return launch<T, Y, 256, 2, 1>(r);
    if (r.n <= 512) /* of many rows, whose parameters are half of what is read: these once for some rows */
        return r.rows < MANY_ROWS ? launch<T, Y, 32, 16, 1>(r) : launch<T, Y, 32, 16, 1, 4>(r);
    if (r.n <= 2048)
        return launch<T, Y, 256, 8, 1>(r);
    if (r.n <= 4096)
        return launch<T, Y, 256, 16, 1>(r);
    if constexpr (sizeof(T) == 2)
        return r.pairs && r.n <= 8192 && launch<T, Y, 512, 8, 2>(r);
    return false;
}

template <class T, class Y> bool launch_whole(const pc__cuda_norm_rows &r)
{
    constexpr int W = 16 / sizeof(T);
    const int64_t packs = r.n / W;
    if (packs <= 32)
        return launch<T, Y, 32, 1, W>(r);
    if (packs > 64 && packs <= 256 && r.rows < FEW_ROWS)
        return launch<T, Y, 256, 1, W>(r);
    if (packs <= 128)
        return launch<T, Y, 32, 4, W>(r);
    if constexpr (sizeof(T) == 4) { /* of 8 numbers as many are under way in half of the packs */
        if (packs <= 192)
            return launch<T, Y, 32, 6, W>(r);
        if (packs <= 256)
            return launch<T, Y, 32, 8, W>(r);
    }
    if (packs <= 256)
        return launch<T, Y, 256, 1, W>(r);
    if (packs <= 512)
        return launch<T, Y, 256, 2, W>(r);
    if (packs <= 1024)
        return launch<T, Y, 256, 4, W>(r);
    return packs <= 2048 && launch<T, Y, 512, 4, W>(r);
}

} // namespace

bool pc__cuda_norm_held(const pc__cuda_norm_rows *r)
{
    bool done = false;
    with_both(*r, [&](auto x, auto y) {
        typedef decltype(x) T;
        typedef decltype(y) Y;
        done = r->whole ? launch_whole<T, Y>(*r) : launch_singles<T, Y>(*r);
    });
    return done;
}
