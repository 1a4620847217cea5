/* pad.cu: copies at the memory's pace whose one side alone lies on 16 bytes: a thread reads the elements of a pack one
 * by one, all under way at once and side by side with its neighbours', and writes them in one access. */
#include "cuda/matmul/pad.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 256

namespace
{

struct pads {
    pc__cuda_pad one[PC__CUDA_PADS];
    long long packs[PC__CUDA_PADS]; /* of each */
    unsigned blocks[PC__CUDA_PADS]; /* up to and with each */
};

template <class T> __global__ void __launch_bounds__(THREADS) pad_kernel(const __grid_constant__ pads p)
{
    constexpr int V = 16 / sizeof(T);
    int which = 0;
    while (blockIdx.x >= p.blocks[which])
        which++;
    const pc__cuda_pad &pad = p.one[which];
    const unsigned block = blockIdx.x - (which ? p.blocks[which - 1] : 0);
    const long long i = (long long)block * THREADS + threadIdx.x, across = pad.to_columns / V;
    pc::wait_for_earlier();
    if (i >= p.packs[which])
        return;
    const long long line = quotient(i, across), column = (i - line * across) * V;
    const long long batch = quotient(line, pad.to_rows), row = line - batch * pad.to_rows;
    const T *from = static_cast<const T *>(pad.from) + batch * pad.batch_stride + row * pad.row_stride;
    const long long live = row < pad.rows ? pad.columns - column : 0;
    vector<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; v++)
        pack.at[v] = v < live ? from[(column + v) * pad.column_stride] : T(0);
    static_cast<vector<T, V> *>(pad.to)[i] = pack;
}

template <class T> __global__ void __launch_bounds__(THREADS) cut_kernel(const __grid_constant__ pc__cuda_cut c)
{
    constexpr int V = 16 / sizeof(T);
    const long long first = ((long long)blockIdx.x * THREADS + threadIdx.x) * V,
                    left = c.batch * c.rows * c.columns - first;
    pc::wait_for_earlier();
    if (left <= 0)
        return;
    long long line = quotient(first, c.columns), column = first - line * c.columns;
    const long long batch = quotient(line, c.rows);
    long long row = line - batch * c.rows;
    const T *from = static_cast<const T *>(c.from) + (batch * c.from_rows + row) * c.from_columns;
    vector<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; v++) {
        pack.at[v] = v < left ? from[column] : T(0);
        if (++column == c.columns) {
            column = 0, from += c.from_columns;
            if (++row == c.rows)
                row = 0, from += (c.from_rows - c.rows) * c.from_columns;
        }
    }
    T *to = static_cast<T *>(c.to) + first;
    if (left >= V && (uintptr_t)c.to % 16 == 0) {
        *reinterpret_cast<vector<T, V> *>(to) = pack;
        return;
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        if (v < left)
            to[v] = pack.at[v];
}

unsigned blocks_of(long long packs)
{
    return (unsigned)((packs + THREADS - 1) / THREADS);
}

} // namespace

void pc__cuda_pad_all(cudaStream_t queue, const pc__cuda_pad *list, int count, int size, int early)
{
    pads p = {};
    unsigned blocks = 0;
    for (int i = 0; i < count; i++) {
        p.one[i] = list[i];
        p.packs[i] = list[i].batch * list[i].to_rows * list[i].to_columns * size / 16;
        p.blocks[i] = blocks += blocks_of(p.packs[i]);
    }
    (void)pc::start(size == 2 ? pad_kernel<unsigned short> : pad_kernel<unsigned>, blocks, THREADS, queue, early, p);
}

void pc__cuda_cut_back(cudaStream_t queue, const pc__cuda_cut *cut, int size, int early)
{
    const unsigned blocks = blocks_of((cut->batch * cut->rows * cut->columns * size + 15) / 16);
    (void)pc::start(size == 2 ? cut_kernel<unsigned short> : cut_kernel<unsigned>, blocks, THREADS, queue, early, *cut);
}
