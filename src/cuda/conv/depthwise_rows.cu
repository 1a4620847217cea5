/* depthwise_rows.cu: convolutions of each channel alone by windows of 3 x 3, in 16 bits and where there are very many results,
 * channels last; and the gradient of their input where the stride is 1, which is one with the kernel turned. A thread has a pack of
 * channels of some strips of results along rows; the block's weights are in shared memory, [tap][channel]. */
#include "cuda/conv/depthwise_rows.cuh"

namespace
{

enum { HELD = 2 /* blocks of a multiprocessor */, WIDE = 8 /* channels of a thread */ };

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    bool turned;
    int across; /* strips side by side */
    int strips; /* of a thread */
};

/* What a strip sees of x. Square windows, all of whose rows are known when compiling: a row that may be none keeps all
 * numbers alive, far beyond the registers. Numbers of AHEAD rows are on their way before the first is waited for. */
template <class T, int N, int K, int S> struct view {
    typedef pc::math<T> M;
    enum { SEEN = COLUMNS<K, S>, AHEAD = rows_ahead<T, N, PLACES>(SEEN, K) };
    const T *picture;
    int top, left;
    unsigned inside;
    words<T, N> line[K][SEEN];

    __device__ __forceinline__ void take(const pc__cuda_groups &s, int r)
    {
        const int row = top + r * s.dh;
        take_line<T, N>(picture + ((long long)row * s.w + left) * s.c, (long long)s.dw * s.c,
                        (unsigned)row < (unsigned)s.h ? inside : 0u, line[r]);
    }

    __device__ __forceinline__ view(const pc__cuda_groups &s, const T *x, const strip &at, bool there)
    {
        picture = x + at.picture * s.h * s.w * s.c;
        top = at.row * s.sh - s.ph, left = at.column * S - s.pw;
        inside = there ? inside_of<SEEN>(left, s.dw, s.w) : 0u;
#pragma unroll
        for (int r = 0; r < AHEAD; r++)
            take(s, r);
    }

    __device__ __forceinline__ void add(const pc__cuda_groups &s, const M *weights, int channels, M (&sum)[PLACES][N])
    {
#pragma unroll
        for (int r = 0; r < K; r++) {
#pragma unroll
            for (int k = 0; k < K; k++) {
                const vector<M, N> weight = pack_at<M, N>(weights + (r * K + k) * channels);
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
__device__ __forceinline__ void put_strip(const pc__cuda_groups &s, T *y, const strip &at,
                                          const pc::math<T> (&sum)[PLACES][N])
{
    T *to = y + ((at.picture * s.oh + at.row) * s.ow + at.column) * s.c;
#pragma unroll
    for (int j = 0; j < PLACES; j++)
        if (at.column + j * s.dw < s.ow)
            put_pack<T, N>(to + (long long)j * s.dw * s.c, sum[j]);
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
        const strip at = strip_of(s, mine ? index : 0, of.across);
        view<T, N, K, S> seen(s, of.from + channel, at, mine);
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
        seen.add(s, weights + threadIdx.x * N, channels, sum);
        put_strip<T, N>(s, of.to + channel, at, sum);
    }
}

/* So many strips, of packs of channels, that tiles (depthwise_tiles.cu) have no turns left over; and lines of memory for each. */
bool is_large(const pc__cuda_groups &s)
{
    enum { MANY = 1 << 18, LINE = 128 };
    return s.kh == 3 && s.kw == 3 && has_rows(s, WIDE) && s.c * sizeof(uint16_t) >= LINE &&
           s.n * s.oh * strips_of(s) * (s.c / WIDE) > MANY;
}

template <class T> bool launch(const pc__cuda_groups &s, operands<T> of)
{
    if (!is_large(s) || ((uintptr_t)of.from | (uintptr_t)of.to) % (WIDE * sizeof(T)) != 0 || !weights_fit<T, WIDE>(s))
        return false;
    const sharing way = sharing_of(s.n * s.oh * strips_of(s), s.c, WIDE, HELD);
    of.across = strips_of(s), of.strips = way.turns;
    (void)pc::start_grid(s.sw == 1 ? depthwise_rows<T, WIDE, 3, 1> : depthwise_rows<T, WIDE, 3, 2>, way.grid,
                         dim3(way.lanes, way.rows), weight_bytes<T, WIDE>(s, way.lanes), s.queue, s.early, s, of);
    return true;
}

} // namespace

bool pc__cuda_depthwise_rows(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias, void *to,
                             bool turned)
{
    bool done = false;
    with_number(s->dtype, [&](auto number) {
        typedef decltype(number) T;
        if constexpr (sizeof(T) == 2)
            done = launch<T>(*s, {(const T *)from, (const T *)weight, (const T *)bias, (T *)to, turned, 0, 0});
    });
    return done;
}
