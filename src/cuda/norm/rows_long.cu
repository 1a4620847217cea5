/* rows_long.cu: layer_norm, rms_norm and their gradients for rows of any length and place, which a block reads several times,
 * mostly from second-level memory; and the end of sums over rows. */
#include "cuda/norm/pack.cuh"
#include "cuda/norm/rows.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/row.cuh"

#define THREADS 512    /* of a row */
#define COLUMNS 32     /* of a block that adds up */
#define SIDE_BY_SIDE 8 /* rows of it at once, */
#define BLOCKS 32      /* or blocks' sums */

namespace
{

template <class T, class Y> __global__ void __launch_bounds__(THREADS) forward(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    __shared__ M room[2][THREADS / 32];
    const unsigned n = (unsigned)r.n;
    const long long row = blockIdx.x;
    const T *x = static_cast<const T *>(r.x) + row * n;
    Y *y = static_cast<Y *>(r.y) + row * n;
    M sum = 0, mean = 0, squares = 0;
    pc::wait_for_earlier();
    if (r.centered) {
        pc::each_in_row<4>(x, n, threadIdx.x, THREADS, [&](const auto &some, unsigned) {
            for (const T &number : some)
                sum += M(number);
        });
        mean = sum_over<THREADS>(sum, room[0]) / M(n);
    }
    pc::each_in_row<4>(x, n, threadIdx.x, THREADS, [&](const auto &some, unsigned) {
        for (const T &number : some)
            squares = fma(M(number) - mean, M(number) - mean, squares);
    });
    const M rstd = 1 / root_of(sum_over<THREADS>(squares, room[1]) / M(n) + M(r.eps));
    pc::each_in_row<4>(x, n, threadIdx.x, THREADS, [&](const auto &some, unsigned at) {
        constexpr int K = sizeof some / sizeof(T);
        vector<Y, K> result;
#pragma unroll
        for (int j = 0; j < K; j++) {
            const M weight = parameters<T, 1>(r.weight, at + j, 1).at[0],
                    bias = parameters<T, 1>(r.bias, at + j, 0).at[0];
            result.at[j] = Y(fma((M(some[j]) - mean) * rstd, weight, bias));
        }
        put_some<K>(y + at, result);
    });
    if (threadIdx.x == 0 && r.mean)
        static_cast<M *>(r.mean)[row] = mean;
    if (threadIdx.x == 0 && r.rstd)
        static_cast<M *>(r.rstd)[row] = rstd;
}

template <class T, class G> __global__ void __launch_bounds__(THREADS) backward(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    __shared__ M room[2][THREADS / 32];
    const unsigned n = (unsigned)r.n;
    const long long row = blockIdx.x;
    const T *x = static_cast<const T *>(r.x) + row * n;
    const G *g = static_cast<const G *>(r.dy) + row * n;
    T *dx = static_cast<T *>(r.dx) + row * n;
    M first = 0, second = 0;
    pc::wait_for_earlier();
    const M mean = r.mean ? static_cast<const M *>(r.mean)[row] : M(0), rstd = static_cast<const M *>(r.rstd)[row];
    pc::each_in_row<2>(x, n, threadIdx.x, THREADS, [&](const auto &some, unsigned at) {
        constexpr int K = sizeof some / sizeof(T);
        const vector<G, K> gradient = some_at<K>(g + at);
#pragma unroll
        for (int j = 0; j < K; j++) {
            const M weight = parameters<T, 1>(r.weight, at + j, 1).at[0], gw = M(gradient.at[j]) * weight;
            first = fma(M(gradient.at[j]), weight, first);
            second = fma(gw, (M(some[j]) - mean) * rstd, second);
        }
    });
    first = sum_over<THREADS>(first, room[0]) / M(n);
    second = sum_over<THREADS>(second, room[1]) / M(n);
    pc::each_in_row<2>(x, n, threadIdx.x, THREADS, [&](const auto &some, unsigned at) {
        constexpr int K = sizeof some / sizeof(T);
        const vector<G, K> gradient = some_at<K>(g + at);
        vector<T, K> result;
#pragma unroll
        for (int j = 0; j < K; j++) {
            const M weight = parameters<T, 1>(r.weight, at + j, 1).at[0], away = r.centered ? -first : M(0);
            result.at[j] = T(rstd * fma((mean - M(some[j])) * rstd, second, fma(M(gradient.at[j]), weight, away)));
        }
        put_some<K>(dx + at, result);
    });
}

/* Sums over some rows, each block's in a line of its own: threads are [SIDE_BY_SIDE][COLUMNS]. */
template <class T, class G> __global__ void __launch_bounds__(COLUMNS *SIDE_BY_SIDE) sum_rows(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    __shared__ M room[2][SIDE_BY_SIDE][COLUMNS];
    const long long column = (long long)blockIdx.x * COLUMNS + threadIdx.x, n = r.n;
    const long long length = (r.rows + r.blocks - 1) / r.blocks, begin = blockIdx.y * length;
    const long long end = begin + length < r.rows ? begin + length : r.rows;
    const T *x = static_cast<const T *>(r.x);
    const G *g = static_cast<const G *>(r.dy);
    M dweight = 0, dbias = 0;
    pc::wait_for_earlier();
    for (long long row = begin + threadIdx.y; row < end && column < n; row += SIDE_BY_SIDE) {
        const M mean = r.mean ? static_cast<const M *>(r.mean)[row] : M(0), rstd = static_cast<const M *>(r.rstd)[row];
        const M gradient = M(g[row * n + column]);
        dweight = fma(gradient, (M(x[row * n + column]) - mean) * rstd, dweight);
        dbias += gradient;
    }
    room[0][threadIdx.y][threadIdx.x] = dweight;
    room[1][threadIdx.y][threadIdx.x] = dbias;
    __syncthreads();
    if (threadIdx.y >= 2 || column >= n)
        return;
    M sum = 0;
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        sum += room[threadIdx.y][i][threadIdx.x];
    static_cast<M *>(r.sums)[(blockIdx.y * 2ll + threadIdx.y) * n + column] = sum;
}

/* The blocks' sums in order; of no rows, zeros. Threads are [BLOCKS][COLUMNS], then [COLUMNS][BLOCKS]. */
template <class T> __global__ void __launch_bounds__(COLUMNS *BLOCKS) add_up(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    __shared__ M room[BLOCKS][COLUMNS + 1];
    const long long first = (long long)blockIdx.x * COLUMNS, column = first + threadIdx.x, n = r.n;
    const M *sums = static_cast<const M *>(r.sums) + blockIdx.y * n;
    const pc__cuda_vector_gradient to = blockIdx.y ? r.dbias : r.dweight;
    M sum = 0;
    pc::wait_for_earlier();
    if (!to.at)
        return;
#pragma unroll 8
    for (long long block = threadIdx.y; r.rows && block < r.blocks && column < n; block += BLOCKS)
        sum += sums[block * 2 * n + column];
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = room[threadIdx.x][threadIdx.y];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x == 0 && first + threadIdx.y < n)
        put_gradient<T>(to, first + threadIdx.y, sum);
}

template <class T, class G> void launch_backward(const pc__cuda_norm_rows &r)
{
    const dim3 columns((unsigned)((r.n + COLUMNS - 1) / COLUMNS), (unsigned)r.blocks), block(COLUMNS, SIDE_BY_SIDE);
    const bool held = r.rows && pc__cuda_norm_held_backward(&r);
    if (r.rows && !held) {
        if (r.dx)
            (void)pc::start(backward<T, G>, (unsigned)r.rows, THREADS, r.queue, r.early, r);
        if (r.sums)
            (void)pc::start_grid(sum_rows<T, G>, columns, block, 0, r.queue, r.early, r);
    }
    if (r.sums && !(held && r.blocks == 1))
        (void)pc::start_grid(add_up<T>, dim3(columns.x, 2), dim3(COLUMNS, BLOCKS), 0, r.queue, r.early, r);
}

} // namespace

void pc__cuda_norm_forward(const pc__cuda_norm_rows *r)
{
    if (!pc__cuda_norm_held(r))
        with_both(*r, [&](auto x, auto y) {
            (void)pc::start(forward<decltype(x), decltype(y)>, (unsigned)r->rows, THREADS, r->queue, r->early, *r);
        });
}

int64_t pc__cuda_norm_blocks(const pc__cuda_norm_rows *r)
{
    const int64_t held = pc__cuda_norm_held_blocks(r), most = r->rows < 64 * 1 ? 1 : r->rows / 64;
    return held ? held : most < 64 ? most : 64;
}

void pc__cuda_norm_backward(const pc__cuda_norm_rows *r)
{
    with_both(*r, [&](auto x, auto y) { launch_backward<decltype(x), decltype(y)>(*r); });
}
