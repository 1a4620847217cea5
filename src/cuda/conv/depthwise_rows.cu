/* depthwise_rows.cu: convolutions of each channel alone with common windows, and the gradient of their input where the stride is
 * 1, which is one with the kernel turned. A thread has a pack of channels of some strips of results; the block's weights are in
 * shared memory, [tap][channel]. */
#include "cuda/conv/depthwise_rows.cuh"

namespace
{

enum { STRIPS_MOST = 4 /* of a thread */, NARROW = 4 /* channels of a thread */ };

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    bool turned;
    int across; /* strips side by side */
    int strips; /* of a thread */
};

/* Square windows, all of whose rows are known when compiling: a row that may be none keeps all numbers alive, far beyond
 * the registers. Numbers of AHEAD rows are on their way before the first is waited for. */
template <class T, int N, int K, int S>
__device__ __forceinline__ void add_strip(const pc__cuda_groups &s, const T *picture, const strip &at,
                                          const pc::math<T> *weights, int channels, pc::math<T> (&sum)[PLACES][N])
{
    typedef pc::math<T> M;
    constexpr int SEEN = COLUMNS<K, S>, AHEAD = N > NARROW ? 1 : K < 5 ? K : 2; /* rows */
    const int top = at.row * s.sh - s.ph, left = at.column * S - s.pw;
    const long long step = (long long)s.dw * s.c;
    const unsigned inside = inside_of<SEEN>(left, s.dw, s.w);
    vector<T, N> line[K][SEEN];
    const auto take = [&](int r) {
        const int row = top + r * s.dh;
        take_line<T, N>(picture + ((long long)row * s.w + left) * s.c, step,
                        (unsigned)row < (unsigned)s.h ? inside : 0u, line[r]);
    };
#pragma unroll
    for (int r = 0; r < AHEAD; r++)
        take(r);
#pragma unroll
    for (int r = 0; r < K; r++) {
#pragma unroll
        for (int k = 0; k < K; k++) {
            const vector<M, N> weight = pack_at<M, N>(weights + (r * K + k) * channels);
#pragma unroll
            for (int j = 0; j < PLACES; j++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[j][i] += M(line[r][j * S + k].at[i]) * weight.at[i];
        }
        if (r + AHEAD < K)
            take(r + AHEAD);
    }
}

template <class T, int N, int K, int S>
__global__ void __launch_bounds__(THREADS, 2)
    depthwise_rows(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    __shared__ alignas(16) M weights[WEIGHTS_MOST * sizeof(float) / sizeof(M)];
    const int channels = blockDim.x * N, first = blockIdx.y * channels, channel = first + threadIdx.x * N;
    const long long strips = s.n * s.oh * of.across;
    pc::wait_for_earlier();
    take_weights(s, of.weight, first, channels, of.turned, weights);
    if (channel >= s.c)
        return;
    M bias[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        bias[i] = of.bias ? M(of.bias[channel + i]) : M(0);
#pragma unroll 1
    for (int k = 0; k < of.strips; k++) {
        const long long index = ((long long)blockIdx.x * of.strips + k) * blockDim.y + threadIdx.y;
        if (index >= strips)
            return;
        const strip at = strip_of(s, index, of.across);
        M sum[PLACES][N];
#pragma unroll
        for (int j = 0; j < PLACES; j++)
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[j][i] = bias[i];
        add_strip<T, N, K, S>(s, of.from + at.picture * s.h * s.w * s.c + channel, at, weights + threadIdx.x * N,
                              channels, sum);
        const long long step = (long long)s.dw * s.c;
        T *to = of.to + ((at.picture * s.oh + at.row) * s.ow + at.column) * s.c + channel;
#pragma unroll
        for (int j = 0; j < PLACES; j++)
            if (at.column + j * s.dw < s.ow) {
                vector<T, N> out;
#pragma unroll
                for (int i = 0; i < N; i++)
                    out.at[i] = T(sum[j][i]);
                *reinterpret_cast<vector<T, N> *>(to + j * step) = out;
            }
    }
}

template <class T, int N> bool launch_packs(const pc__cuda_groups &s, operands<T> of)
{
    const int lanes = lanes_of(s.c, N), rows = THREADS / lanes, channels = lanes * N;
    if (s.kh != s.kw || !has_rows(s, N) || ((uintptr_t)of.from | (uintptr_t)of.to) % (N * sizeof(T)) != 0 ||
        (long long)s.kh * s.kw * channels * (long long)sizeof(pc::math<T>) > WEIGHTS_MOST * (long long)sizeof(float))
        return false;
    of.across = strips_of(s);
    const long long strips = s.n * s.oh * of.across;
    of.strips = turns_of(strips, rows, STRIPS_MOST);
    const long long block = (long long)rows * of.strips;
    const dim3 grid((unsigned)((strips + block - 1) / block), (unsigned)((s.c + channels - 1) / channels));
    with_window(s, [&](auto k, auto stride) {
        if constexpr (N <= NARROW || decltype(k)::value == 3)
            (void)pc::start_grid(depthwise_rows<T, N, decltype(k)::value, decltype(stride)::value>, grid,
                                 dim3(lanes, rows), 0, s.queue, s.early, s, of);
    });
    return true;
}

/* 16-bit numbers have packs of eight where these are threads enough for the chip: half of the instructions for a number. Of
 * more than three columns registers do not hold them. */
template <class T> bool launch(const pc__cuda_groups &s, const operands<T> &of)
{
    constexpr long long MANY = 1 << 16; /* threads */
    if constexpr (sizeof(T) == 2)
        if (s.kw == 3 && has_rows(s, 8) && s.n * s.oh * strips_of(s) * (s.c / 8) >= MANY && launch_packs<T, 8>(s, of))
            return true;
    return launch_packs<T, pack_of<T>()>(s, of);
}

template <class T>
bool launch_as(const pc__cuda_groups &s, const void *from, const void *weight, const void *bias, void *to, bool turned)
{
    return launch<T>(s, {(const T *)from, (const T *)weight, (const T *)bias, (T *)to, turned, 0, 0});
}

} // namespace

bool pc__cuda_depthwise_rows_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias,
                                     void *y)
{
    bool done = false;
    with_number(s->dtype, [&](auto number) { done = launch_as<decltype(number)>(*s, x, weight, bias, y, false); });
    return done;
}

bool pc__cuda_depthwise_rows_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    pc__cuda_groups back = *s;
    bool done = false;
    if (s->sh != 1 || s->sw != 1)
        return false;
    back.h = s->oh, back.w = s->ow, back.oh = s->h, back.ow = s->w;
    back.ph = s->dh * (s->kh - 1) - s->ph, back.pw = s->dw * (s->kw - 1) - s->pw;
    with_number(s->dtype, [&](auto number) { done = launch_as<decltype(number)>(back, y, weight, NULL, x, true); });
    return done;
}
