/* spread.cuh: elements in packs of a thread each, side by side in memory where that is one access, else a line of threads
 * apart, so that the threads of a line read or write neighbours. */
#ifndef PC__CUDA_SPREAD_CUH
#define PC__CUDA_SPREAD_CUH

#include "cuda/shared/half.cuh"
#include "cuda/shared/load.cuh"

namespace
{

/* Where elements of a pack lie that a lane reads along a line of `lanes`: side by side, or a line's width apart. */
struct spread {
    int first, step_bits;

    __device__ __forceinline__ spread(bool wide, int pack, int lane, int lane_bits)
        : first(wide ? lane * pack : lane), step_bits(wide ? 0 : lane_bits)
    {
    }

    /* How many of the pack lie in front of `end`; more than the pack has, or less than none, likewise. */
    __device__ __forceinline__ int inside(int end) const
    {
        return (end - first + (1 << step_bits) - 1) >> step_bits;
    }
};

/* N packs, `apart` from one to the next, whose elements are `step` apart; inside(i) of the i-th are there, and the others
 * become zeros. All are under way before the first is there; `whole`, the same for all threads of a warp: none is
 * outside. */
template <class T, int V, int N, class F>
__device__ __forceinline__ void read(vector<T, V> (&x)[N], const T *from, long long apart, long long step, bool wide,
                                     bool whole, F inside)
{
    if (wide && whole) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = *reinterpret_cast<const vector<T, V> *>(from + i * apart);
    } else if (whole) {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int v = 0; v < V; v++)
                x[i].at[v] = from[i * apart + v * step];
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int v = 0; v < V; v++)
                x[i].at[v] = v < inside(i) ? from[i * apart + v * step] : T(0.0f);
    }
}

} // namespace

#endif
