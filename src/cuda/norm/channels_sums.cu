/* channels_sums.cu: what parts of x give each channel: mean and squares off it, or the sums of dy and dy (x - mean). Means and
 * squares of parts are joined (Chan, Golub, LeVeque 1979), so that a mean far from 0 leaves the variance its digits. */
#include "cuda/norm/channels.cuh"
#include "cuda/norm/moments.cuh"

namespace
{

template <class T, bool BACKWARD> __global__ void __launch_bounds__(PC__NORM_THREADS) sum_planes(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ moments<M> room[PC__NORM_THREADS / 32];
    plane p;
    const bool there = plane_of(c, p);
    moments<M> sum = {};
    pc::wait_for_earlier();
    if (there) {
        const T *x = static_cast<const T *>(c.x) + p.begin, *g = static_cast<const T *>(c.dy) + p.begin;
        const line<M> l = BACKWARD ? line_of<T>(c, p.own, p.channel) : line<M>{};
        pc::each_in_row<4>(x, p.n, p.lane, (unsigned)c.lanes, [&](const auto &some, unsigned at) {
            constexpr int K = sizeof some / sizeof(T);
            numbers<M, K> in;
#pragma unroll
            for (int j = 0; j < K; j++)
                in.at[j] = M(some[j]);
            if constexpr (BACKWARD) {
                const numbers<M, K> gradient = taken<T, K>(some_at<K>(g + at));
#pragma unroll
                for (int j = 0; j < K; j++) {
                    const M off = in.at[j] - l.mean, y = normalised(off, l.by, l.bias);
                    const M own = c.relu ? masked(c, gradient.at[j], y) : gradient.at[j];
                    sum.first += own;
                    sum.second += own * off;
                }
            } else {
                sum = joined(sum, moments_of(in));
            }
        });
    }
    sum = over_lanes<BACKWARD>(sum, c.lanes, room);
    if (there && p.lane == 0)
        static_cast<pair<M> *>(c.parts)[p.part] = {sum.first, sum.second};
}

enum { AT_ONCE = 4 /* rows of a thread under way */ };

/* Numbers of a block's threads, W each, where neither a thread's nor neighbours' meet in a bank of shared memory. */
template <class M, int W> struct numbers_of_block {
    M at[W][PC__NORM_THREADS + 32 / W];
};

/* Number i alone. */
template <class T, bool BACKWARD, bool RELU>
__device__ __forceinline__ moments<pc::math<T>> single(const pc__cuda_channels &c, long long own, long long channel,
                                                       long long i)
{
    typedef pc::math<T> M;
    const M x = M(static_cast<const T *>(c.x)[i]);
    if constexpr (BACKWARD) {
        const line<M> l = line_of<T>(c, own, channel);
        const M off = x - l.mean, given = M(static_cast<const T *>(c.dy)[i]);
        const M g = RELU ? masked(c, given, normalised(off, l.by, l.bias)) : given;
        return {M(1), g, g * off};
    } else {
        return {M(1), x, M(0)};
    }
}

/* The part of a block of folded rows: its sums for each row of a fold, which are of `count` rows each, and rows behind them. */
template <class T, int W, bool BACKWARD, bool RELU, class M>
__device__ __forceinline__ void join_folds(const pc__cuda_channels &c, const numbers_of_block<M, W> (&room)[2], M count)
{
    const int channels = (int)c.channels, over = rows_over(c);
    const long long own = c.own > 1 ? blockIdx.x / c.pieces : 0;
    for (int channel = threadIdx.x; channel < channels; channel += PC__NORM_THREADS) {
        moments<M> all = {};
        for (int i = channel; i < channels * c.fold; i += channels)
            all = together<BACKWARD>(all, moments<M>{count, room[0].at[i % W][i / W], room[1].at[i % W][i / W]});
        for (int row = over; row > 0; row--)
            all = together<BACKWARD>(all,
                                     single<T, BACKWARD, RELU>(c, own, channel, (c.inner - row) * channels + channel));
        static_cast<pair<M> *>(c.parts)[blockIdx.x * c.channels + channel] = {all.first, all.second};
    }
}

template <class T, class A, bool BACKWARD, bool RELU>
__global__ void __launch_bounds__(PC__NORM_THREADS) sum_rows(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    constexpr int W = A::width;
    __shared__ numbers_of_block<M, W> room[2];
    rows r;
    const bool there = rows_of<A>(c, r);
    numbers<M, W> first = {}, second = {};
    line<M> l[W];
    const T *x = static_cast<const T *>(c.x) + r.begin, *g = static_cast<const T *>(c.dy) + r.begin;
    const long long across = c.channels * (A::folded ? c.fold : 1) * r.step;
    M count = 0;
    pc::wait_for_earlier();
    for (int j = 0; BACKWARD && there && j < W; j++)
        l[j] = line_of<T>(c, r.own, channel_of<A>(c, r.channel + j));
#pragma unroll 1
    for (int row = r.row; there && row < r.n; row += AT_ONCE * r.step) {
        vector<T, W> in[AT_ONCE] = {}, gradient[AT_ONCE] = {};
        const int n = (r.n - row + r.step - 1) / r.step;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < n) {
                in[k] = raw_at<T, W>(x, k * across);
                if (BACKWARD)
                    gradient[k] = raw_at<T, W>(g, k * across);
            }
        x += AT_ONCE * across, g += AT_ONCE * across;
        const M some = M(n < AT_ONCE ? n : AT_ONCE), share = 1 / some, part = some / (count + some);
#pragma unroll
        for (int j = 0; j < W; j++) {
            if constexpr (BACKWARD) {
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++) {
                    const M off = M(in[k].at[j]) - l[j].mean, given = M(gradient[k].at[j]);
                    const M own = RELU ? masked(c, given, normalised(off, l[j].by, l[j].bias)) : given;
                    first.at[j] += own;
                    second.at[j] += own * off;
                }
            } else {
                M sum = 0, squares = 0;
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
                    sum += M(in[k].at[j]);
                const M own = sum * share, off = own - first.at[j];
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
                    squares += k < n ? (M(in[k].at[j]) - own) * (M(in[k].at[j]) - own) : M(0);
                first.at[j] += off * part;
                second.at[j] += squares + off * off * count * part;
            }
        }
        count += some;
    }
    /* Those of the rows that other threads of the block had, by halves. Folded: of rows, as many as there are. */
    __shared__ M counts[PC__NORM_THREADS];
    counts[threadIdx.x] = count;
#pragma unroll
    for (int j = 0; j < W; j++)
        room[0].at[j][threadIdx.x] = first.at[j], room[1].at[j][threadIdx.x] = second.at[j];
    for (int more = A::folded ? r.step * c.lanes : PC__NORM_THREADS, half; more > c.lanes; more = half) {
        half = A::folded ? (more / c.lanes + 1) / 2 * c.lanes : more / 2;
        __syncthreads();
        if (threadIdx.x >= more - half)
            continue;
        const int other = threadIdx.x + half;
        const M others = counts[other], all = count + others, part = all > 0 ? others / all : M(0);
#pragma unroll
        for (int j = 0; j < W; j++) {
            const M a = room[0].at[j][other], b = room[1].at[j][other], off = a - first.at[j];
            first.at[j] += BACKWARD ? a : off * part;
            second.at[j] += BACKWARD ? b : b + off * off * count * part;
            room[0].at[j][threadIdx.x] = first.at[j], room[1].at[j][threadIdx.x] = second.at[j];
        }
        counts[threadIdx.x] = count = all;
    }
    if constexpr (A::folded) {
        __syncthreads();
        join_folds<T, W, BACKWARD, RELU>(c, room, counts[0]);
    } else {
        for (int j = 0; j < W && there && threadIdx.x < c.lanes; j++)
            static_cast<pair<M> *>(c.parts)[r.part + j] = {first.at[j], second.at[j]};
    }
}

template <class T, bool BACKWARD> void launch(const pc__cuda_channels &c)
{
    if (!c.last)
        (void)pc::start(sum_planes<T, BACKWARD>, plane_blocks(c), PC__NORM_THREADS, c.queue, c.early, c);
    else
        with_access<T>(c, [&](auto a) {
            typedef decltype(a) A;
            (void)pc::start_grid(BACKWARD && c.relu ? sum_rows<T, A, BACKWARD, BACKWARD>
                                                    : sum_rows<T, A, BACKWARD, false>,
                                 row_blocks(c, A::width), dim3(PC__NORM_THREADS), 0, c.queue, c.early, c);
        });
}

} // namespace

void pc__cuda_channel_sums(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        c->backward ? launch<T, true>(*c) : launch<T, false>(*c);
    });
}
