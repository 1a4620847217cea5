/* channels.cuh: what a block has of x: some numbers of one channel, or rows of neighbouring channels. */
#ifndef PC__CUDA_NORM_CHANNELS_CUH
#define PC__CUDA_NORM_CHANNELS_CUH

#include "cuda/norm/channels.h"
#include "cuda/norm/pack.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/row.cuh"

namespace
{

template <class M>
__device__ __forceinline__ M &coefficient(const pc__cuda_channels &c, long long own, int k, long long channel)
{
    return static_cast<M *>(c.coefficients)[(own * PC__NORM_COEFFICIENTS + k) * c.channels + channel];
}

/* 1 / sqrt(x). In float32 by the special function units and a step of Newton's method, without the branches that a root and a
 * division have, and as exact. */
__device__ __forceinline__ float inverse_root_of(float x)
{
    const float near = rsqrtf(x), exact = fmaf(0.5f * near, fmaf(-x * near, near, 1.0f), near);
    return exact == exact ? exact : near; /* of 0 and infinity */
}

__device__ __forceinline__ double inverse_root_of(double x)
{
    return 1 / root_of(x);
}

template <class T> __device__ __forceinline__ pc::math<T> rstd_of(const pc__cuda_channels &c, long long i)
{
    return inverse_root_of(parameters<T, 1>(c.variance, i, 0).at[0] + pc::math<T>(c.eps));
}

/* In both directions the same bits, for a gradient goes by whether it is above 0. */
__device__ __forceinline__ float normalised(float off, float by, float bias)
{
    return fmaf(off, by, bias);
}

__device__ __forceinline__ double normalised(double off, double by, double bias)
{
    return fma(off, by, bias);
}

/* y with what follows it. */
template <class T> __device__ __forceinline__ T finished(const pc__cuda_channels &c, pc::math<T> y, pc::math<T> rest)
{
    typedef pc::math<T> M;
    if (c.rest)
        y = M(T(y)) + rest;
    if (c.relu)
        y = y <= 0 ? M(0) : y >= M(c.bound) ? M(c.bound) : y;
    return T(y);
}

/* The gradient in front of a ReLU. */
template <class M> __device__ __forceinline__ M masked(const pc__cuda_channels &c, M g, M y)
{
    return y <= M(c.least) || y >= M(c.most) ? M(0) : g;
}

/* What y = (x - mean) by + bias of a channel goes by, where a gradient asks for it. */
template <class M> struct line {
    M mean, by, bias;
};

template <class T>
__device__ __forceinline__ line<pc::math<T>> line_of(const pc__cuda_channels &c, long long own, long long channel)
{
    const long long i = own * c.groups + channel / (c.channels / c.groups);
    line<pc::math<T>> l = {parameters<T, 1>(c.mean, i, 0).at[0], 0, 0};
    if (c.relu) {
        l.by = rstd_of<T>(c, i) * parameters<T, 1>(c.weight, channel / c.spread, 1).at[0];
        l.bias = parameters<T, 1>(c.bias, channel / c.spread, 0).at[0];
    }
    return l;
}

/* A piece of a plane, [begin, begin + n), for c.lanes threads. */
struct plane {
    long long begin, part, own, channel;
    unsigned n, lane;
};

__device__ __forceinline__ bool plane_of(const pc__cuda_channels &c, plane &p)
{
    const long long together = PC__NORM_THREADS / c.lanes;
    const long long i = blockIdx.x * together + threadIdx.x / c.lanes, batch = i / c.channels / c.pieces;
    const long long piece = i / c.channels % c.pieces, from = piece * c.length;
    p.channel = i % c.channels;
    p.begin = (batch * c.channels + p.channel) * c.inner + from;
    p.n = (unsigned)(c.inner - from < c.length ? c.inner - from : c.length);
    p.part = i;
    p.own = c.own > 1 ? batch : 0;
    p.lane = threadIdx.x % c.lanes;
    return batch < c.batches;
}

/* W numbers of a row for a thread, FOLDED or not. */
template <int W, bool FOLDED> struct access {
    static constexpr int width = W;
    static constexpr bool folded = FOLDED;
};

/* Rows of W channels for a thread: every `step`-th from `row` on. Of folded rows, which are one here, number i is of channel
 * i mod channels. */
struct rows {
    long long begin, part, own, channel; /* begin: the first number of the thread's first row */
    int row, step, n;                    /* n: rows of the block */
};

template <class A> __device__ __forceinline__ bool rows_of(const pc__cuda_channels &c, rows &r)
{
    const int fold = A::folded ? c.fold : 1;
    const long long batch = blockIdx.x / c.pieces, piece = blockIdx.x % c.pieces, from = piece * c.length;
    r.channel = ((long long)blockIdx.y * c.lanes + threadIdx.x % c.lanes) * A::width;
    r.row = threadIdx.x / c.lanes;
    r.step = PC__NORM_THREADS / c.lanes;
    r.n = (int)(c.inner - from < c.length ? c.inner - from : c.length) / fold;
    r.begin = (batch * c.inner + from + r.row * fold) * c.channels + r.channel;
    r.part = blockIdx.x * c.channels + r.channel;
    r.own = c.own > 1 ? batch : 0;
    return r.channel < c.channels * fold && (!A::folded || r.row < r.step);
}

/* Rows behind the last whole fold, which the last block has: those of one batch alone, and they end x. */
__device__ __forceinline__ int rows_over(const pc__cuda_channels &c)
{
    return blockIdx.x + 1 == gridDim.x ? (int)(c.inner % c.fold) : 0;
}

/* Of number i of a row. */
template <class A> __device__ __forceinline__ long long channel_of(const pc__cuda_channels &c, long long i)
{
    return A::folded ? (unsigned)i % (unsigned)c.channels : i;
}

inline unsigned plane_blocks(const pc__cuda_channels &c)
{
    const long long together = PC__NORM_THREADS / c.lanes;
    return (unsigned)((c.batches * c.channels * c.pieces + together - 1) / together);
}

inline dim3 row_blocks(const pc__cuda_channels &c, int width)
{
    const long long across = (long long)c.lanes * width, all = c.channels * c.fold;
    return dim3((unsigned)(c.batches * c.pieces), (unsigned)((all + across - 1) / across));
}

/* launch(access) for channels-last memory. */
template <class T, class LAUNCH> void with_access(const pc__cuda_channels &c, LAUNCH launch)
{
    if (c.fold > 1)
        launch(access<16 / sizeof(T), true>());
    else if (c.whole)
        launch(access<16 / sizeof(T), false>());
    else
        launch(access<1, false>());
}

} // namespace

#endif
