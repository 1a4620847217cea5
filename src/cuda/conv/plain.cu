/* plain.cu: convolutions of so little work that what takes time is the launch, and setting up tiles, with taps apart and
 * channels in groups, too. A thread, or up to a warp of them, has one result and walks its sum, or a block that of a
 * weight; nothing is staged. */
#include "cuda/conv/plain.h"

#include "cuda/conv/order.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"

namespace
{

constexpr int THREADS = 128, WARP = 32;

template <class T> struct operands {
    const T *x, *weight, *bias;
    const T *y, *dy; /* backward; y NULL: dy goes through no activation */
    T *result, *dbias;
};

/* All results of the launch, and the threads that one of them has. */
struct job {
    int results, lanes;
};

/* Whether this thread's group has a result. */
__device__ __forceinline__ bool is_mine(const job &j)
{
    return static_cast<int>(blockIdx.x * THREADS + threadIdx.x) / j.lanes < j.results;
}

/* Which one, the last one again for who has none, and the thread's number in its group. */
__device__ __forceinline__ int result_of(const job &j, int *lane)
{
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    *lane = thread % j.lanes;
    return min(thread / j.lanes, j.results - 1);
}

/* n / by; what is left over stays in n. */
__device__ __forceinline__ int divide(int *n, int by)
{
    const int whole = *n / by;
    *n -= whole * by;
    return whole;
}

/* The same of n below 2^21, by a product: two instructions of the slow units where a division has several and twenty others. */
struct divider {
    int by;
    float inverse;

    __device__ __forceinline__ explicit divider(int number) : by(number), inverse(1.0f / static_cast<float>(number))
    {
    }
};

__device__ __forceinline__ int divide(int *n, const divider &d)
{
    const int whole = static_cast<int>((static_cast<float>(*n) + 0.5f) * d.inverse);
    *n -= whole * d.by;
    return whole;
}

/* n / stride, and whether nothing is left over; n is at least 0. */
__device__ __forceinline__ bool divides(int n, int stride, int *whole)
{
    *whole = stride == 1 ? n : n / stride;
    return *whole * stride == n;
}

__device__ __forceinline__ int y_at(const pc__cuda_conv &s, int picture, int row, int column, int channel)
{
    return s.planes ? ((picture * s.o + channel) * s.oh + row) * s.ow + column
                    : ((picture * s.oh + row) * s.ow + column) * s.o + channel;
}

/* Element of x under a tap of the kernel; -1: it is in the padding. */
__device__ __forceinline__ int x_at(const pc__cuda_conv &s, int picture, int row, int column, int channel)
{
    const bool inside = (unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w;
    return inside ? ((picture * s.h + row) * s.w + column) * s.c + channel : -1;
}

/* The gradient in front of the activation. */
template <class T>
__device__ __forceinline__ pc::math<T> gradient(const pc__cuda_conv &s, const operands<T> &of, int at)
{
    typedef pc::math<T> M;
    const M dy = of.dy[at];
    return of.y ? activation_gradient(s.activation, dy, M(of.y[at])) : dy;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ pc__cuda_conv s, const operands<T> of, const job j)
{
    typedef pc::math<T> M;
    int lane, channel = result_of(j, &lane);
    int column = divide(&channel, s.o);
    int row = divide(&column, s.ow);
    const int picture = divide(&row, s.oh), channels = s.c / s.groups, sums = s.kh * s.kw * channels;
    const int first = channel / (s.o / s.groups) * channels;
    const divider by_channels(channels), by_columns(s.kw);
    M sum = 0;
    pc::wait_for_earlier();
#pragma unroll 4
    for (int k = lane; k < sums; k += j.lanes) {
        int c = k, across = divide(&c, by_channels);
        const int down = divide(&across, by_columns);
        const int at =
            x_at(s, picture, row * s.sh - s.ph + down * s.dh, column * s.sw - s.pw + across * s.dw, first + c);
        if (at >= 0)
            sum += M(of.x[at]) * M(of.weight[((channel * channels + c) * s.kh + down) * s.kw + across]);
    }
    sum = sum_of_lanes(sum, j.lanes) + (of.bias ? M(of.bias[channel]) : M(0));
    if (lane == 0 && is_mine(j))
        of.result[y_at(s, picture, row, column, channel)] = T(activated(s.activation, sum));
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    input_kernel(const __grid_constant__ pc__cuda_conv s, const operands<T> of, const job j)
{
    typedef pc::math<T> M;
    int lane, channel = result_of(j, &lane);
    int column = divide(&channel, s.c);
    int row = divide(&column, s.w);
    const int picture = divide(&row, s.h), outputs = s.o / s.groups, sums = s.kh * s.kw * outputs;
    const int channels = s.c / s.groups, group = channel / channels, first = group * outputs;
    const divider by_outputs(outputs), by_columns(s.kw);
    M sum = 0;
    pc::wait_for_earlier();
#pragma unroll 4
    for (int k = lane; k < sums; k += j.lanes) {
        int o = k, across = divide(&o, by_outputs);
        const int down = divide(&across, by_columns);
        const int top = row + s.ph - down * s.dh, left = column + s.pw - across * s.dw;
        if (top < 0 || left < 0)
            continue;
        int y, x;
        if (divides(top, s.sh, &y) && divides(left, s.sw, &x) && y < s.oh && x < s.ow)
            sum += gradient(s, of, y_at(s, picture, y, x, first + o)) *
                   M(of.weight[(((first + o) * channels + channel - group * channels) * s.kh + down) * s.kw + across]);
    }
    sum = sum_of_lanes(sum, j.lanes);
    if (lane == 0 && is_mine(j))
        of.result[x_at(s, picture, row, column, channel)] = T(sum);
}

/* Results are those of the weights, unless there are none, and those of the bias behind them. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    weights_kernel(const __grid_constant__ pc__cuda_conv s, const operands<T> of, const job j)
{
    typedef pc::math<T> M;
    int lane;
    const int result = result_of(j, &lane), area = s.kh * s.kw, channels = s.c / s.groups;
    const int weights = of.result ? s.o * channels * area : 0;
    const bool bias = result >= weights;
    int across = 0, down = 0, c = 0, o = result - weights;
    if (!bias) {
        across = result;
        down = divide(&across, s.kw);
        c = divide(&down, s.kh);
        o = divide(&c, channels);
        c += o / (s.o / s.groups) * channels;
    }
    const divider of_rows(s.ow), of_pictures(s.oh);
    M sum = 0;
    pc::wait_for_earlier();
#pragma unroll 4
    for (int k = lane; k < static_cast<int>(s.n) * s.oh * s.ow; k += j.lanes) {
        int column = k, row = divide(&column, of_rows);
        const int picture = divide(&row, of_pictures);
        const int at = x_at(s, picture, row * s.sh - s.ph + down * s.dh, column * s.sw - s.pw + across * s.dw, c);
        if (bias || at >= 0)
            sum += gradient(s, of, y_at(s, picture, row, column, o)) * (bias ? M(1) : M(of.x[at]));
    }
    sum = j.lanes > WARP ? block_join<plus, THREADS>(sum, M(0)) : sum_of_lanes(sum, j.lanes);
    if (lane == 0 && is_mine(j))
        (bias ? of.dbias : of.result)[bias ? o : result] = T(sum);
}

/* As many threads for a result as have four terms of it each, while the chip has room for them: of long sums all of a block
 * where there may be `most`. */
int lanes_for(int results, int sums, int most)
{
    constexpr int FULL = 1 << 18, TERMS = 4;
    int lanes = 1;
    if (most == THREADS && sums >= most * TERMS && most * static_cast<double>(results) <= FULL)
        return most;
    while (lanes < WARP && lanes * TERMS < sums && 2 * lanes * static_cast<double>(results) <= FULL)
        lanes *= 2;
    return lanes;
}

template <class K, class T>
void launch(K kernel, cudaStream_t queue, const pc__cuda_conv *s, const operands<T> &of, int results, int sums,
            int most = WARP)
{
    const job j = {results, lanes_for(results, sums, most)};
    const unsigned blocks = (static_cast<unsigned>(results) * j.lanes + THREADS - 1) / THREADS;
    (void)pc::start(kernel, blocks, THREADS, queue, s->early, *s, of, j);
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y)
{
    const operands<T> of = {static_cast<const T *>(x),
                            static_cast<const T *>(weight),
                            static_cast<const T *>(bias),
                            nullptr,
                            nullptr,
                            static_cast<T *>(y),
                            nullptr};
    launch(forward_kernel<T>, queue, s, of, static_cast<int>(s->n) * s->oh * s->ow * s->o,
           s->kh * s->kw * (s->c / s->groups));
}

template <class T>
void input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y, const void *dy, void *dx)
{
    const operands<T> of = {nullptr,
                            static_cast<const T *>(weight),
                            nullptr,
                            needs_y(*s) ? static_cast<const T *>(y) : nullptr,
                            static_cast<const T *>(dy),
                            static_cast<T *>(dx),
                            nullptr};
    launch(input_kernel<T>, queue, s, of, static_cast<int>(s->n) * s->h * s->w * s->c,
           s->kh * s->kw * (s->o / s->groups));
}

template <class T>
void weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y, const void *dy, void *dweight,
             void *dbias)
{
    const operands<T> of = {static_cast<const T *>(x),
                            nullptr,
                            nullptr,
                            needs_y(*s) ? static_cast<const T *>(y) : nullptr,
                            static_cast<const T *>(dy),
                            static_cast<T *>(dweight),
                            static_cast<T *>(dbias)};
    const int results = (dweight ? s->o * (s->c / s->groups) * s->kh * s->kw : 0) + (dbias ? s->o : 0);
    launch(weights_kernel<T>, queue, s, of, results, static_cast<int>(s->n) * s->oh * s->ow, THREADS);
}

} // namespace

bool pc__cuda_conv_plain_fits(const pc__cuda_conv *s)
{
    const double most = 1 << 24,
                 side = (double)s->h + s->w + 2.0 * s->ph + 2.0 * s->pw + (double)s->kh * s->dh + (double)s->kw * s->dw;
    return s->pool == 1 && side < most && (double)s->n * s->h * s->w * s->c < most &&
           (double)s->n * s->oh * s->ow * s->o < most && (double)s->o * s->c * s->kh * s->kw < most;
}

void pc__cuda_conv_plain_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y)
{
    with_number(s->dtype, [&](auto number) { forward<decltype(number)>(queue, s, x, weight, bias, y); });
}

void pc__cuda_conv_plain_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx)
{
    with_number(s->dtype, [&](auto number) { input<decltype(number)>(queue, s, weight, y, dy, dx); });
}

void pc__cuda_conv_plain_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                 const void *dy, void *dweight, void *dbias)
{
    with_number(s->dtype, [&](auto number) { weights<decltype(number)>(queue, s, x, y, dy, dweight, dbias); });
}
