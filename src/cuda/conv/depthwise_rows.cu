/* depthwise_rows.cu: convolutions of each channel alone with common windows, and the gradient of their input where the stride is
 * 1, which is one with the kernel turned. A thread has a pack of channels of some strips of results; the block's weights are in
 * shared memory, [tap][channel].
 *
 * Strips lie along rows. Of few channels the neighbours of a warp would read places far apart then: strips stand upright there,
 * side by side in memory. It is the same with rows for columns, but for the steps from one to the next. */
#include "cuda/conv/depthwise_rows.cuh"

namespace
{

enum { HELD = 2 /* blocks of a multiprocessor */ };

/* From one row to the next, and from one column, in elements. */
struct steps {
    int row, column;
};

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    bool turned, upright;
    int across; /* strips side by side */
    int strips; /* of a thread */
    steps in, out, tap;
};

/* What a strip sees of x. Square windows, all of whose rows are known when compiling: a row that may be none keeps all
 * numbers alive, far beyond the registers. Numbers of AHEAD rows are on their way before the first is waited for. */
template <class T, int N, int K, int S> struct view {
    typedef pc::math<T> M;
    enum { SEEN = COLUMNS<K, S>, AHEAD = rows_ahead<T, N, PLACES>(SEEN, K) };
    const T *picture;
    steps by;
    int top, left;
    unsigned inside;
    words<T, N> line[K][SEEN];

    __device__ __forceinline__ void take(const pc__cuda_groups &s, int r)
    {
        const int row = top + r * s.dh;
        take_line<T, N>(picture + (long long)row * by.row + (long long)left * by.column, (long long)s.dw * by.column,
                        (unsigned)row < (unsigned)s.h ? inside : 0u, line[r]);
    }

    __device__ __forceinline__ view(const pc__cuda_groups &s, const steps &by, const T *x, const strip &at, bool there)
        : by(by)
    {
        picture = x + at.picture * s.h * s.w * s.c;
        top = at.row * s.sh - s.ph, left = at.column * S - s.pw;
        inside = there ? inside_of<SEEN>(left, s.dw, s.w) : 0u;
#pragma unroll
        for (int r = 0; r < AHEAD; r++)
            take(s, r);
    }

    __device__ __forceinline__ void add(const pc__cuda_groups &s, const M *weights, const steps &tap,
                                        M (&sum)[PLACES][N])
    {
#pragma unroll
        for (int r = 0; r < K; r++) {
#pragma unroll
            for (int k = 0; k < K; k++) {
                const vector<M, N> weight = pack_at<M, N>(weights + r * tap.row + k * tap.column);
#pragma unroll
                for (int j = 0; j < PLACES; j++) {
                    const vector<T, N> x = numbers_of<T, N>(line[r][j * S + k]);
#pragma unroll
                    for (int i = 0; i < N; i++)
                        sum[j][i] += M(x.at[i]) * weight.at[i];
                }
            }
            if (r + AHEAD < K)
                take(s, r + AHEAD);
        }
    }
};

template <class T, int N>
__device__ __forceinline__ void put_strip(const pc__cuda_groups &s, const steps &by, T *y, const strip &at,
                                          const pc::math<T> (&sum)[PLACES][N])
{
    T *to = y + at.picture * s.oh * s.ow * s.c + (long long)at.row * by.row + (long long)at.column * by.column;
#pragma unroll
    for (int j = 0; j < PLACES; j++)
        if (at.column + j * s.dw < s.ow)
            put_pack<T, N>(to + (long long)j * s.dw * by.column, sum[j]);
}

/* Numbers of the first strip are on their way while the weights are brought in. */
template <class T, int N, int K, int S>
__global__ void __launch_bounds__(THREADS, HELD)
    depthwise_rows(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    extern __shared__ __align__(16) char shared[];
    M *weights = reinterpret_cast<M *>(shared);
    const int channels = blockDim.x * N, first = blockIdx.y * channels, channel = first + threadIdx.x * N;
    const long long strips = s.n * s.oh * of.across;
    long long index = (long long)blockIdx.x * of.strips * blockDim.y + threadIdx.y;
    pc::wait_for_earlier();
#pragma unroll 1
    for (int k = 0; k < of.strips; k++, index += blockDim.y) {
        const bool mine = channel < s.c && index < strips;
        const strip at = strip_of(s, mine ? index : 0, of.across, of.upright);
        view<T, N, K, S> seen(s, of.in, of.from + channel, at, mine);
        if (k == 0)
            take_weights(s, of.weight, first, channels, of.turned, weights);
        if (!mine)
            return;
        M sum[PLACES][N];
#pragma unroll
        for (int j = 0; j < PLACES; j++)
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[j][i] = of.bias ? M(of.bias[channel + i]) : M(0);
        seen.add(s, weights + threadIdx.x * N, of.tap, sum);
        put_strip<T, N>(s, of.out, of.to + channel, at, sum);
    }
}

pc__cuda_groups with_rows_for_columns(pc__cuda_groups s)
{
    const pc__cuda_groups was = s;
    s.h = was.w, s.w = was.h, s.oh = was.ow, s.ow = was.oh;
    s.sh = was.sw, s.sw = was.sh, s.dh = was.dw, s.dw = was.dh, s.ph = was.pw, s.pw = was.ph;
    return s;
}

/* Where neighbours have less than a cache line of channels, unless too many places of upright strips would be none. */
template <class T, int N> bool stand_upright(const pc__cuda_groups &s, const pc__cuda_groups &upright)
{
    enum { LINE = 128 };
    return s.c * sizeof(T) < LINE && has_rows(upright, N) &&
           8ll * upright.oh * strips_of(upright) <= 9ll * s.oh * strips_of(s);
}

steps steps_of(bool upright, int width, int each)
{
    return upright ? steps{each, width * each} : steps{width * each, each};
}

template <class T, int N> bool launch_packs(pc__cuda_groups s, operands<T> of)
{
    if (s.kh != s.kw || !has_rows(s, N) || ((uintptr_t)of.from | (uintptr_t)of.to) % (N * sizeof(T)) != 0 ||
        !weights_fit<T, N>(s))
        return false;
    const pc__cuda_groups upright = with_rows_for_columns(s);
    of.upright = stand_upright<T, N>(s, upright);
    of.in = steps_of(of.upright, s.w, s.c), of.out = steps_of(of.upright, s.ow, s.c);
    s = of.upright ? upright : s;
    of.across = strips_of(s);
    const sharing way = sharing_of(s.n * s.oh * of.across, s.c, N, HELD);
    of.strips = way.turns;
    of.tap = steps_of(of.upright, s.kw, way.lanes * N);
    with_window(s, [&](auto k, auto stride) {
        if constexpr (N <= NARROW || decltype(k)::value == 3)
            (void)pc::start_grid(depthwise_rows<T, N, decltype(k)::value, decltype(stride)::value>, way.grid,
                                 dim3(way.lanes, way.rows), weight_bytes<T, N>(s, way.lanes), s.queue, s.early, s, of);
    });
    return true;
}

/* 16-bit numbers have packs of eight where these are threads enough for the chip: half of the instructions for a number. Of
 * more than three columns registers do not hold them. */
template <class T> bool launch(const pc__cuda_groups &s, const operands<T> &of)
{
    if constexpr (sizeof(T) == 2)
        if (s.kw == 3 && has_rows(s, 8) && s.n * s.oh * strips_of(s) * (s.c / 8) >= MANY && launch_packs<T, 8>(s, of))
            return true;
    return launch_packs<T, pack_of<T>()>(s, of);
}

template <class T>
bool launch_as(const pc__cuda_groups &s, const void *from, const void *weight, const void *bias, void *to, bool turned)
{
    return launch<T>(s,
                     {(const T *)from, (const T *)weight, (const T *)bias, (T *)to, turned, false, 0, 0, {}, {}, {}});
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
