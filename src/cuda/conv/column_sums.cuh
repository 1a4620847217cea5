/* column_sums.cuh: sums over pixels of every channel, made beside something else that reads them all: threads' sums meet
 * in shared memory, blocks' in a second kernel, always in the same order. */
#ifndef PC__CUDA_CONV_COLUMN_SUMS_CUH
#define PC__CUDA_CONV_COLUMN_SUMS_CUH

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"

namespace
{

enum { THREADS = 256, ROWS_LEAST = 64, BLOCKS_MOST = 512 };
enum { SUM_COLUMNS = 32, SUM_LANES = 32 };

inline int blocks_for(long long rows)
{
    const long long blocks = (rows + ROWS_LEAST - 1) / ROWS_LEAST;
    return (int)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST);
}

/* A block is `x` accesses of N columns wide; threads below each other have the same columns. */
template <int N> inline dim3 block_for(int columns)
{
    const unsigned accesses = (unsigned)(columns / N);
    unsigned across = 1;
    while (across < accesses && across < THREADS)
        across *= 2;
    return dim3(across, THREADS / across);
}

template <int N> inline dim3 grid_for(long long rows, int columns)
{
    const unsigned accesses = (unsigned)(columns / N), across = block_for<N>(columns).x;
    return dim3((unsigned)blocks_for(rows), (accesses + across - 1) / across);
}

/* part[block][column] from the threads' sums of N columns from `column` on. */
template <int N> __device__ inline void add_threads(float (&sum)[N], float *part, int column, int columns)
{
    __shared__ float sums[THREADS][N];
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

/* to[column]: all blocks' parts. */
template <class T>
inline void add_blocks(cudaStream_t queue, int early, const float *part, void *to, long long rows, int columns)
{
    (void)pc::start_grid(add_parts<T>, dim3((columns + SUM_COLUMNS - 1) / SUM_COLUMNS), dim3(SUM_COLUMNS, SUM_LANES), 0,
                         queue, early, part, (T *)to, blocks_for(rows), columns);
}

} // namespace

#endif
