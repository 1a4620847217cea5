/* depthwise_planes.cu: convolutions of each channel alone of pictures in C order, and the gradient of their input. */
#include "cuda/conv/depthwise_planes.cuh"

namespace
{

constexpr int BLOCK = 128, SQUARES = 2;

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    bool turned;          /* the weights, end to end */
    long long first;      /* plane */
    unsigned channel;     /* of that plane */
    unsigned down, items; /* threads that a column has, and of all planes of the launch */
    unsigned across;      /* threads that a row has */
    stepping rows, columns;
};

/* What a thread has: `part` of a column of a plane. */
struct share {
    long long plane;
    int channel, part, column;
};

/* False where the thread has nothing. Behind it what comes before the kernel is done. */
template <class T> __device__ __forceinline__ bool take_share(const operands<T> &of, int channels, share &at)
{
    const unsigned item = blockIdx.x * BLOCK + threadIdx.x;
    const unsigned line = item / of.across, plane = line / of.down;
    pc::wait_for_earlier();
    at.plane = of.first + plane;
    at.channel = static_cast<int>((of.channel + plane) % channels);
    at.part = static_cast<int>(line - plane * of.down);
    at.column = static_cast<int>(item - line * of.across);
    return item < of.items;
}

template <class T, int K, int S, bool GAPS>
__global__ void __launch_bounds__(BLOCK) strips(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    share at;
    if (!take_share(of, s.c, at))
        return;
    const T *weights = of.weight + at.channel * (K * K), *plane = of.from + at.plane * s.h * s.w;
    const int down = gap_of<GAPS>(s.dh), along = gap_of<GAPS>(s.dw), apart = gap_of<GAPS>(of.rows.windows);
    const int first = first_row(at.part, apart);
    const int top = first * (GAPS ? s.sh : S) - s.ph, left = at.column * (GAPS ? s.sw : S) - s.pw;
    M weight[K * K], sum[DOWN];
#pragma unroll
    for (int t = 0; t < K * K; t++)
        weight[t] = M(weights[of.turned ? K * K - 1 - t : t]);
#pragma unroll
    for (int p = 0; p < DOWN; p++)
        sum[p] = of.bias ? M(of.bias[at.channel]) : M(0);
#pragma unroll
    for (int i = 0; i < ROWS<K, S>; i++) {
        M line[K];
        take_columns<T, K>(s, plane, top + i * down, left, along, line);
#pragma unroll
        for (int p = 0; p < DOWN; p++)
            if (i - p * S >= 0 && i - p * S < K)
#pragma unroll
                for (int k = 0; k < K; k++)
                    sum[p] += line[k] * weight[(i - p * S) * K + k];
    }
    T *to = of.to + (at.plane * s.oh + first) * s.ow + at.column;
#pragma unroll
    for (int p = 0; p < DOWN; p++)
        if (first + p * apart < s.oh)
            to[(long long)p * apart * s.ow] = T(sum[p]);
}

/* The gradient of the input where windows are two apart: a thread has SQUARES squares of four places below each other, which see
 * the same columns of y, and of whose rows and columns one each lies under the even taps. */
template <class T, int K>
__global__ void __launch_bounds__(BLOCK) squares(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    constexpr int SEEN = (K + 1) / 2; /* rows and columns of y */
    share at;
    if (!take_share(of, s.c, at))
        return;
    const T *weights = of.weight + at.channel * (K * K), *plane = of.from + at.plane * s.oh * s.ow;
    const int row = s.ph / 2 + at.part * SQUARES, column = s.pw / 2 + at.column;
    M weight[K * K], sum[SQUARES][2][2] = {};
#pragma unroll
    for (int t = 0; t < K * K; t++)
        weight[t] = M(weights[t]);
#pragma unroll
    for (int r = 1 - SEEN; r < SQUARES; r++)
#pragma unroll
        for (int k = 1 - SEEN; k <= 0; k++) {
            const bool inside = (unsigned)(row + r) < (unsigned)s.oh && (unsigned)(column + k) < (unsigned)s.ow;
            const M y = inside ? M(plane[(long long)(row + r) * s.ow + column + k]) : M(0);
#pragma unroll
            for (int q = 0; q < SQUARES; q++)
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    const int tap_row = (q - r) * 2 + t / 2, tap = -k * 2 + t % 2;
                    if (tap_row >= 0 && tap_row < K && tap < K)
                        sum[q][t / 2][t % 2] += y * weight[tap_row * K + tap];
                }
        }
    const int top = 2 * row - s.ph, left = 2 * column - s.pw;
    T *to = of.to + (at.plane * s.h + top) * s.w + left;
#pragma unroll
    for (int i = 0; i < 2 * SQUARES; i++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            if ((unsigned)(top + i) < (unsigned)s.h && (unsigned)(left + k) < (unsigned)s.w)
                to[(long long)i * s.w + k] = T(sum[i / 2][i % 2][k]);
}

/* Any windows: a place of a thread. */
template <class T>
__global__ void __launch_bounds__(BLOCK) any(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    share at;
    if (!take_share(of, s.c, at))
        return;
    const T *weights = of.weight + (long long)at.channel * s.kh * s.kw, *plane = of.from + at.plane * s.h * s.w;
    const int top = at.part * s.sh - s.ph, left = at.column * s.sw - s.pw;
    M sum = of.bias ? M(of.bias[at.channel]) : M(0);
    for (int r = 0; r < s.kh; r++) {
        const int row = top + r * s.dh;
        if ((unsigned)row >= (unsigned)s.h)
            continue;
#pragma unroll 4
        for (int k = 0; k < s.kw; k++) {
            const int column = left + k * s.dw;
            if ((unsigned)column < (unsigned)s.w)
                sum += M(plane[(long long)row * s.w + column]) * M(weights[r * s.kw + k]);
        }
    }
    of.to[(at.plane * s.oh + at.part) * s.ow + at.column] = T(sum);
}

/* The gradient of the input with any windows: a place of it a thread. */
template <class T>
__global__ void __launch_bounds__(BLOCK) any_input(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    share at;
    if (!take_share(of, s.c, at))
        return;
    const T *weights = of.weight + (long long)at.channel * s.kh * s.kw, *plane = of.from + at.plane * s.oh * s.ow;
    int row, left;
    M sum = 0;
    const int first = first_tap(at.column + s.pw, s.dw, s.sw, s.kw, &left);
    for (int r = first_tap(at.part + s.ph, s.dh, s.sh, s.kh, &row); r < s.kh;
         r += of.rows.taps, row -= of.rows.windows) {
        if ((unsigned)row >= (unsigned)s.oh)
            continue;
        for (int k = first, column = left; k < s.kw; k += of.columns.taps, column -= of.columns.windows)
            if ((unsigned)column < (unsigned)s.ow)
                sum += M(plane[(long long)row * s.ow + column]) * M(weights[r * s.kw + k]);
    }
    of.to[(at.plane * s.h + at.part) * s.w + at.column] = T(sum);
}

/* All planes, so many threads down and across each; as many planes a launch as threads can be counted. */
template <class T>
void launch(const pc__cuda_groups &s, operands<T> of, void (*kernel)(pc__cuda_groups, operands<T>), int down,
            int across)
{
    enum { MOST = 1 << 30 };
    const long long planes = s.n * s.c;
    of.down = (unsigned)down, of.across = (unsigned)across;
    of.rows = stepping_of(s.sh, s.dh), of.columns = stepping_of(s.sw, s.dw);
    const long long items = (long long)down * across, at_once = items < MOST ? MOST / items : 1;
    for (of.first = 0; of.first < planes; of.first += at_once) {
        const long long now = planes - of.first < at_once ? planes - of.first : at_once;
        of.channel = (unsigned)(of.first % s.c);
        of.items = (unsigned)(now * items);
        (void)pc::start(kernel, (of.items + BLOCK - 1) / BLOCK, BLOCK, s.queue, s.early, s, of);
    }
}

/* Windows go from `from` to `to`. */
template <class T> void forward(const pc__cuda_groups &s, const operands<T> &of)
{
    if constexpr (sizeof(T) < sizeof(double))
        if (has_strips(s))
            return with_strips(s, [&](auto k, auto stride, auto gaps) {
                launch(s, of, strips<T, decltype(k)::value, decltype(stride)::value, decltype(gaps)::value != 0>,
                       strips_down(s), s.ow);
            });
    launch(s, of, any<T>, s.oh, s.ow);
}

template <class T> operands<T> operands_of(const void *from, const void *weight, const void *bias, void *to)
{
    operands<T> of = {};
    of.from = (const T *)from, of.weight = (const T *)weight, of.bias = (const T *)bias, of.to = (T *)to;
    return of;
}

template <class T> void input(const pc__cuda_groups &s, const void *weight, const void *y, void *x)
{
    operands<T> of = operands_of<T>(y, weight, NULL, x);
    pc__cuda_groups back = s; /* where windows are one apart: the weights turned, over y */
    back.h = s.oh, back.w = s.ow, back.oh = s.h, back.ow = s.w;
    back.ph = s.dh * (s.kh - 1) - s.ph, back.pw = s.dw * (s.kw - 1) - s.pw;
    of.turned = true;
    if (s.sh == 1 && s.sw == 1 && has_strips(back))
        return forward(back, of);
    of.turned = false;
    if constexpr (sizeof(T) < sizeof(double))
        if (has_strips(s) && s.sh == 2 && !has_gaps(s)) {
            const int down = (s.h - 1 + s.ph) / 2 - s.ph / 2 + 1, across = (s.w - 1 + s.pw) / 2 - s.pw / 2 + 1;
            return with_window(s, [&](auto k, auto) {
                launch(s, of, squares<T, decltype(k)::value>, (down + SQUARES - 1) / SQUARES, across);
            });
        }
    launch(s, of, any_input<T>, s.h, s.w);
}

} // namespace

void pc__cuda_depthwise_planes_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias,
                                       void *y)
{
    with_number(s->dtype, [&](auto n) { forward(*s, operands_of<decltype(n)>(x, weight, bias, y)); });
}

void pc__cuda_depthwise_planes_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    with_number(s->dtype, [&](auto n) { input<decltype(n)>(*s, weight, y, x); });
}
