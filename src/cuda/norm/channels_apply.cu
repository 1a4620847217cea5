/* channels_apply.cu: y = (x - mean) scale + shift and dx = dy p - q - (x - mean) r, by each channel's coefficients. */
#include "cuda/norm/channels.cuh"

namespace
{

template <class T, bool BACKWARD, int K>
__device__ __forceinline__ vector<T, K> result(const numbers<pc::math<T>, K> &x, const numbers<pc::math<T>, K> &g,
                                               const numbers<pc::math<T>, K> (&c)[PC__NORM_COEFFICIENTS])
{
    vector<T, K> to;
#pragma unroll
    for (int j = 0; j < K; j++) {
        const pc::math<T> off = x.at[j] - c[0].at[j];
        to.at[j] = T(BACKWARD ? g.at[j] * c[1].at[j] - c[2].at[j] - off * c[3].at[j] : off * c[1].at[j] + c[2].at[j]);
    }
    return to;
}

template <class T, bool BACKWARD> __global__ void __launch_bounds__(PC__NORM_THREADS) apply_planes(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    plane p;
    const bool there = plane_of(c, p);
    pc::wait_for_earlier();
    if (!there)
        return;
    const T *x = static_cast<const T *>(c.x) + p.begin, *g = static_cast<const T *>(c.dy) + p.begin;
    T *to = static_cast<T *>(c.out) + p.begin;
    M own[PC__NORM_COEFFICIENTS];
    for (int k = 0; k < (BACKWARD ? 4 : 3); k++)
        own[k] = coefficient<M>(c, p.own, k, p.channel);
    pc::each_in_row<4>(x, p.n, p.lane, (unsigned)c.lanes, [&](const auto &some, unsigned at) {
        constexpr int K = sizeof some / sizeof(T);
        numbers<M, K> in, gradient = {}, all[PC__NORM_COEFFICIENTS];
        if constexpr (BACKWARD)
            gradient = taken<T, K>(some_at<K>(g + at));
#pragma unroll
        for (int j = 0; j < K; j++) {
            in.at[j] = M(some[j]);
            for (int k = 0; k < PC__NORM_COEFFICIENTS; k++)
                all[k].at[j] = own[k];
        }
        put_some<K>(to + at, result<T, BACKWARD, K>(in, gradient, all));
    });
}

enum { AT_ONCE = 4 };

template <class T, int W, bool BACKWARD>
__global__ void __launch_bounds__(PC__NORM_THREADS) apply_rows(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    rows r;
    const bool there = rows_of<W>(c, r);
    pc::wait_for_earlier();
    if (!there)
        return;
    numbers<M, W> own[PC__NORM_COEFFICIENTS];
#pragma unroll
    for (int k = 0; k < (BACKWARD ? 4 : 3); k++)
#pragma unroll
        for (int j = 0; j < W; j++)
            own[k].at[j] = coefficient<M>(c, r.own, k, r.channel + j);
    const T *x = static_cast<const T *>(c.x) + r.begin, *g = static_cast<const T *>(c.dy) + r.begin;
    T *to = static_cast<T *>(c.out) + r.begin;
    const long long across = c.channels * r.step;
#pragma unroll 1
    for (int row = r.row; row < r.n; row += AT_ONCE * r.step) {
        vector<T, W> in[AT_ONCE], gradient[AT_ONCE] = {};
        const int n = (r.n - row + r.step - 1) / r.step;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < n) {
                in[k] = raw_at<T, W>(x, k * across);
                if (BACKWARD)
                    gradient[k] = raw_at<T, W>(g, k * across);
            }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < n)
                *reinterpret_cast<vector<T, W> *>(to + k * across) =
                    result<T, BACKWARD, W>(taken<T, W>(in[k]), taken<T, W>(gradient[k]), own);
        x += AT_ONCE * across, g += AT_ONCE * across, to += AT_ONCE * across;
    }
}

template <class T, bool BACKWARD> void launch(const pc__cuda_channels &c)
{
    if (!c.last)
        (void)pc::start(apply_planes<T, BACKWARD>, plane_blocks(c), PC__NORM_THREADS, c.queue, c.early, c);
    else
        with_width<T>(c, [&](auto w) {
            constexpr int W = decltype(w)::width;
            (void)pc::start_grid(apply_rows<T, W, BACKWARD>, row_blocks(c, W), dim3(PC__NORM_THREADS), 0, c.queue,
                                 c.early, c);
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
