/* depthwise_weight_tiles.cu: weights' gradients of convolutions of each channel alone with common windows, channels last. A block
 * stays, and has some packs of channels and some rows of the kernel: tiles of dy and of what their windows see travel to shared
 * memory while the ones before are multiplied. A thread keeps sums for its pack; those of the block are one part of what is added
 * up in order by another kernel. */
#include "cuda/conv/depthwise_sums.cuh"
#include "cuda/conv/depthwise_tiles.cuh"

namespace
{

/* dy beside what its windows see. */
struct pair_of_tiles {
    tiling by;
    int results; /* of a tile */
    pc__cuda_divisor wide;
};

/* Products of a strip of dy with what its windows see, rows of `line`: x[0] is under its first result, of the first of R rows of the
 * kernel. */
template <class T, int N, int K, int S, int R>
__device__ __forceinline__ void add_products(const vector<T, N> *x, int line, const vector<T, N> *dy,
                                             pc::math<T> (&sum)[R * K][N])
{
    typedef pc::math<T> M;
    constexpr int SEEN = COLUMNS<K, S>;
    M g[PLACES][N];
    take_packs<T, N, PLACES>(dy, blockDim.x, g);
#pragma unroll
    for (int r = 0; r < R; r++) {
        M seen[SEEN][N];
        take_packs<T, N, SEEN>(x + r * line, blockDim.x, seen);
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int j = 0; j < PLACES; j++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[r * K + k][i] += seen[j * S + k][i] * g[j][i];
    }
}

/* sums[part][channel][tap], of the kernel's rows from blockIdx.z * R on. */
template <class T, int N, int K, int S, int R>
__global__ void __launch_bounds__(THREADS / 2, R > 3 ? STAY - 1 : STAY)
    weight_tiles(const __grid_constant__ pc__cuda_groups s, const T *x, const T *y, pc::math<T> *sums,
                 const pair_of_tiles of)
{
    typedef pc::math<T> M;
    extern __shared__ __align__(16) char shared[];
    const tiling &by = of.by;
    const int lanes = blockDim.x, channel = (blockIdx.y * lanes + threadIdx.x) * N, first = blockIdx.z * R;
    vector<T, N> *const tiles = reinterpret_cast<vector<T, N> *>(shared);
    const int both = (by.pixels + of.results) * lanes;
    const bool mine = channel < s.c;
    x += mine ? channel : 0, y += mine ? channel : 0;
    const auto bring = [&](const corner &at, int buffer) {
        vector<T, N> *const to = tiles + buffer * both;
        bring_pixels<T, N>(s, x + at.picture * s.h * s.w * s.c, s.h, s.w, at.row * s.sh - s.ph + first * s.dh,
                           at.column * s.sw - s.pw, by.pixels, by.seen, mine, to);
        bring_pixels<T, N>(s, y + at.picture * s.oh * s.ow * s.c, s.oh, s.ow, at.row, at.column, of.results, of.wide,
                           mine, to + by.pixels * lanes);
    };
    M sum[R * K][N] = {};
    const auto nothing = [] {};
    each_tile(s, by, bring, nothing, [&](const corner &at, int buffer) {
        const vector<T, N> *const seen = tiles + buffer * both + threadIdx.x, *const dy = seen + by.pixels * lanes;
#pragma unroll 1
        for (int strip = threadIdx.y; strip < by.high * (int)by.strips.by; strip += blockDim.y) {
            const strip_place in = strip_in(by, strip);
            if (at.row + in.row * s.dh >= s.oh || at.column + in.column * s.dw >= s.ow)
                continue; /* no window: what lies there may be infinite */
            add_products<T, N, K, S, R>(seen + (in.row * s.sh * (int)by.seen.by + in.column * S) * lanes,
                                        (int)by.seen.by * lanes, dy + (in.row * by.wide + in.column) * lanes, sum);
        }
    });
    leave_sums<M, N, R * K>(s, sum, reinterpret_cast<M *>(shared), first * K, sums);
}

/* Rows of the kernel that a block has where there is enough to do: as many as registers hold the sums of, for each other block
 * brings the same tiles. Less work has more blocks: two rows, or one, of kernels larger than 3. */
template <class T> constexpr int rows_of_kernel(int k)
{
    return k < 7 ? k : sizeof(T) == 2 ? 4 : 2;
}

/* How the work is cut. */
struct shares {
    pair_of_tiles of;
    int lanes, groups; /* packs of channels of a block, and blocks side by side */
    int rows, rounds;  /* of the kernel */
    long long tiles;
    size_t bytes;
};

template <class T, int N> shares shares_of(const pc__cuda_groups &s)
{
    enum { SIDE_BY_SIDE = 8, WIDE = 8, HIGH = sizeof(T) == 2 ? 16 : 8 };
    shares way;
    way.lanes = lanes_of(s.c, N, SIDE_BY_SIDE), way.groups = (s.c + way.lanes * N - 1) / (way.lanes * N);
    const auto cut = [&](int high, int rows) {
        tiling &by = way.of.by;
        cut_tiles(s, high, WIDE, 1, rows, &by);
        way.rows = rows, way.rounds = (s.kh + rows - 1) / rows;
        way.of.results = by.high * by.wide, way.of.wide = pc__cuda_divisor_of(by.wide);
        way.tiles = s.n * by.down * by.across;
        way.bytes = 2 * ((size_t)by.pixels + way.of.results) * way.lanes * N * sizeof(T);
    };
    cut(HIGH, rows_of_kernel<T>(s.kw));
    if (s.kw > 3 && way.tiles * way.groups < 2 * STAY * CHIP)
        cut(HIGH, way.tiles * way.groups < CHIP ? 1 : 2);
    for (int high = HIGH / 2; way.bytes > TILES_MOST && high > 0; high /= 2)
        cut(high, way.rows);
    return way;
}

template <class T, int N> int launch_packs(const pc__cuda_groups &s, const void *x, const void *y, void *sums, int most)
{
    if (!has_tiles<T, N>(s, x, y))
        return 0;
    const shares way = shares_of<T, N>(s);
    if (way.bytes > TILES_MOST || way.groups > UINT16_MAX)
        return 0;
    const dim3 threads(way.lanes, THREADS / 2 / way.lanes);
    const size_t last = (size_t)threads.x * threads.y * N * sizeof(pc::math<T>); /* of leave_sums */
    const size_t bytes = way.bytes > last ? way.bytes : last;
    const int held = way.rows > 3 ? STAY - 1 : STAY;
    const long long resident = held * CHIP / ((long long)way.groups * way.rounds), stay = resident > 1 ? resident : 1,
                    parts = way.tiles < stay ? way.tiles : stay;
    const dim3 grid((unsigned)(parts < most ? parts : most), way.groups, way.rounds);
    with_window(s, [&](auto k, auto stride) {
        constexpr int K = decltype(k)::value, S = decltype(stride)::value, R = rows_of_kernel<T>(K);
        auto kernel = weight_tiles<T, N, K, S, R>;
        if constexpr (K > 3)
            kernel = way.rows == R ? kernel : way.rows == 2 ? weight_tiles<T, N, K, S, 2> : weight_tiles<T, N, K, S, 1>;
        (void)pc::start_grid(kernel, grid, threads, bytes, s.queue, s.early, s, (const T *)x, (const T *)y,
                             (pc::math<T> *)sums, way.of);
    });
    return (int)grid.x;
}

} // namespace

int pc__cuda_depthwise_tiles_weight(const pc__cuda_groups *s, const void *x, const void *y, void *sums, int most)
{
    int parts = 0;
    with_number(s->dtype, [&](auto number) {
        typedef decltype(number) T;
        parts = launch_packs<T, pack_of<T>()>(*s, x, y, sums, most);
    });
    return parts;
}
