/* grid_sample.cuh: the whole places around a place of a grid. */
#ifndef PC__CUDA_GRID_SAMPLE_CUH
#define PC__CUDA_GRID_SAMPLE_CUH

#include "cuda/pool/grid_sample.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

#define INLINE static __device__ __forceinline__
#define FLOOR(x) floor(x)
#define ROUND(x) rint(x)

namespace
{

constexpr int THREADS = 256;

/* ops/grid_place.h for float and for double */
template <class real> struct grid_of {
#include "ops/grid_place.h"
};

/* Four whole places, rows first: their numbers in a plane, whether x has them, and weights. */
template <class T> struct corners {
    typedef grid_of<T> of;
    typename of::place x, y;
    typename of::sides across, down;
    T h, w;

    /* Of place `at` of all pictures'. */
    __device__ __forceinline__ corners(const pc__cuda_grid &g, int64_t at)
    {
        const T *grid = static_cast<const T *>(g.grid) + 2 * at;
        h = static_cast<T>(g.spec.size[0]);
        w = static_cast<T>(g.spec.size[1]);
        x = of::place_of(grid[0], w, g.spec.padding, g.spec.corners);
        y = of::place_of(grid[1], h, g.spec.padding, g.spec.corners);
        across = g.spec.nearest ? of::nearest_of(x.at) : of::sides_of(x.at);
        down = g.spec.nearest ? of::nearest_of(y.at) : of::sides_of(y.at);
    }

    __device__ __forceinline__ T row(int k) const
    {
        return down.low + T(k / 2);
    }

    __device__ __forceinline__ T column(int k) const
    {
        return across.low + T(k % 2);
    }

    __device__ __forceinline__ bool there(int k) const
    {
        return of::within(row(k), h) == row(k) && of::within(column(k), w) == column(k);
    }

    /* Next to it where it is not there. */
    __device__ __forceinline__ int64_t at(int k, int64_t columns) const
    {
        return static_cast<int64_t>(of::within(row(k), h)) * columns + static_cast<int64_t>(of::within(column(k), w));
    }

    __device__ __forceinline__ T weight(int k) const
    {
        return (k / 2 ? down.part : 1 - down.part) * (k % 2 ? across.part : 1 - across.part);
    }
};

/* Of all threads of the grid together. */
__device__ __forceinline__ int64_t thread_of_all()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

inline unsigned blocks_for(int64_t threads)
{
    return static_cast<unsigned>((threads + THREADS - 1) / THREADS);
}

} // namespace

#undef INLINE
#undef FLOOR
#undef ROUND

#endif
