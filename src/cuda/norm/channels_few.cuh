/* channels_few.cuh: batch_norm and group_norm of few numbers in one kernel, where three would wait for each other longer than
 * they compute: a block has all that statistics are of, and its threads keep what they have of it in registers. */
#ifndef PC__CUDA_NORM_CHANNELS_FEW_CUH
#define PC__CUDA_NORM_CHANNELS_FEW_CUH

#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int FEW = 2, MANY = PC__NORM_FEW / PC__NORM_THREADS; /* numbers of a thread */
constexpr int MOST_THREADS = PC__NORM_FEW / FEW;
static_assert(MANY * MOST_THREADS == PC__NORM_FEW_LONG, "what a block has");

/* What the block has: batches of the channels of one group. A slab is one batch of it, a line what lies together there. */
struct share {
    unsigned batch, within, channel; /* its first batch, number of that, and channel */
};

/* What a block finds in numbers of all; within a batch they have 32 bits. */
template <class M> struct cut {
    pc__cuda_divisor slab, line, groups, spread;
    unsigned channels, count, inner, stride; /* stride: from batch to batch */
    M size, inverse, eps;                    /* size: the count, inverse: 1 by it */
};

template <class M> cut<M> cut_of(const pc__cuda_channels &c)
{
    const int64_t channels = c.channels / c.groups, count = c.batches / c.own * channels * c.inner;
    return {pc__cuda_divisor_of(channels * c.inner),
            pc__cuda_divisor_of(c.last ? channels : c.inner),
            pc__cuda_divisor_of(c.groups),
            pc__cuda_divisor_of(c.spread),
            (unsigned)channels,
            (unsigned)count,
            (unsigned)c.inner,
            (unsigned)(c.channels * c.inner),
            M(count),
            M(1) / M(count),
            M(c.eps)};
}

template <class M> __device__ __forceinline__ share share_of(const pc__cuda_channels &c, const cut<M> &all)
{
    const unsigned own = pc::over(blockIdx.x, all.groups), first = (blockIdx.x - own * all.groups.by) * all.channels;
    return {own, c.last ? first : first * all.inner, first};
}

/* Where a number of the share lies, and which channel it is of. PLANE: the block's only one, whose numbers lie together. */
struct spot {
    unsigned long long at;
    unsigned channel;
};

template <bool PLANE, class M>
__device__ __forceinline__ spot spot_of(const pc__cuda_channels &c, const cut<M> &all, const share &s, unsigned i)
{
    const unsigned batch = pc::over(i, all.slab), rest = i - batch * all.slab.by;
    const unsigned long long begin = static_cast<unsigned long long>(s.batch + batch) * all.stride;
    if constexpr (PLANE) {
        return {begin + (s.within + rest), s.channel};
    } else {
        const unsigned line = pc::over(rest, all.line), column = rest - line * all.line.by;
        return {begin + (s.within + (c.last ? line * (unsigned)c.channels + column : rest)),
                s.channel + (c.last ? column : line)};
    }
}

/* Weight and bias of a channel. */
template <class M> struct affine {
    M weight, bias;
};

template <class T, class M>
__device__ __forceinline__ affine<M> affine_of(const pc__cuda_channels &c, const cut<M> &all, unsigned channel)
{
    const unsigned i = pc::over(channel, all.spread);
    return {parameters<T, 1>(c.weight, i, 1).at[0], parameters<T, 1>(c.bias, i, 0).at[0]};
}

template <int THREADS> __device__ __forceinline__ unsigned threads()
{
    return THREADS == 32 ? 32 : blockDim.x;
}

/* The first of V numbers, which lie together, that the thread has from its k-th on. */
template <int V, int THREADS> __device__ __forceinline__ unsigned number_of(int k)
{
    return (k / V * threads<THREADS>() + threadIdx.x) * V;
}

/* Whether a turn of some numbers of each thread, not its first one, begins with its k-th, and no thread has that. */
template <int V, int THREADS, class M> __device__ __forceinline__ bool is_over(int k, const cut<M> &all)
{
    constexpr int TURN = V > 4 ? V : 4;
    return k > 0 && k % TURN == 0 && k * threads<THREADS>() >= all.count;
}

/* Over the block, which may be a warp for certain; the room is for one use. */
template <int THREADS, class V> __device__ __forceinline__ V sum_of_all(V value, V *room)
{
    return THREADS == 32 ? warp_total(value) : over_block(value, room);
}

/* sum / size, rounded like a quotient, without the branches of one. */
template <class M> __device__ __forceinline__ M mean_of(M sum, const cut<M> &all)
{
    const M near = sum * all.inverse, exact = fma(fma(-near, all.size, sum), all.inverse, near);
    return exact == exact ? exact : near; /* of infinity */
}

/* What is instantiated for a kernel of such numbers, K::of<T, EACH, THREADS, PLANE, V>(). */
template <class K, class T, int EACH, int THREADS, bool PLANE, int V>
void launch(const pc__cuda_channels &c, const cut<pc::math<T>> &all, unsigned threads)
{
    (void)pc::start(K::template of<T, EACH, THREADS, PLANE, V>(), (unsigned)(c.own * c.groups), threads, c.queue,
                    c.early, c, all);
}

/* A power of 2, whose threads have at least half of what they could. */
template <int EACH, int THREADS> unsigned threads_of(unsigned count)
{
    unsigned threads = 32;
    while (threads < THREADS && threads * EACH / 2 < count)
        threads *= 2;
    return threads;
}

template <class M> bool is_plane(const pc__cuda_channels &c, const cut<M> &all)
{
    return all.channels == 1 && !c.last;
}

/* Whether a warp is enough for a block of planes: threads of several wait for each other. */
template <class M> bool is_warp(const cut<M> &all)
{
    return all.count <= 32 * MANY;
}

template <class K, class T, int EACH, int V>
void launch_planes(const pc__cuda_channels &c, const cut<pc::math<T>> &all, unsigned threads)
{
    if (is_warp(all))
        launch<K, T, MANY, 32, true, V>(c, all, 32);
    else
        launch<K, T, EACH, MOST_THREADS, true, V>(c, all, threads);
}

/* Few blocks have many threads: there are multiprocessors enough, and what each of them computes is what takes time. */
template <class K, class T, int EACH> void launch_wide(const pc__cuda_channels &c, const cut<pc::math<T>> &all)
{
    const unsigned threads = threads_of<EACH, MOST_THREADS>(all.count);
    if (is_plane(c, all))
        launch_planes<K, T, EACH, 1>(c, all, threads);
    else
        launch<K, T, EACH, MOST_THREADS, false, 1>(c, all, threads);
}

template <class K> void start_few(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        const auto all = cut_of<pc::math<T>>(*c);
        if (is_plane(*c, all) && pc__cuda_channel_planes_are_whole(c, sizeof(T)))
            launch_planes<K, T, MANY, 16 / sizeof(T)>(*c, all, (all.count + 32 * MANY - 1) / (32 * MANY) * 32);
        else if (all.count > PC__NORM_FEW)
            launch_wide<K, T, MANY>(*c, all);
        else if (c->own * c->groups <= PC__NORM_FEW_BLOCKS || (is_plane(*c, all) && is_warp(all)))
            launch_wide<K, T, FEW>(*c, all);
        else
            launch<K, T, MANY, PC__NORM_THREADS, false, 1>(*c, all, threads_of<MANY, PC__NORM_THREADS>(all.count));
    });
}

} // namespace

#endif
