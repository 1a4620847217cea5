/* thin.cu: products with at most 16 columns, and by turning them at most 16 rows. There are few products for each element
 * of the large operand, so that reading it takes the time: each is read once, 16 bytes an access where they lie so,
 * whichever dimension is the one side by side in memory, by as many blocks as the chip holds: sums are cut into parts
 * where rows are few, and the block that comes last of a tile adds them up, always in the same order.
 *
 * The few columns lie in shared memory as floats. Along k, a warp's lanes lie side by side along k (along rows too where
 * k is short), each with R rows; along rows, a lane has V rows that lie side by side, and warps share k. Either way the
 * lanes' sums meet in shared memory. */
#include "cuda/matmul/thin.h"

#include "cuda/matmul/thin.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/last_block.cuh"

namespace
{

constexpr int BLOCKS = 4; /* a multiprocessor's */
constexpr int PARTS_AT_ONCE = 16;
constexpr int SPLITS_MOST = 32;   /* the last block reads all of them */
constexpr int BYTES_LEAST = 8192; /* of the large operand, a block's */

/* Sums along k: of R rows to a lane. */
template <class T, int N> struct along_k {
    static constexpr int V = 16 / sizeof(T), R = N > 8 || (N == 8 && V == 8) ? 4 : 8, OWN_ROWS = R;
    static constexpr int CHUNK = HELD / N; /* of k, at most */

    static __device__ __forceinline__ void add(const thin &p, const T *many, const T *few, int first_row, int from,
                                               int to, float *held, float (&sum)[R][N])
    {
        const int lane = threadIdx.x % LANES, k_lanes = 1 << p.k_bits, row_lanes = LANES >> p.k_bits;
        const int l = lane & (k_lanes - 1), step = V << p.k_bits;
        const int row = first_row + threadIdx.x / LANES * R * row_lanes + (lane >> p.k_bits);
        const spread at(p.wide, V, l, p.k_bits);
        const bool full = first_row + rows(p) <= p.rows;
#pragma unroll 1
        for (int chunk = from; chunk < to; chunk += 1 << p.chunk_bits) {
            const int size = min(1 << p.chunk_bits, to - chunk), padded = (size + step - 1) & ~(step - 1);
            __syncthreads();
            /* Where a lane's elements lie side by side, those of all lanes are brought together. */
            hold<T, N>(p, few, chunk, size, padded, held, [&](int k, int column) {
                const int in = k & (step - 1), place = p.wide ? in % V * k_lanes + in / V : in;
                return (column << p.chunk_bits) + k - in + place;
            });
            __syncthreads();
            const T *here = many + row * p.many_row + (chunk + at.first) * p.many_k;
#pragma unroll 1
            for (int k = 0; k < size; k += step, here += step * p.many_k) {
                vector<T, V> x[R];
                read(x, here, row_lanes * p.many_row, p.many_k << at.step_bits, p.wide, full && size - k >= step,
                     [&](int r) { return row + r * row_lanes < p.rows ? at.inside(size - k) : 0; });
#pragma unroll
                for (int v = 0; v < V; v++)
#pragma unroll
                    for (int n = 0; n < N; n++) {
                        const float f = held[(n << p.chunk_bits) + k + v * k_lanes + l];
#pragma unroll
                        for (int r = 0; r < R; r++)
                            sum[r][n] = fmaf(float(x[r].at[v]), f, sum[r][n]);
                    }
            }
        }
    }

    static __host__ __device__ int rows(const thin &p)
    {
        return WARPS * R * (LANES >> p.k_bits);
    }

    /* The total of a row of the tile and a column, of what the lanes have left in `parts`. */
    static __device__ __forceinline__ float total(const thin &p, const float *parts, int row, int column)
    {
        const int bits = 5 - p.k_bits, line = row & ((1 << bits) - 1), r = (row >> bits) % R, warp = (row >> bits) / R;
        const float *mine = parts + (warp * R * N + r * N + column) * PLACE + (line << p.k_bits);
        float sum = mine[0];
#pragma unroll 8
        for (int i = 1; i < 1 << p.k_bits; i++)
            sum += mine[i];
        return sum;
    }
};

/* Sums of V rows to a lane. */
template <class T, int N> struct along_rows {
    static constexpr int PACK = 16 / sizeof(T), V = PACK * N > OWN ? OWN / N : PACK, OWN_ROWS = V;
    static constexpr int AT_ONCE = 32 / V;         /* packs under way */
    static constexpr int LINE = N > 4 ? N + 4 : N; /* floats from one k to the next: no bank meets another */
    static constexpr int CHUNK = N > 4 ? HELD / N / 2 : HELD / N;

    static __device__ __forceinline__ void add(const thin &p, const T *many, const T *few, int first_row, int from,
                                               int to, float *held, float (&sum)[V][N])
    {
        const int lane = threadIdx.x % LANES, row_bits = 5 - p.k_bits, step = WARPS << p.k_bits;
        const int mine = (threadIdx.x / LANES << p.k_bits) + (lane >> row_bits);
        const spread at(p.wide, V, lane & ((1 << row_bits) - 1), row_bits);
        const int inside = at.inside(p.rows - first_row);
        const bool full = first_row + rows(p) <= p.rows;
        const long long between = p.many_row << at.step_bits;
        const T *line = many + (first_row + at.first) * p.many_row;
#pragma unroll 1
        for (int chunk = from; chunk < to; chunk += 1 << p.chunk_bits) {
            const int size = min(1 << p.chunk_bits, to - chunk);
            __syncthreads();
            hold<T, N>(p, few, chunk, size, size, held, [](int k, int column) { return k * LINE + column; });
            __syncthreads();
#pragma unroll 1
            for (int k = mine; k < size; k += step * AT_ONCE) {
                vector<T, V> x[AT_ONCE];
                read(x, line + (chunk + k) * p.many_k, step * p.many_k, between, p.wide,
                     full && k - mine + AT_ONCE * step <= size,
                     [&](int u) { return k + u * step < size ? inside : 0; });
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++)
                    if (k + u * step < size)
                        add(x[u], held + (k + u * step) * LINE, sum);
            }
        }
    }

    static __device__ __forceinline__ void add(const vector<T, V> &x, const float *few, float (&sum)[V][N])
    {
        constexpr int F = N < 4 ? N : 4;
#pragma unroll
        for (int n = 0; n < N; n += F) {
            const vector<float, F> f = *reinterpret_cast<const vector<float, F> *>(few + n);
#pragma unroll
            for (int v = 0; v < V; v++)
#pragma unroll
                for (int i = 0; i < F; i++)
                    sum[v][n + i] = fmaf(float(x.at[v]), f.at[i], sum[v][n + i]);
        }
    }

    static __host__ __device__ int rows(const thin &p)
    {
        return V * (LANES >> p.k_bits);
    }

    static __device__ __forceinline__ float total(const thin &p, const float *parts, int row, int column)
    {
        const int bits = 5 - p.k_bits, line = p.wide ? row / V : row & ((1 << bits) - 1);
        const int v = p.wide ? row % V : row >> bits;
        float sum = 0;
#pragma unroll 1
        for (int warp = 0; warp < WARPS; warp++)
#pragma unroll 8
            for (int i = 0; i < 1 << p.k_bits; i++)
                sum += parts[(warp * V * N + v * N + column) * PLACE + (i << bits) + line];
        return sum;
    }
};

/* What the parts of a sum make, in their order. */
__device__ inline float add_parts(const float *parts, long long step, int splits)
{
    float sum = 0;
#pragma unroll 1
    for (int first = 0; first < splits; first += PARTS_AT_ONCE) {
        float part[PARTS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            part[i] = first + i < splits ? __ldcg(parts + (first + i) * step) : 0.0f;
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            sum += part[i];
    }
    return sum;
}

template <class T, int N, template <class, int> class WAY>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    thin_kernel(const __grid_constant__ thin p, float *scratch, unsigned *counters)
{
    typedef WAY<T, N> way;
    constexpr int VALUES = way::OWN_ROWS * N, PARTS = WARPS * VALUES * PLACE;
    __shared__ alignas(16) float memory[PARTS > HELD ? PARTS : HELD];
    const int at = blockIdx.x / p.splits, split = blockIdx.x - at * p.splits;
    const int batch = at / p.tiles, tile_rows = way::rows(p), first_row = (at - batch * p.tiles) * tile_rows;
    const int from = split * p.each, to = min(from + p.each, p.k);
    const int rows = min(tile_rows, p.rows - first_row), all = rows * p.columns;
    pc::wait_for_earlier();
    float sum[way::OWN_ROWS][N] = {};
    way::add(p, static_cast<const T *>(p.many) + batch * p.many_batch,
             static_cast<const T *>(p.few) + batch * p.few_batch, first_row, from, to, memory, sum);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < way::OWN_ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
            memory[(threadIdx.x / LANES * VALUES + r * N + n) * PLACE + threadIdx.x % LANES] = sum[r][n];
    __syncthreads();
    float *parts = scratch + (long long)at * p.splits * tile_rows * N;
#pragma unroll 1
    for (int i = threadIdx.x; i < all; i += THREADS) {
        const int row = p.c_column == 1 ? i / p.columns : i % rows, column = p.c_column == 1 ? i % p.columns : i / rows;
        const float total = way::total(p, memory, row, column);
        if (p.splits > 1)
            parts[(long long)split * tile_rows * N + i] = total;
        else
            give<T>(p, batch, first_row + row, column, total);
    }
    if (p.splits == 1 || !pc::comes_last(counters + at, p.splits))
        return;
#pragma unroll 1
    for (int i = threadIdx.x; i < all; i += THREADS) {
        const int row = p.c_column == 1 ? i / p.columns : i % rows, column = p.c_column == 1 ? i % p.columns : i / rows;
        give<T>(p, batch, first_row + row, column, add_parts(parts + i, (long long)tile_rows * N, p.splits));
    }
}

/* --- which kernel, and its shape --- */

long long far(long long stride)
{
    return stride < 0 ? -stride : stride;
}

int bits_of(long long n, int most)
{
    int bits = 0;
    while (bits < most && 1LL << bits < n)
        bits++;
    return bits;
}

/* The product with its few columns as columns. */
thin turned(const pc__cuda_gemm *g)
{
    thin p = {};
    const bool turn = g->m < g->n;
    p.many = turn ? g->b : g->a, p.few = turn ? g->a : g->b;
    p.many_row = turn ? g->b_cs : g->a_rs, p.many_k = turn ? g->b_rs : g->a_cs;
    p.many_batch = turn ? g->b_batch : g->a_batch;
    p.few_column = turn ? g->a_rs : g->b_cs, p.few_k = turn ? g->a_cs : g->b_rs;
    p.few_batch = turn ? g->a_batch : g->b_batch;
    p.rows = (int)(turn ? g->n : g->m), p.columns = (int)(turn ? g->m : g->n), p.k = (int)g->k;
    p.c = g->c, p.c_row = turn ? 1 : g->n, p.c_column = turn ? g->n : 1, p.c_batch = g->m * g->n;
    p.bias = g->bias, p.bias_rows = turn, p.activation = g->activation;
    p.floats = g->wide != 0;
    p.few_by_k = p.columns == 1 || far(p.few_k) < far(p.few_column);
    return p;
}

bool is_along_k(const thin &p)
{
    return p.rows == 1 || (p.k > 1 && far(p.many_k) <= far(p.many_row));
}

/* Packs of V elements begin on whole packs. */
bool whole(const thin &p, long long step, long long line, long long batch, int size, int v)
{
    return step == 1 && line % v == 0 && batch % v == 0 && (uintptr_t)p.many % (unsigned)(v * size) == 0;
}

template <class WAY> void shape(thin *p, const pc__cuda_gemm *g, int multiprocessors, int step)
{
    const int size = g->dtype == PC__CUDA_F32 ? 4 : 2, tile = WAY::rows(*p);
    p->tiles = (p->rows + tile - 1) / tile;
    const long long base = p->tiles * g->batch, rows = p->rows < tile ? p->rows : tile;
    const long long steps = (p->k + step - 1) / step, most = p->k * rows * size / BYTES_LEAST;
    long long splits = (2LL * BLOCKS * multiprocessors + base - 1) / base;
    splits = splits > SPLITS_MOST ? SPLITS_MOST : splits;
    splits = splits > most ? most : splits;
    splits = base > PC__CUDA_THIN_COUNTERS || splits < 1 ? 1 : splits;
    p->each = (int)((steps + splits - 1) / splits) * step;
    p->splits = (p->k + p->each - 1) / p->each;
    p->chunk_bits = bits_of(p->each, bits_of(WAY::CHUNK, 30));
}

template <class T, int N> bool plan(thin *p, const pc__cuda_gemm *g, int multiprocessors)
{
    const bool by_k = is_along_k(*p);
    const long long batch = g->batch > 1 ? p->many_batch : 0;
    if (by_k) {
        typedef along_k<T, N> way;
        p->wide = whole(*p, p->many_k, p->rows > 1 ? p->many_row : 0, batch, sizeof(T), way::V);
        p->k_bits = bits_of((p->k + way::V - 1) / way::V, 5);
        shape<way>(p, g, multiprocessors, way::V << p->k_bits);
    } else {
        typedef along_rows<T, N> way;
        p->wide = whole(*p, p->many_row, p->k > 1 ? p->many_k : 0, batch, sizeof(T), way::V);
        p->k_bits = 5 - bits_of((p->rows + way::V - 1) / way::V, 5);
        shape<way>(p, g, multiprocessors, WARPS << p->k_bits);
    }
    return by_k;
}

template <class T, int N, template <class, int> class WAY>
void launch(cudaStream_t queue, const thin &p, const pc__cuda_gemm *g, int early, void *scratch, unsigned *counters)
{
    (void)pc::start(thin_kernel<T, N, WAY>, (unsigned)(p.tiles * g->batch * p.splits), THREADS, queue, early, p,
                    (float *)scratch, counters);
}

/* Queue it, or tell only how many bytes of scratch memory it takes. */
template <class T, int N>
size_t with(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early, void *scratch,
            unsigned *counters, bool run)
{
    thin p = turned(g);
    const bool by_k = plan<T, N>(&p, g, multiprocessors);
    const int tile = by_k ? along_k<T, N>::rows(p) : along_rows<T, N>::rows(p);
    if (run && by_k)
        launch<T, N, along_k>(queue, p, g, early, scratch, counters);
    else if (run)
        launch<T, N, along_rows>(queue, p, g, early, scratch, counters);
    return p.splits > 1 ? (size_t)(p.tiles * g->batch * p.splits) * (size_t)(tile * N) * sizeof(float) : 0;
}

template <class T>
size_t of_type(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early, void *scratch,
               unsigned *counters, bool run)
{
    const int64_t few = g->m < g->n ? g->m : g->n;
    if (few == 1)
        return with<T, 1>(queue, g, multiprocessors, early, scratch, counters, run);
    if (few <= 4)
        return with<T, 4>(queue, g, multiprocessors, early, scratch, counters, run);
    if (few <= 8)
        return with<T, 8>(queue, g, multiprocessors, early, scratch, counters, run);
    return with<T, 16>(queue, g, multiprocessors, early, scratch, counters, run);
}

size_t of(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early, void *scratch, unsigned *counters,
          bool run)
{
    if (g->dtype == PC__CUDA_F32)
        return of_type<float>(queue, g, multiprocessors, early, scratch, counters, run);
    if (g->dtype == PC__CUDA_F16)
        return of_type<pc::f16>(queue, g, multiprocessors, early, scratch, counters, run);
    return of_type<pc::bf16>(queue, g, multiprocessors, early, scratch, counters, run);
}

} // namespace

bool pc__cuda_thin_fits(const pc__cuda_gemm *g)
{
    const int64_t most = 1 << 29, few = g->m < g->n ? g->m : g->n;
    return g->dtype != PC__CUDA_F64 && few <= 16 && g->k > 0 && g->m < most && g->n < most && g->k < most &&
           g->batch < most / ((g->m + g->n) / 4 + 1);
}

size_t pc__cuda_thin_scratch(const pc__cuda_gemm *g, int multiprocessors)
{
    return of(NULL, g, multiprocessors, 0, NULL, NULL, false);
}

void pc__cuda_thin(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early, void *scratch,
                   unsigned *counters)
{
    (void)of(queue, g, multiprocessors, early, scratch, counters, true);
}

/* Measured on an H200. cuBLASLt does not cut the sums of a batch into parts: with few tiles its time is that of one sum,
 * ours that of reading the large operand as often as its columns ask for. Of floats with two to four columns it has no
 * kernel that is only read. */
bool pc__cuda_thin_suits(const pc__cuda_gemm *g)
{
    const bool floats = g->dtype == PC__CUDA_F32;
    if (g->k <= 16)
        return false;
    if (g->batch == 1)
        return floats && g->n > 1 && g->n <= 4 && g->m >= 25;
    const int64_t few = g->m < g->n ? g->m : g->n, rows = g->m < g->n ? g->n : g->m;
    const double megabytes = (double)g->batch * (double)rows * (double)g->k * (floats ? 4e-6 : 2e-6);
    const double each = few == 1 ? 0.35 : few <= 4 ? 0.8 : few <= 8 ? (floats ? 0.6 : 1.5) : floats ? 1.2 : 4;
    const double ours = (floats ? 7 : 9) + megabytes * each, theirs = (floats ? 8e-3 : 4.5e-3) * (double)g->k;
    return g->batch * ((rows + 63) / 64) < 132 && ours < theirs; /* microseconds */
}
