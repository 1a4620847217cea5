/* unrelu.cu: a thread has 16 bytes of columns and every n-th row of its block's rows; sums go on in float32,
 * from threads to blocks through shared memory, from blocks to the result in a second kernel. */
#include "cuda/conv/unrelu.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/load.cuh"

namespace
{

enum { THREADS = 256, AT_ONCE = 4 /* rows of a thread in flight */, ROWS_LEAST = 64, BLOCKS_MOST = 512 };
enum { SUM_COLUMNS = 32, SUM_LANES = 32 };

int blocks_for(long long rows)
{
    const long long blocks = (rows + ROWS_LEAST - 1) / ROWS_LEAST;
    return (int)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST);
}

/* part[block][column]: the sums of a block's rows. blockDim.x: accesses side by side in a block. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    unrelu(const T *dy, const T *y, T *dz, float *part, long long rows, int columns)
{
    typedef vector<T, N> pack;
    __shared__ float sums[THREADS][N];
    const int column = (blockIdx.y * blockDim.x + threadIdx.x) * N;
    const long long share = (rows + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * share;
    const long long end = begin + share < rows ? begin + share : rows, stride = (long long)columns;
    float sum[N] = {};
    pc::wait_for_earlier();
    for (long long row = begin + threadIdx.y; column < columns && row < end; row += AT_ONCE * blockDim.y) {
        pack g[AT_ONCE], v[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * blockDim.y < end) {
                const long long at = (row + i * blockDim.y) * stride + column;
                g[i] = *reinterpret_cast<const pack *>(dy + at);
                v[i] = *reinterpret_cast<const pack *>(y + at);
            }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * blockDim.y < end) {
#pragma unroll
                for (int k = 0; k < N; k++) {
                    g[i].at[k] = float(v[i].at[k]) <= 0 ? T(0.f) : g[i].at[k];
                    sum[k] += float(g[i].at[k]);
                }
                *reinterpret_cast<pack *>(dz + (row + i * blockDim.y) * stride + column) = g[i];
            }
    }
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < N; k++)
        sums[thread][k] = sum[k];
    __syncthreads();
    if (threadIdx.y || column >= columns)
        return;
    for (int i = 1; i < blockDim.y; i++)
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += sums[i * blockDim.x + thread][k];
#pragma unroll
    for (int k = 0; k < N; k++)
        part[(long long)blockIdx.x * columns + column + k] = sum[k];
}

template <class T>
__global__ void __launch_bounds__(SUM_COLUMNS *SUM_LANES) add_parts(const float *part, T *to, int parts, int columns)
{
    __shared__ float sums[SUM_LANES][SUM_COLUMNS];
    const int column = blockIdx.x * SUM_COLUMNS + threadIdx.x;
    float sum = 0;
    pc::wait_for_earlier();
    for (int i = threadIdx.y; column < columns && i < parts; i += SUM_LANES)
        sum += part[(long long)i * columns + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= columns)
        return;
    for (int i = 1; i < SUM_LANES; i++)
        sum += sums[i][threadIdx.x];
    to[column] = T(sum);
}

template <class T> void launch(const pc__cuda_unrelu *u, float *part)
{
    constexpr int N = 16 / sizeof(T);
    const unsigned accesses = (unsigned)(u->columns / N);
    unsigned across = 1;
    while (across < accesses && across < THREADS)
        across *= 2;
    const int blocks = blocks_for(u->rows);
    const dim3 grid(blocks, (accesses + across - 1) / across), threads(across, THREADS / across);
    (void)pc::start_grid(unrelu<T, N>, grid, threads, 0, u->queue, u->early, (const T *)u->dy, (const T *)u->y,
                         (T *)u->dz, part, (long long)u->rows, u->columns);
    (void)pc::start_grid(add_parts<T>, dim3((u->columns + SUM_COLUMNS - 1) / SUM_COLUMNS), dim3(SUM_COLUMNS, SUM_LANES),
                         0, u->queue, u->early, (const float *)part, (T *)u->dbias, blocks, u->columns);
}

} // namespace

bool pc__cuda_has_unrelu(int64_t columns, int dtype)
{
    return dtype == PC__CUDA_F32 ? columns % 4 == 0
                                 : (dtype == PC__CUDA_F16 || dtype == PC__CUDA_BF16) && columns % 8 == 0;
}

size_t pc__cuda_unrelu_scratch(int64_t rows, int64_t columns)
{
    return (size_t)blocks_for(rows) * (size_t)columns * sizeof(float);
}

void pc__cuda_unrelu_and_sum(const pc__cuda_unrelu *u, void *scratch)
{
    switch (u->dtype) {
    case PC__CUDA_F16:
        return launch<pc::f16>(u, (float *)scratch);
    case PC__CUDA_BF16:
        return launch<pc::bf16>(u, (float *)scratch);
    default:
        return launch<float>(u, (float *)scratch);
    }
}
