/* depthwise.cu: convolutions of each channel alone with any windows, and the gradient of their input. A thread has a pack of neighbouring
 * channels at a few places; the block's weights are in shared memory, [tap][channel]. */
#include "cuda/conv/depthwise.cuh"

namespace
{

enum { HELD = 4 /* blocks of a multiprocessor */ };

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    int places;           /* of a thread */
    stepping down, along; /* of the gradient of the input */
};

/* Those of the taps that lie within x. */
template <class T, int N>
__device__ __forceinline__ void add_window(const pc__cuda_groups &s, const T *x, const place &at, int channel,
                                           const pc::math<T> *weight, int channels, pc::math<T> (&sum)[N])
{
    const T *picture = x + at.picture * s.h * s.w * s.c + channel;
    const int top = at.row * s.sh - s.ph, left = at.column * s.sw - s.pw;
    for (int r = 0; r < s.kh; r++) {
        const int row = top + r * s.dh;
        if ((unsigned)row >= (unsigned)s.h)
            continue;
        for (int k = 0; k < s.kw; k++) {
            const int column = left + k * s.dw;
            if ((unsigned)column >= (unsigned)s.w)
                continue;
            const vector<T, N> value = pack_at<T, N>(picture + (row * s.w + column) * s.c);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += pc::math<T>(value.at[i]) * weight[(r * s.kw + k) * channels + i];
        }
    }
}

/* What windows on a place of x lie on, of y: each tap of one of them. */
template <class T, int N>
__device__ __forceinline__ void add_windows(const pc__cuda_groups &s, const T *y, const place &at, int channel,
                                            const stepping &down, const stepping &along, const pc::math<T> *weight,
                                            int channels, pc::math<T> (&sum)[N])
{
    const T *picture = y + at.picture * s.oh * s.ow * s.c + channel;
    int row, left;
    const int first = first_tap(at.column + s.pw, s.dw, s.sw, s.kw, &left);
    for (int r = first_tap(at.row + s.ph, s.dh, s.sh, s.kh, &row); r < s.kh; r += down.taps, row -= down.windows) {
        if ((unsigned)row >= (unsigned)s.oh)
            continue;
        for (int k = first, column = left; k < s.kw; k += along.taps, column -= along.windows) {
            if ((unsigned)column >= (unsigned)s.ow)
                continue;
            const vector<T, N> value = pack_at<T, N>(picture + (row * s.ow + column) * s.c);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += pc::math<T>(value.at[i]) * weight[(r * s.kw + k) * channels + i];
        }
    }
}

template <class T, int N, bool FORWARD>
__global__ void __launch_bounds__(THREADS) depthwise(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    __shared__ M weights[WEIGHTS_MOST * sizeof(float) / sizeof(M)];
    const int channels = blockDim.x * N, first = blockIdx.y * channels, channel = first + threadIdx.x * N;
    const int height = FORWARD ? s.oh : s.h, width = FORWARD ? s.ow : s.w;
    const long long pixels = s.n * height * width;
    pc::wait_for_earlier();
    take_weights(s, of.weight, first, channels, false, weights);
    if (channel >= s.c)
        return;
    for (int i = 0; i < of.places; i++) {
        const long long pixel = ((long long)blockIdx.x * of.places + i) * blockDim.y + threadIdx.y;
        if (pixel >= pixels)
            return;
        const place at = place_of(pixel, height, width);
        M sum[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] = of.bias ? M(of.bias[channel + k]) : M(0);
        if (FORWARD)
            add_window<T, N>(s, of.from, at, channel, weights + threadIdx.x * N, channels, sum);
        else
            add_windows<T, N>(s, of.from, at, channel, of.down, of.along, weights + threadIdx.x * N, channels, sum);
        vector<T, N> out;
#pragma unroll
        for (int k = 0; k < N; k++)
            out.at[k] = T(sum[k]);
        *reinterpret_cast<vector<T, N> *>(of.to + pixel * s.c + channel) = out;
    }
}

template <class T, int N, bool FORWARD> void launch_packs(const pc__cuda_groups *s, operands<T> of)
{
    const sharing way = sharing_of(FORWARD ? s->n * s->oh * s->ow : s->n * s->h * s->w, s->c, N, HELD);
    of.places = way.turns;
    of.down = stepping_of(s->sh, s->dh), of.along = stepping_of(s->sw, s->dw);
    (void)pc::start_grid(depthwise<T, N, FORWARD>, way.grid, dim3(way.lanes, way.rows), 0, s->queue, s->early, *s, of);
}

template <class T, bool FORWARD>
void launch(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias, void *to)
{
    constexpr int N = pack_of<T>();
    const operands<T> of = {(const T *)from, (const T *)weight, (const T *)bias, (T *)to, 0, {}, {}};
    const bool packs = s->c % N == 0 && ((uintptr_t)from | (uintptr_t)to) % (N * sizeof(T)) == 0 &&
                       s->kh * s->kw * lanes_of(s->c, N) * N * sizeof(pc::math<T>) <= WEIGHTS_MOST * sizeof(float);
    packs ? launch_packs<T, N, FORWARD>(s, of) : launch_packs<T, 1, FORWARD>(s, of);
}

template <bool FORWARD>
void launch_type(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias, void *to)
{
    with_number(s->dtype, [&](auto number) { launch<decltype(number), FORWARD>(s, from, weight, bias, to); });
}

/* The shape of the gradient of the input, where the stride is 1: a convolution of y with the kernel turned. */
pc__cuda_groups turned_back(const pc__cuda_groups &s)
{
    pc__cuda_groups back = s;
    back.h = s.oh, back.w = s.ow, back.oh = s.h, back.ow = s.w;
    back.ph = s.dh * (s.kh - 1) - s.ph, back.pw = s.dw * (s.kw - 1) - s.pw;
    return back;
}

/* Common windows, forward or turned. */
bool by_strips(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias, void *to, bool turned)
{
    return pc__cuda_depthwise_rows(s, from, weight, bias, to, turned) ||
           pc__cuda_depthwise_tiles(s, from, weight, bias, to, turned);
}

bool by_strips_back(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    const pc__cuda_groups back = turned_back(*s);
    return s->sh == 1 && s->sw == 1 && by_strips(&back, y, weight, NULL, x, true);
}

} // namespace

bool pc__cuda_depthwise_fits(const pc__cuda_groups *s)
{
    const int number = s->dtype == PC__CUDA_F64 ? 2 : 1; /* in floats */
    return s->groups == s->c && s->o == s->c && s->c > 1 &&
           (s->planes || (long long)s->kh * s->kw * lanes_of(s->c, 1) * number <= WEIGHTS_MOST);
}

void pc__cuda_depthwise_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias, void *y)
{
    if (s->planes)
        pc__cuda_depthwise_planes_forward(s, x, weight, bias, y);
    else if (!by_strips(s, x, weight, bias, y, false))
        launch_type<true>(s, x, weight, bias, y);
}

void pc__cuda_depthwise_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    if (s->planes)
        pc__cuda_depthwise_planes_input(s, weight, y, x);
    else if (!by_strips_back(s, weight, y, x) && !pc__cuda_depthwise_squares_input(s, weight, y, x))
        launch_type<false>(s, y, weight, NULL, x);
}
