/* channels_coefficients.cu: what follows from the sums of parts for each channel; and the step of running statistics. */
#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"

#define WARPS 4  /* of a block */
#define MANY 512 /* numbers of a group's parts that are a block's, WIDE threads, and not a warp's */
#define WIDE 512

namespace
{

/* Parts of the channels of a group, [parts][channels], falling to a thread of LANES. */
template <int LANES, class M, class F>
__device__ __forceinline__ void each_part(const pc__cuda_channels &c, long long own, long long group, F f)
{
    const int n = (int)(c.channels / c.groups), lane = threadIdx.x % LANES;
    const long long parts = c.batches / c.own * c.pieces;
    const pair<M> *from = static_cast<const pair<M> *>(c.parts) + own * parts * c.channels + group * n;
    long long part = lane / n;
    int channel = lane % n;
#pragma unroll 4
    for (; part < parts; part += LANES / n) {
        const long long left = c.inner - (c.pieces == 1 ? 0 : part % c.pieces) * c.length;
        f(from[part * c.channels + channel], group * n + channel, M(left < c.length ? left : c.length));
        channel += LANES % n;
        if (channel >= n)
            channel -= n, part++;
    }
}

/* Over LANES threads, for all of them. */
template <int LANES, bool PLAIN, class M> __device__ __forceinline__ moments<M> over_all(moments<M> value)
{
    __shared__ moments<M> room[LANES / 32];
    value = over_lanes<PLAIN>(value, LANES, room);
    if (LANES == 32)
        return of_lane(value, 0);
    if (threadIdx.x == 0)
        room[0] = value;
    __syncthreads();
    return room[0];
}

/* One warp a group, or a block. */
template <class T, int LANES>
__global__ void __launch_bounds__(LANES == 32 ? 32 * WARPS : LANES) forward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    const long long i = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES, own = i / c.groups,
                    group = i % c.groups;
    const int lane = threadIdx.x % LANES, n = (int)(c.channels / c.groups);
    pc::wait_for_earlier();
    if (own >= c.own)
        return;
    moments<M> all = {};
    if (c.stored) {
        all = {M(1), parameters<T, 1>(c.mean, i, 0).at[0], parameters<T, 1>(c.variance, i, 0).at[0]};
    } else {
        each_part<LANES, M>(c, own, group, [&](const pair<M> &p, long long, M count) {
            all = joined(all, moments<M>{count, p.first, p.second});
        });
        all = over_all<LANES, false>(all);
    }
    const M mean = all.first, variance = all.second / all.count;
    if (lane == 0 && !c.stored) {
        static_cast<M *>(c.found_mean)[i] = mean;
        static_cast<M *>(c.found_variance)[i] = variance;
    }
    const M rstd = inverse_root_of(variance + M(c.eps));
    for (long long channel = group * n + lane; channel < (group + 1) * n; channel += LANES) {
        coefficient<M>(c, own, 0, channel) = mean;
        coefficient<M>(c, own, 1, channel) = rstd * parameters<T, 1>(c.weight, channel / c.spread, 1).at[0];
        coefficient<M>(c, own, 2, channel) = parameters<T, 1>(c.bias, channel / c.spread, 0).at[0];
    }
}

/* The coefficients of a group: means of dy w and dy w (x - mean), of which with stored statistics nothing follows. */
template <class T, int LANES>
__device__ __forceinline__ void group_gradients(const pc__cuda_channels &c, long long own, long long group)
{
    typedef pc::math<T> M;
    const long long i = own * c.groups + group;
    const int lane = threadIdx.x % LANES, n = (int)(c.channels / c.groups);
    const M mean = parameters<T, 1>(c.mean, i, 0).at[0], rstd = rstd_of<T>(c, i);
    const M count = M(c.batches / c.own) * M(c.inner) * M(n);
    moments<M> sum = {};
    if (!c.stored)
        each_part<LANES, M>(c, own, group, [&](const pair<M> &p, long long channel, M) {
            const M weight = parameters<T, 1>(c.weight, channel / c.spread, 1).at[0];
            sum.first += p.first * weight;
            sum.second += p.second * weight;
        });
    sum = over_all<LANES, true>(sum);
    const M first = sum.first / count, second = sum.second / count;
    for (long long channel = group * n + lane; channel < (group + 1) * n; channel += LANES) {
        coefficient<M>(c, own, 0, channel) = mean;
        coefficient<M>(c, own, 1, channel) = rstd * parameters<T, 1>(c.weight, channel / c.spread, 1).at[0];
        coefficient<M>(c, own, 2, channel) = rstd * first;
        coefficient<M>(c, own, 3, channel) = rstd * rstd * rstd * second;
    }
}

/* The gradients of a weight and a bias, from the parts of its channels. */
template <class T, int LANES>
__device__ __forceinline__ void parameter_gradients(const pc__cuda_channels &c, long long parameter)
{
    typedef pc::math<T> M;
    const long long parts = c.batches * c.pieces * c.spread, first = parameter * c.spread;
    const long long group = first / (c.channels / c.groups);
    moments<M> sum = {};
#pragma unroll 4
    for (long long i = threadIdx.x % LANES; i < parts; i += LANES) {
        const long long part = i / c.spread, own = c.own > 1 ? part / c.pieces : 0;
        const pair<M> p = static_cast<const pair<M> *>(c.parts)[part * c.channels + first + i % c.spread];
        sum.first += p.first;
        sum.second += p.second * rstd_of<T>(c, own * c.groups + group);
    }
    sum = over_all<LANES, true>(sum);
    if (threadIdx.x % LANES == 0) {
        put_gradient<T>(c.dweight, parameter, sum.second);
        put_gradient<T>(c.dbias, parameter, sum.first);
    }
}

/* A warp each, or a block, for groups, and behind them for parameters. */
template <class T, int LANES>
__global__ void __launch_bounds__(LANES == 32 ? 32 * WARPS : LANES) backward(pc__cuda_channels c)
{
    const long long i = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES,
                    groups = c.out ? c.own * c.groups : 0;
    pc::wait_for_earlier();
    if (i < groups)
        group_gradients<T, LANES>(c, i / c.groups, i % c.groups);
    else if (i - groups < c.channels / c.spread && (c.dweight.at || c.dbias.at))
        parameter_gradients<T, LANES>(c, i - groups);
}

template <class T> void launch(const pc__cuda_channels &c)
{
    const long long groups = c.out ? c.own * c.groups : 0;
    const long long all = c.backward ? groups + (c.dweight.at || c.dbias.at ? c.channels / c.spread : 0) : groups;
    const long long parts = c.own && c.groups ? c.batches / c.own * c.pieces * (c.channels / c.groups) : 0;
    if (all && !c.stored && parts > MANY)
        (void)pc::start(c.backward ? backward<T, WIDE> : forward<T, WIDE>, (unsigned)all, WIDE, c.queue, c.early, c);
    else if (all)
        (void)pc::start(c.backward ? backward<T, 32> : forward<T, 32>, (unsigned)((all + WARPS - 1) / WARPS),
                        32 * WARPS, c.queue, c.early, c);
}

template <class M> __global__ void __launch_bounds__(PC__NORM_THREADS) running_step(pc__cuda_running r)
{
    pc::wait_for_earlier();
    const long long tracked = r.tracked ? *r.tracked + 1 : 1;
    const double share = r.share < 0 ? 1.0 / (double)tracked : r.share;
    __syncthreads(); /* all have read it */
    if (threadIdx.x == 0 && r.tracked)
        *r.tracked = tracked;
    for (long long i = threadIdx.x; i < 2 * r.channels; i += PC__NORM_THREADS) {
        const int k = i >= r.channels;
        const long long channel = i - k * r.channels;
        M &running = static_cast<M *>(r.running[k])[channel * r.stride[k]];
        const M found = static_cast<const M *>(r.found[k])[channel] * (k ? M(r.unbiased) : M(1));
        running = M(1 - share) * running + M(share) * found;
    }
}

} // namespace

void pc__cuda_channel_coefficients(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) { launch<decltype(number)>(*c); });
}

void pc__cuda_running_step(const pc__cuda_running *r)
{
    (void)pc::start(r->is_f64 ? running_step<double> : running_step<float>, 1, PC__NORM_THREADS, r->queue, r->early,
                    *r);
}
