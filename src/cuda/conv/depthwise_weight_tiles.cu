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
    int results; /* of a tile, */
    pc__cuda_divisor in_row;
    bool wide; /* what 16 bytes are brought of at once */
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
    const int lanes = blockDim.x, first = blockIdx.z * R;
    vector<T, N> *const tiles = reinterpret_cast<vector<T, N> *>(shared);
    const int both = (by.pixels + of.results) * lanes;
    const carrying carried = carrying_of<T, N>(of.wide);
    const auto bring = [&](const corner &at, int buffer) {
        vector<T, N> *const to = tiles + buffer * both;
        const rectangle seen = {s.h, s.w, at.row * s.sh - s.ph + first * s.dh, at.column * s.sw - s.pw, by.pixels};
        const rectangle results = {s.oh, s.ow, at.row, at.column, of.results};
        bring_pixels<T, N>(s, carried, x + at.picture * s.h * s.w * s.c, seen, by.seen, to);
        bring_pixels<T, N>(s, carried, y + at.picture * s.oh * s.ow * s.c, results, of.in_row, to + by.pixels * lanes);
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
    long long tiles, parts;
    size_t bytes;
};

/* Threads of a block that has so many packs side by side, one below the other. */
inline int rows_of_threads(int lanes)
{
    return THREADS / 2 / lanes;
}

/* Tiles of at most high x broad results, for `rows` of the kernel at once. */
template <class T, int N> void cut_shares(const pc__cuda_groups &s, int high, int broad, int rows, shares *way)
{
    tiling &by = way->of.by;
    cut_tiles(s, high, broad, 1, rows, &by);
    way->rows = rows, way->rounds = (s.kh + rows - 1) / rows;
    way->of.results = by.high * by.wide, way->of.in_row = pc__cuda_divisor_of(by.wide);
    way->tiles = s.n * by.down * by.across;
    way->bytes = 2 * ((size_t)by.pixels + way->of.results) * way->lanes * N * sizeof(T);
    const size_t last = (size_t)way->lanes * rows_of_threads(way->lanes) * N * sizeof(pc::math<T>) *
                        taps_at_once(rows * s.kw); /* of leave_sums */
    way->bytes = way->bytes > last ? way->bytes : last;
}

/* What the tiles take, and blocks that stay for them. */
template <class T> long long time_of_shares(const pc__cuda_groups &s, shares *way)
{
    if (way->bytes > TILES_MOST)
        return LLONG_MAX;
    const int fit = blocks_in(way->bytes), most = way->rows > 3 ? STAY - 1 : STAY, in = fit < most ? fit : most;
    const int rows = rows_of_threads(way->lanes), strips = way->of.results / PLACES;
    way->parts = held_blocks(way->tiles, way->groups * way->rounds, in);
    return time_of(way->tiles, way->groups * way->rounds, in, (strips + rows - 1) / rows * PLACES * way->rows * s.kw,
                   (way->of.by.pixels + way->of.results + rows - 1) / rows);
}

template <class T, int N> shares shares_of(const pc__cuda_groups &s, bool wide)
{
    enum { SIDE_BY_SIDE = 8, WIDE = 8, HIGH = sizeof(T) == 2 ? 16 : 8, STEP = 4 };
    shares way, best = {};
    way.of.wide = wide;
    way.lanes = lanes_of_units<T, N>(s, wide, SIDE_BY_SIDE), way.groups = (s.c + way.lanes * N - 1) / (way.lanes * N);
    int rows = rows_of_kernel<T>(s.kw);
    cut_shares<T, N>(s, HIGH, WIDE, rows, &way);
    if (s.kw > 3 && way.tiles * way.groups < 2 * STAY * CHIP)
        rows = way.tiles * way.groups < CHIP ? 1 : 2;
    long long least = LLONG_MAX;
    const auto look_at = [&](int high) {
        for (int broad = WIDE; broad <= 2 * WIDE; broad += WIDE) {
            cut_shares<T, N>(s, high, broad, rows, &way);
            const long long time = time_of_shares<T>(s, &way);
            if (time < least)
                least = time, best = way;
        }
    };
    for (int high = HIGH + 2 * STEP; high > 0; high -= STEP)
        look_at(high);
    for (int high = STEP / 2; best.bytes == 0 && high > 0; high /= 2)
        look_at(high); /* windows far apart see more than there is room for */
    return best;
}

template <class T, int N> int launch_packs(const pc__cuda_groups &s, const void *x, const void *y, void *sums, int most)
{
    if (!has_tiles<T, N>(s, x, y))
        return 0;
    const shares way = shares_of<T, N>(s, is_wide<T, N>(s, x, y));
    if (way.bytes == 0 || way.groups > UINT16_MAX)
        return 0;
    const dim3 threads(way.lanes, rows_of_threads(way.lanes));
    const dim3 grid((unsigned)(way.parts < most ? way.parts : most), way.groups, way.rounds);
    with_window(s, [&](auto k, auto stride) {
        constexpr int K = decltype(k)::value, S = decltype(stride)::value, R = rows_of_kernel<T>(K);
        auto kernel = weight_tiles<T, N, K, S, R>;
        if constexpr (K > 3)
            kernel = way.rows == R ? kernel : way.rows == 2 ? weight_tiles<T, N, K, S, 2> : weight_tiles<T, N, K, S, 1>;
        (void)pc::start_grid(kernel, grid, threads, way.bytes, s.queue, s.early, s, (const T *)x, (const T *)y,
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
