/* channels_few.cu: batch_norm and group_norm of few numbers in one kernel, where three would wait for each other longer than
 * they compute: a block has all that statistics are of, and its threads keep what they have of it in registers. */
#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/sums.cuh"

#include <type_traits>

namespace
{

constexpr int FEW = 2, MANY = PC__NORM_FEW / PC__NORM_THREADS; /* numbers of a thread */
constexpr int MOST_THREADS = PC__NORM_FEW / FEW;
static_assert(MANY * MOST_THREADS == PC__NORM_FEW_LONG, "what a block has");

/* What the block has: batches of the channels of one group. A slab is one batch of it, a line what lies together there. */
struct share {
    long long begin, stride, first; /* its first number, from batch to batch, its first channel */
};

/* What a block finds in numbers of all. */
struct cut {
    pc__cuda_divisor slab, line;
    unsigned channels, count;
};

cut cut_of(const pc__cuda_channels &c)
{
    const int64_t channels = c.channels / c.groups;
    return {pc__cuda_divisor_of(channels * c.inner), pc__cuda_divisor_of(c.last ? channels : c.inner),
            (unsigned)channels, (unsigned)(c.batches / c.own * channels * c.inner)};
}

__device__ __forceinline__ share share_of(const pc__cuda_channels &c, const cut &all)
{
    const long long own = c.own > 1 ? quotient(blockIdx.x, c.groups) : 0, stride = c.channels * c.inner;
    const long long first = (blockIdx.x - own * c.groups) * all.channels;
    return {own * stride + (c.last ? first : first * c.inner), stride, first};
}

/* Where a number of the share lies, and which channel it is of. PLANE: the block's only one, whose numbers lie together. */
struct spot {
    long long at, channel;
};

template <bool PLANE>
__device__ __forceinline__ spot spot_of(const pc__cuda_channels &c, const cut &all, const share &s, unsigned i)
{
    const unsigned batch = pc::over(i, all.slab), rest = i - batch * all.slab.by;
    if constexpr (PLANE) {
        return {s.begin + batch * s.stride + rest, s.first};
    } else {
        const unsigned line = pc::over(rest, all.line), column = rest - line * all.line.by;
        return {s.begin + batch * s.stride + (c.last ? line * c.channels + column : rest),
                s.first + (c.last ? column : line)};
    }
}

template <class T>
__device__ __forceinline__ pc::math<T> parameter(const pc__cuda_channels &c, const pc__cuda_vector &v,
                                                 long long channel, pc::math<T> missing)
{
    return parameters<T, 1>(v, c.spread == 1 ? channel : quotient(channel, c.spread), missing).at[0];
}

/* Weight and bias of a channel. */
template <class M> struct affine {
    M weight, bias;
};

template <class T>
__device__ __forceinline__ affine<pc::math<T>> affine_of(const pc__cuda_channels &c, long long channel)
{
    return {parameter<T>(c, c.weight, channel, 1), parameter<T>(c, c.bias, channel, 0)};
}

/* The first of V numbers, which lie together, that the thread has from its k-th on. */
template <int V> __device__ __forceinline__ unsigned number_of(int k)
{
    return (k / V * blockDim.x + threadIdx.x) * V;
}

template <class T, int EACH, int THREADS, bool PLANE, int V>
__global__ void __launch_bounds__(THREADS) forward(pc__cuda_channels c, cut all)
{
    typedef pc::math<T> M;
    __shared__ M room[2][THREADS / 32];
    const share s = share_of(c, all);
    M x[EACH];
    affine<M> by[EACH];
    long long at[PLANE ? EACH / V : 1]; /* else found once more: it would take the registers */
    M sum = 0;
    pc::wait_for_earlier();
    const affine<M> only = affine_of<T>(c, s.first);
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        const unsigned i = number_of<V>(k);
        const spot own = spot_of<PLANE>(c, all, s, i < all.count ? i : 0);
        const vector<T, V> in = raw_at<T, V>(c.x, own.at);
        at[PLANE ? k / V : 0] = own.at;
#pragma unroll
        for (int j = 0; j < V; j++) {
            x[k + j] = i < all.count ? M(in.at[j]) : M(0);
            by[k + j] = PLANE || all.channels == 1 ? only : affine_of<T>(c, own.channel);
            sum += x[k + j];
        }
    }
    const M mean = over_block(sum, room[0]) / M(all.count);
    sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (number_of<V>(k) < all.count)
            sum += (x[k] - mean) * (x[k] - mean);
    const M variance = over_block(sum, room[1]) / M(all.count), rstd = 1 / root_of(variance + M(c.eps));
    if (threadIdx.x == 0) {
        static_cast<M *>(c.found_mean)[blockIdx.x] = mean;
        static_cast<M *>(c.found_variance)[blockIdx.x] = variance;
    }
    const auto put_all = [&](auto bare) {
#pragma unroll
        for (int k = 0; k < EACH; k += V) {
            const unsigned i = number_of<V>(k);
            if (i >= all.count)
                continue;
            const long long to = PLANE ? at[PLANE ? k / V : 0] : spot_of<PLANE>(c, all, s, i).at;
            vector<T, V> y, rest = {};
            if (!bare.value && c.rest)
                rest = raw_at<T, V>(c.rest, to);
#pragma unroll
            for (int j = 0; j < V; j++) {
                const M value = normalised(x[k + j] - mean, rstd * by[k + j].weight, by[k + j].bias);
                y.at[j] = bare.value ? T(value) : finished<T>(c, value, M(rest.at[j]));
            }
            *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) + to) = y;
        }
    };
    if (c.rest || c.relu)
        put_all(std::false_type());
    else
        put_all(std::true_type());
}

/* The gradients of weight and bias are the block's where it has all numbers of one. */
template <class T, int EACH, int THREADS, bool PLANE, int V>
__global__ void __launch_bounds__(THREADS) backward(pc__cuda_channels c, cut all)
{
    typedef pc::math<T> M;
    __shared__ pair<M> room[2][THREADS / 32];
    const share s = share_of(c, all);
    M off[EACH], g[EACH];
    long long at[PLANE ? EACH / V : 1];
    pair<M> sum = {}, weighted = {};
    pc::wait_for_earlier();
    const affine<M> only = affine_of<T>(c, s.first);
    const M mean = parameters<T, 1>(c.mean, blockIdx.x, 0).at[0],
            rstd = 1 / root_of(parameters<T, 1>(c.variance, blockIdx.x, 0).at[0] + M(c.eps));
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        const unsigned i = number_of<V>(k);
        const spot own = spot_of<PLANE>(c, all, s, i < all.count ? i : 0);
        const affine<M> by = PLANE || all.channels == 1 ? only : affine_of<T>(c, own.channel);
        const vector<T, V> in = raw_at<T, V>(c.x, own.at), dy = raw_at<T, V>(c.dy, own.at);
        at[PLANE ? k / V : 0] = own.at;
#pragma unroll
        for (int j = k; j < k + V; j++) {
            off[j] = i < all.count ? M(in.at[j - k]) - mean : M(0);
            g[j] = i < all.count ? M(dy.at[j - k]) : M(0);
            if (c.relu)
                g[j] = masked(c, g[j], normalised(off[j], rstd * by.weight, by.bias));
            sum.first += g[j];
            sum.second += g[j] * off[j];
            g[j] *= by.weight;
            weighted.first += g[j];
            weighted.second += g[j] * off[j];
        }
    }
    if (PLANE || c.dweight.at || c.dbias.at) {
        sum = over_block(sum, room[0]);
        if (threadIdx.x == 0) {
            put_gradient<T>(c.dweight, quotient(s.first, all.channels), sum.second * rstd);
            put_gradient<T>(c.dbias, quotient(s.first, all.channels), sum.first);
        }
    }
    if (!c.out)
        return;
    weighted = PLANE ? pair<M>{sum.first * only.weight, sum.second * only.weight} : over_block(weighted, room[1]);
    const M first = c.stored ? M(0) : rstd * (weighted.first / M(all.count)),
            second = c.stored ? M(0) : rstd * rstd * rstd * (weighted.second / M(all.count));
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        const unsigned i = number_of<V>(k);
        if (i >= all.count)
            continue;
        vector<T, V> dx;
#pragma unroll
        for (int j = k; j < k + V; j++)
            dx.at[j - k] = T(g[j] * rstd - first - off[j] * second);
        *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) +
                                          (PLANE ? at[PLANE ? k / V : 0] : spot_of<PLANE>(c, all, s, i).at)) = dx;
    }
}

template <class T, int EACH, int THREADS, bool PLANE, int V>
void launch(const pc__cuda_channels &c, const cut &all, unsigned threads)
{
    (void)pc::start(c.backward ? backward<T, EACH, THREADS, PLANE, V> : forward<T, EACH, THREADS, PLANE, V>,
                    (unsigned)(c.own * c.groups), threads, c.queue, c.early, c, all);
}

/* A power of 2, whose threads have at least half of what they could. */
template <int EACH, int THREADS> unsigned threads_of(const cut &all)
{
    unsigned threads = 32;
    while (threads < THREADS && threads * EACH / 2 < all.count)
        threads *= 2;
    return threads;
}

/* Planes of which every one lies on 16 bytes, in whole accesses. */
template <class T> bool lies_whole(const pc__cuda_channels &c)
{
    const uintptr_t at = (uintptr_t)c.x | (uintptr_t)c.dy | (uintptr_t)c.rest | (uintptr_t)c.out;
    return at % 16 == 0 && c.inner * (int64_t)sizeof(T) % 16 == 0;
}

/* Few blocks have many threads: there are multiprocessors enough, and what each of them computes is what takes time. */
template <class T, int EACH> void launch_wide(const pc__cuda_channels &c, const cut &all)
{
    const unsigned threads = threads_of<EACH, MOST_THREADS>(all);
    if (all.channels == 1 && !c.last)
        launch<T, EACH, MOST_THREADS, true, 1>(c, all, threads);
    else
        launch<T, EACH, MOST_THREADS, false, 1>(c, all, threads);
}

} // namespace

void pc__cuda_channel_few(const pc__cuda_channels *c)
{
    const cut all = cut_of(*c);
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        if (all.channels == 1 && !c->last && lies_whole<T>(*c))
            launch<T, MANY, MOST_THREADS, true, 16 / sizeof(T)>(*c, all,
                                                                (all.count + 32 * MANY - 1) / (32 * MANY) * 32);
        else if (all.count > PC__NORM_FEW)
            launch_wide<T, MANY>(*c, all);
        else if (c->own * c->groups <= PC__NORM_FEW_BLOCKS)
            launch_wide<T, FEW>(*c, all);
        else
            launch<T, MANY, PC__NORM_THREADS, false, 1>(*c, all, threads_of<MANY, PC__NORM_THREADS>(all));
    });
}
