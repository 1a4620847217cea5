/* channels_apply.cu: y = (x - mean) scale + shift and dx = dy p - q - (x - mean) r, by each channel's coefficients, with what
 * follows y. */
#include "cuda/norm/channels.cuh"

namespace
{

/* The coefficients; behind them the bias, where a gradient goes by y. */
enum { BIAS = PC__NORM_COEFFICIENTS, NUMBERS };

/* other: the gradient, or what is added to y. */
template <class T, bool BACKWARD, bool STEPS, int K>
__device__ __forceinline__ vector<T, K> result(const pc__cuda_channels &all, const numbers<pc::math<T>, K> &x,
                                               const numbers<pc::math<T>, K> &other,
                                               const numbers<pc::math<T>, K> (&c)[NUMBERS])
{
    vector<T, K> to;
#pragma unroll
    for (int j = 0; j < K; j++) {
        const pc::math<T> off = x.at[j] - c[0].at[j];
        if constexpr (BACKWARD) {
            const pc::math<T> g =
                STEPS ? masked(all, other.at[j], normalised(off, c[1].at[j], c[BIAS].at[j])) : other.at[j];
            to.at[j] = T(g * c[1].at[j] - c[2].at[j] - off * c[3].at[j]);
        } else {
            const pc::math<T> y = normalised(off, c[1].at[j], c[2].at[j]);
            to.at[j] = STEPS ? finished<T>(all, y, other.at[j]) : T(y);
        }
    }
    return to;
}

template <class T, bool BACKWARD>
__device__ __forceinline__ pc::math<T> number(const pc__cuda_channels &c, long long own, int k, long long channel)
{
    typedef pc::math<T> M;
    if (k == BIAS)
        return BACKWARD && c.relu ? parameters<T, 1>(c.bias, channel / c.spread, 0).at[0] : M(0);
    return k < 3 || BACKWARD ? coefficient<M>(c, own, k, channel) : M(0);
}

template <class T, bool BACKWARD> __global__ void __launch_bounds__(PC__NORM_THREADS) apply_planes(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    plane p;
    const bool there = plane_of(c, p);
    pc::wait_for_earlier();
    if (!there)
        return;
    const T *x = static_cast<const T *>(c.x) + p.begin;
    const T *g = static_cast<const T *>(BACKWARD ? c.dy : c.rest);
    T *to = static_cast<T *>(c.out) + p.begin;
    M own[NUMBERS];
    for (int k = 0; k < NUMBERS; k++)
        own[k] = number<T, BACKWARD>(c, p.own, k, p.channel);
    pc::each_in_row<4>(x, p.n, p.lane, (unsigned)c.lanes, [&](const auto &some, unsigned at) {
        constexpr int K = sizeof some / sizeof(T);
        numbers<M, K> in, other = {}, all[NUMBERS];
        if (g)
            other = taken<T, K>(some_at<K>(g + p.begin + at));
#pragma unroll
        for (int j = 0; j < K; j++) {
            in.at[j] = M(some[j]);
            for (int k = 0; k < NUMBERS; k++)
                all[k].at[j] = own[k];
        }
        put_some<K>(to + at, c.relu || c.rest ? result<T, BACKWARD, true, K>(c, in, other, all)
                                              : result<T, BACKWARD, false, K>(c, in, other, all));
    });
}

enum { AT_ONCE = 4 };

/* Rows behind whole folds. */
template <class T, bool BACKWARD, bool STEPS> __device__ __forceinline__ void apply_over(const pc__cuda_channels &c)
{
    typedef pc::math<T> M;
    const T *g = static_cast<const T *>(BACKWARD ? c.dy : c.rest);
    const int channels = (int)c.channels, count = rows_over(c) * channels;
    const long long first = c.inner * channels - count;
    for (int i = threadIdx.x; i < count; i += PC__NORM_THREADS) {
        numbers<M, 1> own[NUMBERS];
        for (int k = 0; k < NUMBERS; k++)
            own[k].at[0] = number<T, BACKWARD>(c, 0, k, i % channels);
        const numbers<M, 1> x = {M(static_cast<const T *>(c.x)[first + i])}, other = {g ? M(g[first + i]) : M(0)};
        static_cast<T *>(c.out)[first + i] = result<T, BACKWARD, STEPS, 1>(c, x, other, own).at[0];
    }
}

/* STEPS: something follows y. */
template <class T, class A, bool BACKWARD, bool STEPS>
__global__ void __launch_bounds__(PC__NORM_THREADS) apply_rows(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    constexpr int W = A::width;
    rows r;
    const bool there = rows_of<A>(c, r);
    pc::wait_for_earlier();
    if constexpr (A::folded) {
        apply_over<T, BACKWARD, STEPS>(c);
    }
    if (!there)
        return;
    numbers<M, W> own[NUMBERS];
#pragma unroll
    for (int k = 0; k < NUMBERS; k++)
#pragma unroll
        for (int j = 0; j < W; j++)
            own[k].at[j] = k < BIAS || STEPS ? number<T, BACKWARD>(c, r.own, k, channel_of<A>(c, r.channel + j)) : M(0);
    const bool both = BACKWARD || (STEPS && c.rest);
    const T *x = static_cast<const T *>(c.x) + r.begin;
    const T *g = both ? static_cast<const T *>(BACKWARD ? c.dy : c.rest) + r.begin : NULL;
    T *to = static_cast<T *>(c.out) + r.begin;
    const long long across = c.channels * (A::folded ? c.fold : 1) * r.step;
#pragma unroll 1
    for (int row = r.row; row < r.n; row += AT_ONCE * r.step) {
        vector<T, W> in[AT_ONCE], other[AT_ONCE] = {};
        const int n = (r.n - row + r.step - 1) / r.step;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < n) {
                in[k] = raw_at<T, W>(x, k * across);
                if (both)
                    other[k] = raw_at<T, W>(g, k * across);
            }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < n)
                *reinterpret_cast<vector<T, W> *>(to + k * across) =
                    result<T, BACKWARD, STEPS, W>(c, taken<T, W>(in[k]), taken<T, W>(other[k]), own);
        x += AT_ONCE * across, to += AT_ONCE * across;
        if (both)
            g += AT_ONCE * across;
    }
}

template <class T, bool BACKWARD> void launch(const pc__cuda_channels &c)
{
    if (!c.last)
        (void)pc::start(apply_planes<T, BACKWARD>, plane_blocks(c), PC__NORM_THREADS, c.queue, c.early, c);
    else
        with_access<T>(c, [&](auto a) {
            typedef decltype(a) A;
            (void)pc::start_grid(c.relu || c.rest ? apply_rows<T, A, BACKWARD, true>
                                                  : apply_rows<T, A, BACKWARD, false>,
                                 row_blocks(c, A::width), dim3(PC__NORM_THREADS), 0, c.queue, c.early, c);
        });
}

} // namespace

void pc__cuda_channel_apply(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        c->backward ? launch<T, true>(*c) : launch<T, false>(*c);
    });
}
