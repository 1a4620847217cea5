/* depthwise_squares.cu: gradients of the input of convolutions of each channel alone, channels last, whose windows are two apart.
 * Of the rows and columns of a square of four places one each lies under the even taps and one under the odd ones, so what a
 * thread does is known when compiling. A thread has a pack of channels of ACROSS squares side by side; the block's weights are
 * in shared memory, [tap][channel]. */
#include "cuda/conv/depthwise_rows.cuh"

namespace
{

constexpr int ACROSS = 2;

enum { HELD = 2 /* blocks of a multiprocessor */ };

template <class T> struct operands {
    const T *y, *weight;
    T *x;
    int down, across; /* threads that a picture has */
    int turns;        /* of a thread */
};

/* What a thread's squares see of y. */
template <class T, int N, int K> struct view {
    typedef pc::math<T> M;
    enum { DOWN = (K + 1) / 2, SEEN = DOWN + ACROSS - 1, AHEAD = rows_ahead<T, N, 4 * ACROSS>(SEEN, DOWN) };
    const T *picture;
    int row, column; /* of the first square's last window; row: the first one of those seen */
    unsigned inside;
    words<T, N> line[DOWN][SEEN];

    __device__ __forceinline__ void take(const pc__cuda_groups &s, int r)
    {
        take_line<T, N>(picture + ((long long)(row + r) * s.ow + column) * s.c, s.c,
                        (unsigned)(row + r) < (unsigned)s.oh ? inside : 0u, line[r]);
    }

    __device__ __forceinline__ view(const pc__cuda_groups &s, const T *y, const place &at, bool there)
    {
        picture = y + at.picture * s.oh * s.ow * s.c;
        row = s.ph / 2 + at.row - (DOWN - 1), column = s.pw / 2 + at.column * ACROSS - (DOWN - 1);
        inside = there ? inside_of<SEEN>(column, 1, s.ow) : 0u;
#pragma unroll
        for (int r = 0; r < AHEAD; r++)
            take(s, r);
    }

    /* Row r of y lies under rows 2 (DOWN - 1 - r) and one more of the kernel; columns alike. */
    __device__ __forceinline__ void add(const pc__cuda_groups &s, const M *weights, int channels,
                                        M (&sum)[2][2 * ACROSS][N])
    {
#pragma unroll
        for (int r = 0; r < DOWN; r++) {
#pragma unroll
            for (int t = 0; t < 2 * 2 * DOWN; t++) {
                const int down = t / (2 * DOWN), tap_row = 2 * (DOWN - 1 - r) + down, tap = t % (2 * DOWN);
                if (tap_row >= K || tap >= K)
                    continue;
                const vector<M, N> weight = pack_at<M, N>(weights + (tap_row * K + tap) * channels);
#pragma unroll
                for (int q = 0; q < ACROSS; q++) {
                    const vector<T, N> y = numbers_of<T, N>(line[r][q + DOWN - 1 - tap / 2]);
#pragma unroll
                    for (int i = 0; i < N; i++)
                        sum[down][2 * q + tap % 2][i] += M(y.at[i]) * weight.at[i];
                }
            }
            if (r + AHEAD < DOWN)
                take(s, r + AHEAD);
        }
    }
};

template <class T, int N>
__device__ __forceinline__ void put_squares(const pc__cuda_groups &s, T *x, const place &at,
                                            const pc::math<T> (&sum)[2][2 * ACROSS][N])
{
    const int top = 2 * (s.ph / 2 + at.row) - s.ph, left = 2 * (s.pw / 2 + at.column * ACROSS) - s.pw;
    T *to = x + ((at.picture * s.h + top) * s.w + left) * s.c;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int k = 0; k < 2 * ACROSS; k++)
            if ((unsigned)(top + i) < (unsigned)s.h && (unsigned)(left + k) < (unsigned)s.w)
                put_pack<T, N>(to + ((long long)i * s.w + k) * s.c, sum[i][k]);
}

template <class T, int N, int K>
__global__ void __launch_bounds__(THREADS, HELD)
    depthwise_squares(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    extern __shared__ __align__(16) char shared[];
    M *weights = reinterpret_cast<M *>(shared);
    const int channels = blockDim.x * N, first = blockIdx.y * channels, channel = first + threadIdx.x * N;
    const long long squares = s.n * of.down * of.across;
    long long index = (long long)blockIdx.x * of.turns * blockDim.y + threadIdx.y;
    pc::wait_for_earlier();
#pragma unroll 1
    for (int k = 0; k < of.turns; k++, index += blockDim.y) {
        const bool mine = channel < s.c && index < squares;
        const place at = place_of(mine ? index : 0, of.down, of.across);
        view<T, N, K> seen(s, of.y + channel, at, mine);
        if (k == 0)
            take_weights(s, of.weight, first, channels, false, weights);
        if (!mine)
            return;
        M sum[2][2 * ACROSS][N] = {};
        seen.add(s, weights + threadIdx.x * N, channels, sum);
        put_squares<T, N>(s, of.x + channel, at, sum);
    }
}

template <class T, int N> bool launch_packs(const pc__cuda_groups &s, operands<T> of)
{
    if (s.c % N != 0 || ((uintptr_t)of.y | (uintptr_t)of.x) % (N * sizeof(T)) != 0 || !weights_fit<T, N>(s))
        return false;
    const sharing way = sharing_of(s.n * of.down * of.across, s.c, N, HELD);
    of.turns = way.turns;
    const auto start = [&](auto k) {
        if constexpr (N <= NARROW || decltype(k)::value == 3)
            (void)pc::start_grid(depthwise_squares<T, N, decltype(k)::value>, way.grid, dim3(way.lanes, way.rows),
                                 weight_bytes<T, N>(s, way.lanes), s.queue, s.early, s, of);
    };
    s.kw == 3 ? start(constant<3>()) : s.kw == 5 ? start(constant<5>()) : start(constant<7>());
    return true;
}

/* 16-bit numbers have packs of eight where windows are narrow and threads enough: half of the instructions for a number. */
template <class T> bool launch(const pc__cuda_groups &s, const void *weight, const void *y, void *x)
{
    constexpr long long MANY = 1 << 16;
    operands<T> of = {(const T *)y, (const T *)weight, (T *)x, 0, 0, 0};
    of.down = (s.h - 1 + s.ph) / 2 - s.ph / 2 + 1;
    of.across = ((s.w - 1 + s.pw) / 2 - s.pw / 2 + ACROSS) / ACROSS;
    if constexpr (sizeof(T) == 2)
        if (s.kw == 3 && s.n * of.down * of.across * (s.c / 8) >= MANY && launch_packs<T, 8>(s, of))
            return true;
    return launch_packs<T, pack_of<T>()>(s, of);
}

/* Square windows of 3, 5 or 7 rows, and numbers of which a place's index has no more than 32 bits. */
bool has_squares(const pc__cuda_groups &s)
{
    return s.kh == s.kw && (s.kw == 3 || s.kw == 5 || s.kw == 7) && s.sh == 2 && s.sw == 2 && s.dh == 1 && s.dw == 1 &&
           s.ph <= 1 << 28 && s.pw <= 1 << 28;
}

} // namespace

bool pc__cuda_depthwise_squares_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    bool done = false;
    with_number(s->dtype, [&](auto number) {
        if constexpr (sizeof(number) < sizeof(double))
            done = has_squares(*s) && launch<decltype(number)>(*s, weight, y, x);
    });
    return done;
}
