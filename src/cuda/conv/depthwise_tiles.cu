/* depthwise_tiles.cu: convolutions of each channel alone with common windows, channels last, and the gradient of their input where
 * the stride is 1, which is one with the kernel turned. A block has some packs of channels of tiles of results: what the windows of
 * a tile see travels to shared memory while the tile before it is computed. A thread has a pack of channels of strips of results. */
#include "cuda/conv/depthwise_tiles.cuh"

namespace
{

template <class T> struct operands {
    const T *from, *weight, *bias;
    T *to;
    bool turned;
    bool wide; /* what 16 bytes are brought of at once */
};

/* R strips one below the other, the window of whose first result begins at x[0], in rows of `line` packs. */
template <class T, int N, int K, int S, int R>
__device__ __forceinline__ void add_strips(const vector<T, N> *x, int line, const pc::math<T> *weights, int channels,
                                           pc::math<T> (&sum)[R][PLACES][N])
{
    typedef pc::math<T> M;
    constexpr int SEEN = COLUMNS<K, S>;
#pragma unroll
    for (int r = 0; r < K + R - 1; r++) {
        M seen[SEEN][N];
        take_packs<T, N, SEEN>(x + r * line, blockDim.x, seen);
#pragma unroll
        for (int t = 0; t < R * K; t++) {
            const int down = t / K, k = t % K; /* of the results, of the windows */
            if (r - down < 0 || r - down >= K)
                continue;
            const vector<M, N> weight = pack_at<M, N>(weights + ((r - down) * K + k) * channels);
#pragma unroll
            for (int j = 0; j < PLACES; j++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[down][j][i] += seen[j * S + k][i] * weight.at[i];
        }
    }
}

template <class T, int N, int K, int S, int R>
__device__ __forceinline__ void compute_tile(const pc__cuda_groups &s, const tiling &by, const corner &at,
                                             const vector<T, N> *tile, const pc::math<T> *weights, const T *bias, T *y)
{
    typedef pc::math<T> M;
    const int lanes = blockDim.x, line = by.seen.by * lanes;
    T *picture = y + at.picture * s.oh * s.ow * s.c;
#pragma unroll 1
    for (int strip = threadIdx.y; strip < by.high / R * (int)by.strips.by; strip += blockDim.y) {
        const strip_place in = strip_in(by, strip);
        const int r = in.row * R, row = at.row + r * s.dh, column = at.column + in.column * s.dw;
        if (row >= s.oh || column >= s.ow)
            continue;
        M sum[R][PLACES][N];
#pragma unroll
        for (int j = 0; j < R * PLACES; j++)
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[j / PLACES][j % PLACES][i] = bias ? M(bias[i]) : M(0);
        add_strips<T, N, K, S, R>(tile + r * s.sh * line + (in.column * S * lanes + (int)threadIdx.x), line, weights,
                                  lanes * N, sum);
        T *to = picture + ((long long)row * s.ow + column) * s.c;
#pragma unroll
        for (int j = 0; j < R * PLACES; j++)
            if (row + j / PLACES * s.dh < s.oh && column + j % PLACES * s.dw < s.ow)
                put_pack<T, N>(to + ((long long)(j / PLACES * s.dh) * s.ow + j % PLACES * s.dw) * s.c,
                               sum[j / PLACES][j % PLACES]);
    }
}

template <class T, int N, int K, int S, int R>
__global__ void __launch_bounds__(THREADS, 2)
    depthwise_tiles(const __grid_constant__ pc__cuda_groups s, const operands<T> of, const tiling by)
{
    typedef pc::math<T> M;
    extern __shared__ __align__(16) char shared[];
    M *weights = reinterpret_cast<M *>(shared);
    const int channels = blockDim.x * N, first = blockIdx.y * channels, channel = first + threadIdx.x * N;
    vector<T, N> *const tiles = reinterpret_cast<vector<T, N> *>(weights + K * K * channels);
    const bool mine = channel < s.c;
    const carrying carried = carrying_of<T, N>(of.wide);
    const auto bring = [&](const corner &at, int buffer) {
        const rectangle seen = {s.h, s.w, at.row * s.sh - s.ph, at.column * s.sw - s.pw, by.pixels};
        bring_pixels<T, N>(s, carried, of.from + at.picture * s.h * s.w * s.c, seen, by.seen,
                           tiles + buffer * by.pixels * blockDim.x);
    };
    const auto weigh = [&] { take_weights(s, of.weight, first, channels, of.turned, weights); };
    each_tile(s, by, bring, weigh, [&](const corner &at, int buffer) {
        if (mine)
            compute_tile<T, N, K, S, R>(s, by, at, tiles + buffer * by.pixels * blockDim.x, weights + threadIdx.x * N,
                                        of.bias ? of.bias + channel : NULL, of.to + channel);
    });
}

/* Rows that a thread has at once share what they see, but where windows are steps apart. What threads are few for has one of
 * them: each computes half as long. */
template <int N> int rows_at_once(const pc__cuda_groups &s)
{
    enum { FEW = 1 << 14 /* threads: four warps of a multiprocessor */ };
    return s.sw == 1 && s.sh == 1 && s.n * s.oh * strips_of(s) * (s.c / N) > 2 * FEW ? 2 : 1;
}

/* How the work is cut: `groups` of blocks with some packs of channels each, side by side. */
struct sharing_out {
    tiling by;
    int lanes, groups, threads;
    long long blocks; /* of a group */
    size_t bytes;     /* 0: it does not go */
};

/* Blocks that bring a tile of at most high x broad results each, with packs of `line` bytes of a pixel. */
template <class T, int N>
void cut_out(const pc__cuda_groups &s, bool wide, int high, int broad, int line, sharing_out *way)
{
    way->lanes = lanes_of_units<T, N>(s, wide, line / (N * (int)sizeof(T)));
    way->groups = (s.c + way->lanes * N - 1) / (way->lanes * N);
    cut_tiles(s, high, broad, rows_at_once<N>(s), s.kh, &way->by);
    way->blocks = s.n * way->by.down * way->by.across;
    way->bytes = weight_bytes<T, N>(s, way->lanes) + (size_t)way->by.pixels * way->lanes * N * sizeof(T);
}

/* Blocks stay, and bring the next tile while they compute: what that takes. */
template <class T, int N> long long time_of_stay(const pc__cuda_groups &s, sharing_out *way)
{
    way->threads = THREADS / 2;
    way->bytes += (size_t)way->by.pixels * way->lanes * N * sizeof(T);
    if (way->bytes > TILES_MOST)
        return LLONG_MAX;
    const int rows = way->threads / way->lanes, at_once = rows_at_once<N>(s), in = blocks_in(way->bytes);
    const int strips = way->by.high / at_once * (int)way->by.strips.by, products = PLACES * at_once * s.kw * s.kw;
    const long long tiles = way->blocks;
    way->blocks = held_blocks(tiles, way->groups, in);
    return time_of(tiles, way->groups, in, (strips + rows - 1) / rows * products, (way->by.pixels + rows - 1) / rows);
}

/* Work for several turns of the chip: of some tiles those that take the least time. */
template <class T, int N> sharing_out stay_for(const pc__cuda_groups &s, bool wide)
{
    enum { HIGH = 24, BROAD = 20, STEP = 4 };
    sharing_out best = {};
    long long least = LLONG_MAX;
    const auto look_at = [&](int line, int high) {
        for (int broad = BROAD - 2 * STEP; broad <= BROAD; broad += STEP) {
            sharing_out way;
            cut_out<T, N>(s, wide, high, broad, line, &way);
            const long long time = time_of_stay<T, N>(s, &way);
            if (time < least)
                least = time, best = way;
        }
    };
    for (int line = LINE; line >= LINE / 2; line /= 2)
        for (int high = STEP; high <= HIGH; high += STEP)
            look_at(line, high);
    for (int high = STEP / 2; best.bytes == 0 && high > 0; high /= 2)
        look_at(LINE / 2, high); /* windows far apart see more than there is room for */
    return best;
}

/* Little work is cut fine, by channels too, and has many threads for each tile. Sizes are what drawn shapes were fastest with on an H200
 * (docs/kernels-cuda.md). */
template <class T, int N> sharing_out share_out(const pc__cuda_groups &s, bool wide)
{
    enum { WIDE = 16, HIGH = 8, SECTOR = 32 /* bytes */ };
    sharing_out way;
    const auto cut = [&](int high, int line) {
        cut_out<T, N>(s, wide, high, WIDE, line, &way);
        return way.blocks * way.groups;
    };
    long long all = cut(HIGH, LINE);
    if (all < CHIP * 3 / 4)
        all = cut(HIGH / 2, LINE);
    for (int line = LINE / 2; all < CHIP * 3 / 4 && line >= SECTOR && line >= N * (int)sizeof(T); line /= 2)
        all = cut(HIGH / 2, line);
    way.threads = all <= 2 * CHIP ? THREADS : THREADS / 2;
    if (all > 2 * CHIP && s.oh <= 2 * HIGH)
        all = cut(2 * HIGH, LINE);
    if (all > 6 * CHIP)
        return stay_for<T, N>(s, wide);
    for (int high = way.by.high; way.bytes > TILES_MOST && high > 0; high /= 2)
        (void)cut(high, LINE / 2);
    if (way.bytes > TILES_MOST)
        way.bytes = 0;
    return way;
}

template <class T, int N> bool launch_packs(const pc__cuda_groups &s, operands<T> of)
{
    if (!has_tiles<T, N>(s, of.from, of.to))
        return false;
    of.wide = is_wide<T, N>(s, of.from, of.from);
    const sharing_out way = share_out<T, N>(s, of.wide);
    if (way.bytes == 0 || way.groups > UINT16_MAX)
        return false;
    const dim3 grid((unsigned)way.blocks, way.groups), threads(way.lanes, way.threads / way.lanes);
    with_window(s, [&](auto k, auto stride) {
        constexpr int K = decltype(k)::value, S = decltype(stride)::value;
        if constexpr (N <= NARROW || K == 3) {
            auto kernel = depthwise_tiles<T, N, K, S, 1>;
            if constexpr (S == 1)
                kernel = rows_at_once<N>(s) == 2 ? depthwise_tiles<T, N, K, S, 2> : kernel;
            (void)pc::start_grid(kernel, grid, threads, way.bytes, s.queue, s.early, s, of, way.by);
        }
    });
    return true;
}

/* 16-bit numbers have packs of eight where windows are narrow and threads enough: half of the instructions for a number. */
template <class T> bool launch(const pc__cuda_groups &s, const operands<T> &of)
{
    if constexpr (sizeof(T) == 2) {
        enum { PACK = 8, ENOUGH = 1 << 15 };
        if (s.kw == 3 && s.n * s.oh * strips_of(s) * (s.c / PACK) > ENOUGH && launch_packs<T, PACK>(s, of))
            return true;
    }
    return launch_packs<T, pack_of<T>()>(s, of);
}

} // namespace

bool pc__cuda_depthwise_tiles(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias,
                              void *to, bool turned)
{
    bool done = false;
    with_number(s->dtype, [&](auto number) {
        typedef decltype(number) T;
        done = launch<T>(*s, {(const T *)from, (const T *)weight, (const T *)bias, (T *)to, turned, false});
    });
    return done;
}
