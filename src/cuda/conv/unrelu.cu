/* unrelu.cu: a thread has 16 bytes of columns and every n-th row of its block's rows; sums go on in float32,
 * from threads to blocks through shared memory, from blocks to the result in a second kernel. */
#include "cuda/conv/unrelu.h"

#include "cuda/conv/column_sums.cuh"
#include "cuda/shared/load.cuh"

namespace
{

enum { AT_ONCE = 4 /* rows of a thread in flight */ };

/* part[block][column]: the sums of a block's rows. blockDim.x: accesses side by side in a block. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    unrelu(const T *dy, const T *y, T *dz, float *part, long long rows, int columns)
{
    typedef vector<T, N> pack;
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
    add_threads(sum, part, column, columns);
}

template <class T> void launch(const pc__cuda_unrelu *u, float *part)
{
    constexpr int N = 16 / sizeof(T);
    (void)pc::start_grid(unrelu<T, N>, grid_for<N>(u->rows, u->columns), block_for<N>(u->columns), 0, u->queue,
                         u->early, (const T *)u->dy, (const T *)u->y, (T *)u->dz, part, (long long)u->rows, u->columns);
    add_blocks<T>(u->queue, u->early, part, u->dbias, u->rows, u->columns);
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
