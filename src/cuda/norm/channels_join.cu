/* channels_join.cu: batch_norm's coefficients from the parts of its channels, whose numbers lie far apart: a block has few
 * channels, and as many of their parts at once as it has threads. */
#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"

namespace
{

enum { CHANNELS = 4 /* of a block: a sector of memory */, THREADS = 512, ROWS = THREADS / CHANNELS, AT_ONCE = 4 };

/* All parts of the channel, for the first CHANNELS threads of the block. PLAIN: sums, not moments. */
template <bool PLAIN, class M>
__device__ __forceinline__ moments<M> all_parts(const pc__cuda_channels &c, long long channel, moments<M> *room)
{
    const pair<M> *parts = static_cast<const pair<M> *>(c.parts) + channel;
    const int count = (int)(c.batches * c.pieces), row = threadIdx.x / CHANNELS, lane = threadIdx.x % 32;
    moments<M> all = {};
    for (int i = row; i < count && channel < c.channels; i += AT_ONCE * ROWS) {
        pair<M> some[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * ROWS < count)
                some[k] = parts[(i + k * ROWS) * c.channels];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * ROWS < count) {
                const long long left = c.inner - (i + k * ROWS) % (int)c.pieces * c.length;
                all = together<PLAIN>(all,
                                      moments<M>{M(left < c.length ? left : c.length), some[k].first, some[k].second});
            }
    }
#pragma unroll
    for (int distance = 16; distance >= CHANNELS; distance /= 2)
        all = together<PLAIN>(all, of_lane(all, lane ^ distance));
    if (lane < CHANNELS)
        room[threadIdx.x / 32 * CHANNELS + lane] = all;
    __syncthreads();
    if (threadIdx.x < CHANNELS)
        for (int warp = 1; warp < THREADS / 32; warp++)
            all = together<PLAIN>(all, room[warp * CHANNELS + lane]);
    return all;
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ moments<M> room[THREADS / 32 * CHANNELS];
    const long long channel = (long long)blockIdx.x * CHANNELS + threadIdx.x % CHANNELS;
    pc::wait_for_earlier();
    const moments<M> all = all_parts<false>(c, channel, room);
    if (threadIdx.x >= CHANNELS || channel >= c.channels)
        return;
    const M variance = all.second / all.count, rstd = inverse_root_of(variance + M(c.eps));
    static_cast<M *>(c.found_mean)[channel] = all.first;
    static_cast<M *>(c.found_variance)[channel] = variance;
    coefficient<M>(c, 0, 0, channel) = all.first;
    coefficient<M>(c, 0, 1, channel) = rstd * parameters<T, 1>(c.weight, channel, 1).at[0];
    coefficient<M>(c, 0, 2, channel) = parameters<T, 1>(c.bias, channel, 0).at[0];
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ moments<M> room[THREADS / 32 * CHANNELS];
    const long long channel = (long long)blockIdx.x * CHANNELS + threadIdx.x % CHANNELS;
    pc::wait_for_earlier();
    const moments<M> sum = all_parts<true>(c, channel, room);
    if (threadIdx.x >= CHANNELS || channel >= c.channels)
        return;
    const M rstd = rstd_of<T>(c, channel), by = rstd * parameters<T, 1>(c.weight, channel, 1).at[0];
    const M count = M(c.batches) * M(c.inner);
    put_gradient<T>(c.dweight, channel, sum.second * rstd);
    put_gradient<T>(c.dbias, channel, sum.first);
    coefficient<M>(c, 0, 0, channel) = parameters<T, 1>(c.mean, channel, 0).at[0];
    coefficient<M>(c, 0, 1, channel) = by;
    coefficient<M>(c, 0, 2, channel) = by * (sum.first / count);
    coefficient<M>(c, 0, 3, channel) = by * rstd * rstd * (sum.second / count);
}

} // namespace

void pc__cuda_channel_join(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        (void)pc::start(c->backward ? backward<T> : forward<T>, (unsigned)((c->channels + CHANNELS - 1) / CHANNELS),
                        THREADS, c->queue, c->early, *c);
    });
}
