/* ladder_matmul.cu: c = a b for square matrices of float32 with sides that are multiples of 128, from a thread an
 * element to nearly the library's speed. Read it from the top: each kernel does something about what the one before
 * waited for. The library goes on with matrix units and with loads that the hardware does by itself. */
#include "cuda/lessons/ladder.h"

namespace
{

/* A thread an element of c. Threads with neighbouring numbers run together; here they are in neighbouring rows, so each
 * load of a and each store takes 32 transactions. */
__global__ void threads_down_columns(const float *a, const float *b, float *c, int n)
{
    const int64_t row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[int64_t(k) * n + column];
    c[row * n + column] = sum;
}

/* The same with neighbours in a row: they load the same number of a and neighbouring numbers of b. */
__global__ void threads_along_rows(const float *a, const float *b, float *c, int n)
{
    const int64_t column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[int64_t(k) * n + column];
    c[row * n + column] = sum;
}

/* A block of threads makes a tile of 32 x 32, and fetches what it needs a tile at a time: each number comes from memory
 * once for the block. Still two loads from shared memory for each multiply-add. */
constexpr int TILE = 32;

__global__ void shared_memory(const float *a, const float *b, float *c, int n)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        a_tile[y][x] = a[row * n + k + x];
        b_tile[y][x] = b[int64_t(k + y) * n + column];
        __syncthreads();
        for (int deep = 0; deep < TILE; deep++)
            sum += a_tile[y][deep] * b_tile[deep][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

/* A thread makes 8 results of a column: a number of b, once in a register, serves all 8. */
constexpr int EIGHT = 8, WIDE_TILE = 64, THIN = 8;

__global__ void eight_results(const float *a, const float *b, float *c, int n)
{
    __shared__ float a_tile[WIDE_TILE][THIN], b_tile[THIN][WIDE_TILE];
    const int thread = threadIdx.x; /* of 512 */
    const int x = thread % WIDE_TILE, y = thread / WIDE_TILE * EIGHT;
    const int64_t column = blockIdx.x * WIDE_TILE, row = blockIdx.y * WIDE_TILE;
    float sum[EIGHT] = {};
    for (int k = 0; k < n; k += THIN) {
        a_tile[thread / THIN][thread % THIN] = a[(row + thread / THIN) * n + k + thread % THIN];
        b_tile[thread / WIDE_TILE][x] = b[int64_t(k + thread / WIDE_TILE) * n + column + x];
        __syncthreads();
        for (int deep = 0; deep < THIN; deep++) {
            const float from_b = b_tile[deep][x];
            for (int i = 0; i < EIGHT; i++)
                sum[i] += a_tile[y + i][deep] * from_b;
        }
        __syncthreads();
    }
    for (int i = 0; i < EIGHT; i++)
        c[(row + y + i) * n + column + x] = sum[i];
}

/* A thread makes 8 x 8 results: 16 numbers from shared memory serve 64 multiply-adds. */
constexpr int SQUARE = 128, SQUARE_THREADS = 256;

/* sum += column of a_tile times row of b_tile, for each of 8 steps of depth; a_tile is [depth][row]. */
__device__ __forceinline__ void multiply(const float (*a_tile)[SQUARE], const float (*b_tile)[SQUARE], int y, int x,
                                         float (*sum)[EIGHT])
{
#pragma unroll
    for (int deep = 0; deep < THIN; deep++) {
        float from_a[EIGHT], from_b[EIGHT];
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            from_a[i] = a_tile[deep][y + i];
            from_b[i] = b_tile[deep][x + i];
        }
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                sum[i][j] += from_a[i] * from_b[j];
    }
}

__global__ void __launch_bounds__(SQUARE_THREADS) square_of_results(const float *a, const float *b, float *c, int n)
{
    __shared__ float a_tile[THIN][SQUARE], b_tile[THIN][SQUARE];
    const int thread = threadIdx.x, x = thread % 16 * EIGHT, y = thread / 16 * EIGHT;
    const int64_t column = blockIdx.x * SQUARE, row = blockIdx.y * SQUARE;
    float sum[EIGHT][EIGHT] = {};
    for (int k = 0; k < n; k += THIN) {
        for (int i = thread; i < SQUARE * THIN; i += SQUARE_THREADS) {
            a_tile[i % THIN][i / THIN] = a[(row + i / THIN) * n + k + i % THIN];
            b_tile[i / SQUARE][i % SQUARE] = b[int64_t(k + i / SQUARE) * n + column + i % SQUARE];
        }
        __syncthreads();
        multiply(a_tile, b_tile, y, x, sum);
        __syncthreads();
    }
    for (int i = 0; i < EIGHT; i++)
        for (int j = 0; j < EIGHT; j++)
            c[(row + y + i) * n + column + x + j] = sum[i][j];
}

/* The same with four numbers to every load and store, and two tiles in turn: while one is multiplied, the next one is
 * on its way through registers, and one barrier a tile is enough. A thread's 8 columns are 4 and 4, 64 apart, so that
 * the threads of a warp read different banks of shared memory. */
struct wide_tiles {
    float a[2][THIN][SQUARE], b[2][THIN][SQUARE];
};

__device__ __forceinline__ float4 four(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ void put_tile(wide_tiles &t, int turn, float4 a, float4 b)
{
    const int thread = threadIdx.x, row = thread / 2, deep = thread % 2 * 4;
    t.a[turn][deep][row] = a.x;
    t.a[turn][deep + 1][row] = a.y;
    t.a[turn][deep + 2][row] = a.z;
    t.a[turn][deep + 3][row] = a.w;
    *reinterpret_cast<float4 *>(&t.b[turn][thread / 32][thread % 32 * 4]) = b;
}

__device__ __forceinline__ void multiply_wide(const wide_tiles &t, int turn, int y, int x, float (*sum)[EIGHT])
{
#pragma unroll
    for (int deep = 0; deep < THIN; deep++) {
        const float4 a0 = four(&t.a[turn][deep][y]), a1 = four(&t.a[turn][deep][y + 64]),
                     b0 = four(&t.b[turn][deep][x]), b1 = four(&t.b[turn][deep][x + 64]);
        const float from_a[EIGHT] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w},
                    from_b[EIGHT] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                sum[i][j] += from_a[i] * from_b[j];
    }
}

__global__ void __launch_bounds__(SQUARE_THREADS, 2) wide_accesses(const float *a, const float *b, float *c, int n)
{
    __shared__ wide_tiles t;
    const int thread = threadIdx.x, x = thread % 16 * 4, y = thread / 16 * 4;
    const int64_t column = blockIdx.x * SQUARE, row = blockIdx.y * SQUARE;
    const float *from_a = a + (row + thread / 2) * n + thread % 2 * 4,
                *from_b = b + int64_t(thread / 32) * n + column + thread % 32 * 4;
    float sum[EIGHT][EIGHT] = {};
    put_tile(t, 0, four(from_a), four(from_b));
    __syncthreads();
    for (int k = 0, turn = 0; k < n; k += THIN, turn ^= 1) {
        const bool more = k + THIN < n;
        float4 next_a, next_b;
        if (more) {
            next_a = four(from_a + k + THIN);
            next_b = four(from_b + int64_t(k + THIN) * n);
        }
        multiply_wide(t, turn, y, x, sum);
        if (more)
            put_tile(t, turn ^ 1, next_a, next_b);
        __syncthreads();
    }
    for (int i = 0; i < EIGHT; i++)
        for (int j = 0; j < EIGHT; j += 4)
            *reinterpret_cast<float4 *>(c + (row + y + i % 4 + i / 4 * 64) * n + column + x + j * 16) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

} // namespace

void pc__cuda_ladder_matmul(int rung, const float *a, const float *b, float *c, int n, cudaStream_t queue)
{
    const unsigned side = unsigned(n), tiles = side / TILE;
    const bool aligned =
        (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16 == 0;
    if (rung == PC__CUDA_MATMUL_COLUMNS)
        threads_down_columns<<<dim3(tiles, side / 8), dim3(TILE, 8), 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_MATMUL_ROWS)
        threads_along_rows<<<dim3(tiles, side / 8), dim3(TILE, 8), 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_MATMUL_SHARED)
        shared_memory<<<dim3(tiles, tiles), dim3(TILE, TILE), 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_MATMUL_EIGHT)
        eight_results<<<dim3(side / WIDE_TILE, side / WIDE_TILE), 512, 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_MATMUL_SQUARE || !aligned)
        square_of_results<<<dim3(side / SQUARE, side / SQUARE), SQUARE_THREADS, 0, queue>>>(a, b, c, n);
    else
        wide_accesses<<<dim3(side / SQUARE, side / SQUARE), SQUARE_THREADS, 0, queue>>>(a, b, c, n);
}
