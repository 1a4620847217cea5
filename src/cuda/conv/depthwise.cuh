/* depthwise.cuh: how threads share the channels of pictures: neighbours in a block have neighbouring packs of channels, and
 * its rows of threads have pixels. */
#ifndef PC__CUDA_CONV_DEPTHWISE_CUH
#define PC__CUDA_CONV_DEPTHWISE_CUH

#include "cuda/conv/groups.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"

#include <string.h>

namespace
{

constexpr int THREADS = 256, LANES = 32;

/* Channels of a thread: one, or a pack. */
template <class T> constexpr int pack_of()
{
    return sizeof(T) == 8 ? 2 : 4;
}

/* Packs side by side in a block, at most so many, as many in each of those that the channels take. */
inline int lanes_of(int channels, int pack, int most = LANES)
{
    const int packs = (channels + pack - 1) / pack, blocks = (packs + most - 1) / most;
    return (packs + blocks - 1) / blocks;
}

/* Blocks of threads that share some channels, and turns that each makes, of `items` for the rows of threads of a block. */
struct sharing {
    int lanes, rows; /* packs side by side in a block, and rows of threads */
    int turns;
    dim3 grid;
};

/* `held` blocks stay on each of 132 multiprocessors: work for more than four times as many has that number of blocks, whose
 * turns overlap. Little work has small blocks, so that all of the chip has some: of fewer channels, too, whose weights are
 * brought in as quickly. */
inline sharing sharing_of(long long items, int channels, int pack, int held)
{
    enum { CHIP = 132, LEAST = 64 };
    sharing way;
    const long long resident = (long long)held * CHIP;
    long long blocks = 0, across = 0;
    for (int threads = THREADS; threads >= LEAST && blocks * across < CHIP; threads /= 2) {
        way.lanes = lanes_of(channels, pack, threads / (THREADS / LANES));
        way.rows = threads / way.lanes;
        across = (channels + way.lanes * pack - 1) / (way.lanes * pack);
        blocks = (items + way.rows - 1) / way.rows;
    }
    way.turns = blocks * across > 4 * resident ? (int)((blocks * across + resident - 1) / resident) : 1;
    way.grid = dim3((unsigned)((blocks + way.turns - 1) / way.turns), (unsigned)across);
    return way;
}

enum { WEIGHTS_MOST = 49 * 128 /* numbers of a block in shared memory, as floats */ };

/* to[tap][channel]: weights of the channels from `first` on, zeros behind the last one; `turned` end to end. */
template <class T>
__device__ void take_weights(const pc__cuda_groups &s, const T *weight, int first, int channels, bool turned,
                             pc::math<T> *to)
{
    const int taps = s.kh * s.kw, thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll 4
    for (int i = thread; i < channels * taps; i += blockDim.x * blockDim.y) {
        const int channel = i / taps, tap = i - channel * taps;
        to[(turned ? taps - 1 - tap : tap) * channels + channel] =
            first + channel < s.c ? pc::math<T>(weight[(long long)first * taps + i]) : pc::math<T>(0);
    }
    __syncthreads();
}

template <class T, int N> __device__ __forceinline__ vector<T, N> pack_at(const T *from)
{
    return *reinterpret_cast<const vector<T, N> *>(from);
}

/* A pack as it lies in memory: two 16-bit numbers are one register until they are computed with. */
template <class T, int N> using words = vector<unsigned, static_cast<int>(N * sizeof(T) / 4)>;

template <class T, int N> __device__ __forceinline__ vector<T, N> numbers_of(const words<T, N> &pack)
{
    vector<T, N> to;
    memcpy(&to, &pack, sizeof to);
    return to;
}

/* Where a pixel, counted through all pictures, lies. */
struct place {
    long long picture;
    int row, column;
};

__device__ __forceinline__ place place_of(long long pixel, int height, int width)
{
    place at;
    const int area = height * width;
    at.picture = quotient(pixel, area);
    const int rest = static_cast<int>(pixel - at.picture * area);
    at.row = rest / width;
    at.column = rest - at.row * width;
    return at;
}

/* Taps of one dimension whose windows lie on a place of x: from one of them to the next so many on, and windows back. */
struct stepping {
    int taps, windows;
};

inline stepping stepping_of(int stride, int gap)
{
    int a = stride, b = gap;
    while (b != 0) {
        const int rest = a % b;
        a = b, b = rest;
    }
    return {stride / a, gap / a};
}

/* The first tap at which a window begins so that it lies `at` from the windows' origin, and which window; none: the kernel's size. */
__device__ __forceinline__ int first_tap(int at, int gap, int stride, int taps, int *window)
{
    int tap = 0;
    for (; stride > 1 && tap < taps && (at - tap * gap) % stride != 0; tap++)
        ;
    *window = (at - tap * gap) / stride;
    return tap;
}

} // namespace

#endif
