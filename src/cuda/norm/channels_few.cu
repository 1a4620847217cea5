/* channels_few.cu: batch_norm and group_norm of few numbers in one kernel, where three would wait for each other longer than
 * they compute: a block has all that statistics are of, and its threads keep what they have of it in registers. */
#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int FEW = 2, MANY = PC__NORM_FEW / PC__NORM_THREADS; /* numbers of a thread */
constexpr int MOST_THREADS = PC__NORM_FEW / FEW;
static_assert(MANY * MOST_THREADS == PC__NORM_FEW_LONG, "what a block has");

/* What the block has: batches of the channels of one group. */
struct share {
    long long own, group, first_batch;
    unsigned channels, inner, count;
};

__device__ __forceinline__ share share_of(const pc__cuda_channels &c)
{
    const long long own = blockIdx.x / c.groups;
    const unsigned channels = (unsigned)(c.channels / c.groups), inner = (unsigned)c.inner;
    return {own,
            blockIdx.x % c.groups,
            c.own > 1 ? own : 0,
            channels,
            inner,
            (unsigned)(c.batches / c.own) * channels * inner};
}

/* Where a number of the share lies, and which channel it is of. */
struct spot {
    long long at, channel;
};

__device__ __forceinline__ spot spot_of(const pc__cuda_channels &c, const share &s, unsigned i)
{
    const unsigned slab = s.channels * s.inner, batch = i / slab, rest = i - batch * slab;
    const unsigned width = c.last ? s.channels : s.inner, line = rest / width, column = rest - line * width;
    const long long b = s.first_batch + batch, channel = s.group * s.channels + (c.last ? column : line);
    return {c.last ? (b * c.inner + line) * c.channels + channel : (b * c.channels + channel) * c.inner + column,
            channel};
}

template <class T, int EACH, int THREADS> __global__ void __launch_bounds__(THREADS) forward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ pair<M> room[2][THREADS / 32];
    const share s = share_of(c);
    const T *from = static_cast<const T *>(c.x);
    M x[EACH], weight[EACH], bias[EACH];
    long long at[EACH];
    pair<M> sum = {};
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const unsigned i = k * blockDim.x + threadIdx.x;
        const spot own = spot_of(c, s, i < s.count ? i : 0);
        at[k] = own.at;
        x[k] = i < s.count ? M(from[own.at]) : M(0);
        weight[k] = parameters<T, 1>(c.weight, quotient(own.channel, c.spread), 1).at[0];
        bias[k] = parameters<T, 1>(c.bias, quotient(own.channel, c.spread), 0).at[0];
        sum.first += x[k];
    }
    const M mean = over_block(sum, room[0]).first / M(s.count);
    sum.first = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * blockDim.x + threadIdx.x < s.count)
            sum.first += (x[k] - mean) * (x[k] - mean);
    const M variance = over_block(sum, room[1]).first / M(s.count), rstd = 1 / root_of(variance + M(c.eps));
    if (threadIdx.x == 0) {
        static_cast<M *>(c.found_mean)[blockIdx.x] = mean;
        static_cast<M *>(c.found_variance)[blockIdx.x] = variance;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * blockDim.x + threadIdx.x < s.count)
            static_cast<T *>(c.out)[at[k]] = finished<T>(c, normalised(x[k] - mean, rstd * weight[k], bias[k]),
                                                         c.rest ? M(static_cast<const T *>(c.rest)[at[k]]) : M(0));
}

/* The gradients of weight and bias are the block's where it has all numbers of one. */
template <class T, int EACH, int THREADS> __global__ void __launch_bounds__(THREADS) backward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ pair<M> room[2][THREADS / 32];
    const share s = share_of(c);
    const T *from = static_cast<const T *>(c.x), *gradient = static_cast<const T *>(c.dy);
    M off[EACH], g[EACH];
    long long to[EACH];
    pair<M> sum = {}, weighted = {};
    pc::wait_for_earlier();
    const M mean = parameters<T, 1>(c.mean, blockIdx.x, 0).at[0],
            rstd = 1 / root_of(parameters<T, 1>(c.variance, blockIdx.x, 0).at[0] + M(c.eps));
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const unsigned i = k * blockDim.x + threadIdx.x;
        const spot at = spot_of(c, s, i < s.count ? i : 0);
        to[k] = at.at;
        off[k] = i < s.count ? M(from[at.at]) - mean : M(0);
        g[k] = i < s.count ? M(gradient[at.at]) : M(0);
        const M weight = parameters<T, 1>(c.weight, quotient(at.channel, c.spread), 1).at[0];
        if (c.relu)
            g[k] = masked(
                c, g[k],
                normalised(off[k], rstd * weight, parameters<T, 1>(c.bias, quotient(at.channel, c.spread), 0).at[0]));
        sum.first += g[k];
        sum.second += g[k] * off[k];
        g[k] *= weight;
        weighted.first += g[k];
        weighted.second += g[k] * off[k];
    }
    if (c.dweight.at || c.dbias.at) {
        sum = over_block(sum, room[0]);
        if (threadIdx.x == 0) {
            put_gradient<T>(c.dweight, s.group, sum.second * rstd);
            put_gradient<T>(c.dbias, s.group, sum.first);
        }
    }
    if (!c.out)
        return;
    weighted = over_block(weighted, room[1]);
    const M first = c.stored ? M(0) : rstd * (weighted.first / M(s.count)),
            second = c.stored ? M(0) : rstd * rstd * rstd * (weighted.second / M(s.count));
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * blockDim.x + threadIdx.x < s.count)
            static_cast<T *>(c.out)[to[k]] = T(g[k] * rstd - first - off[k] * second);
}

template <class T, int EACH, int THREADS> void launch(const pc__cuda_channels &c, long long count)
{
    unsigned threads = 32;
    while (threads < THREADS && threads * EACH / 2 < count)
        threads *= 2;
    (void)pc::start(c.backward ? backward<T, EACH, THREADS> : forward<T, EACH, THREADS>, (unsigned)(c.own * c.groups),
                    threads, c.queue, c.early, c);
}

} // namespace

/* Few blocks have many threads: there are multiprocessors enough. */
void pc__cuda_channel_few(const pc__cuda_channels *c)
{
    const long long count = c->batches / c->own * (c->channels / c->groups) * c->inner;
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        if (count > PC__NORM_FEW)
            launch<T, MANY, MOST_THREADS>(*c, count);
        else if (c->own * c->groups <= PC__NORM_FEW_BLOCKS)
            launch<T, FEW, MOST_THREADS>(*c, count);
        else
            launch<T, MANY, PC__NORM_THREADS>(*c, count);
    });
}
