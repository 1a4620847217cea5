/* channels_columns.cu: batch_norm of matrices of few rows and many columns in one kernel: a block has neighbouring columns, a warp
 * of it some rows, whose numbers its lanes keep in registers. */
#include "cuda/norm/channels.cuh"

namespace
{

constexpr int THREADS = PC__NORM_COLUMN_WARPS * 32, WARPS = PC__NORM_COLUMN_WARPS;

/* The sum for each column over the warps of the block, in all of them. */
template <class M> __device__ __forceinline__ M over_rows(M value, M (&room)[WARPS][32])
{
    room[threadIdx.x / 32][threadIdx.x % 32] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        value += room[w][threadIdx.x % 32];
    return value;
}

struct spot {
    long long channel, at; /* at: of the thread's first row */
    int row, rows;
};

__device__ __forceinline__ spot spot_of(const pc__cuda_channels &c)
{
    const long long channel = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    const int row = threadIdx.x / 32;
    return {channel, row * c.channels + channel, row, channel < c.channels ? (int)c.inner : 0};
}

template <class T, int EACH> __global__ void __launch_bounds__(THREADS) forward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ M room[2][WARPS][32];
    const spot s = spot_of(c);
    const long long step = WARPS * c.channels;
    const T *from = static_cast<const T *>(c.x) + s.at;
    M x[EACH], weight = 1, bias = 0, sum = 0;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++)
        x[k] = k * WARPS + s.row < s.rows ? M(from[k * step]) : M(0);
    if (s.rows) {
        weight = parameters<T, 1>(c.weight, s.channel, 1).at[0];
        bias = parameters<T, 1>(c.bias, s.channel, 0).at[0];
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        sum += x[k];
    const M mean = over_rows(sum, room[0]) / M(c.inner);
    sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        sum += k * WARPS + s.row < s.rows ? (x[k] - mean) * (x[k] - mean) : M(0);
    const M variance = over_rows(sum, room[1]) / M(c.inner), by = 1 / root_of(variance + M(c.eps)) * weight;
    if (s.rows && s.row == 0) {
        static_cast<M *>(c.found_mean)[s.channel] = mean;
        static_cast<M *>(c.found_variance)[s.channel] = variance;
    }
    T *to = static_cast<T *>(c.out) + s.at;
    const T *rest = c.rest ? static_cast<const T *>(c.rest) + s.at : NULL;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * WARPS + s.row < s.rows)
            to[k * step] = finished<T>(c, normalised(x[k] - mean, by, bias), rest ? M(rest[k * step]) : M(0));
}

template <class T, int EACH> __global__ void __launch_bounds__(THREADS) backward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ M room[2][WARPS][32];
    const spot s = spot_of(c);
    const long long step = WARPS * c.channels;
    const T *from = static_cast<const T *>(c.x) + s.at, *gradient = static_cast<const T *>(c.dy) + s.at;
    M off[EACH], g[EACH], mean = 0, rstd = 0, weight = 0, bias = 0, sum = 0, along = 0;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool there = k * WARPS + s.row < s.rows;
        off[k] = there ? M(from[k * step]) : M(0);
        g[k] = there ? M(gradient[k * step]) : M(0);
    }
    if (s.rows) {
        mean = parameters<T, 1>(c.mean, s.channel, 0).at[0];
        rstd = 1 / root_of(parameters<T, 1>(c.variance, s.channel, 0).at[0] + M(c.eps));
        weight = parameters<T, 1>(c.weight, s.channel, 1).at[0];
        bias = c.relu ? parameters<T, 1>(c.bias, s.channel, 0).at[0] : M(0);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        off[k] -= mean;
        if (c.relu && k * WARPS + s.row < s.rows)
            g[k] = masked(c, g[k], normalised(off[k], rstd * weight, bias));
        sum += g[k];
        along += g[k] * off[k];
    }
    sum = over_rows(sum, room[0]);
    along = over_rows(along, room[1]);
    if (s.rows && s.row == 0) {
        put_gradient<T>(c.dweight, s.channel, along * rstd);
        put_gradient<T>(c.dbias, s.channel, sum);
    }
    if (!c.out)
        return;
    const M by = rstd * weight, first = c.stored ? M(0) : by * (sum / M(c.inner)),
            second = c.stored ? M(0) : by * rstd * rstd * (along / M(c.inner));
    T *to = static_cast<T *>(c.out) + s.at;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * WARPS + s.row < s.rows)
            to[k * step] = T(g[k] * by - first - off[k] * second);
}

template <class T, int EACH> void launch(const pc__cuda_channels &c)
{
    const unsigned blocks = (unsigned)((c.channels + 31) / 32);
    if constexpr (EACH <= PC__NORM_COLUMN_ROWS_BOTH / WARPS) {
        if (c.backward) {
            (void)pc::start(backward<T, EACH>, blocks, THREADS, c.queue, c.early, c);
            return;
        }
    }
    if constexpr (EACH <= PC__NORM_COLUMN_ROWS_BOTH / WARPS || sizeof(T) < sizeof(double))
        (void)pc::start(forward<T, EACH>, blocks, THREADS, c.queue, c.early, c);
}

} // namespace

void pc__cuda_channel_columns(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        constexpr int MOST = PC__NORM_COLUMN_ROWS / WARPS;
        if (c->inner <= MOST / 8 * WARPS)
            launch<T, MOST / 8>(*c);
        else if (c->inner <= MOST / 4 * WARPS)
            launch<T, MOST / 4>(*c);
        else if (c->inner <= MOST / 2 * WARPS)
            launch<T, MOST / 2>(*c);
        else
            launch<T, MOST>(*c);
    });
}
