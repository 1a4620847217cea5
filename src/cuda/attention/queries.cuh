/* queries.cuh: how attention of few queries goes over the rows of keys and values: neighbouring lanes have neighbours of a row, 16
 * bytes each. */
#ifndef PC__CUDA_ATTENTION_QUERIES_CUH
#define PC__CUDA_ATTENTION_QUERIES_CUH

#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int WARP = 32, USUAL = 256, WIDE = 1024; /* of a block; wide where blocks are few */
constexpr int AT_ONCE = 4;                         /* rows of a thread on their way */
constexpr int MOST_QUERIES = 4;

template <class T> constexpr int PACK = 16 / sizeof(T);

/* Lanes of a row, a power of two. */
__host__ __device__ inline int lanes_of(int size, int pack)
{
    int lanes = 1;
    while (lanes * pack < size)
        lanes *= 2;
    return lanes;
}

/* Rows first, first + step, ... below `end` of a matrix, AT_ONCE of them on their way: f(row, this lane's pack). As many turns
 * for all threads: in the last, what lies behind the end is zeros. */
template <class T, class F>
__device__ __forceinline__ void each_row(const T *at, int64_t pitch, bool live, int first, int end, int step, F &&f)
{
    const int turns = (end + AT_ONCE * step - 1) / (AT_ONCE * step);
    for (int turn = 0, row = first; turn < turns; turn++, row += AT_ONCE * step) {
        vector<T, PACK<T>> x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            x[u] = {};
            if (live && row + u * step < end)
                x[u] = *reinterpret_cast<const vector<T, PACK<T>> *>(at + (row + u * step) * pitch);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            f(row + u * step, x[u]);
    }
}

/* This thread's pack of a row of `size` numbers; zeros behind them. */
template <class T> __device__ __forceinline__ vector<T, PACK<T>> own_pack(const T *row, int size)
{
    const int at = threadIdx.x % lanes_of(size, PACK<T>) * PACK<T>;
    vector<T, PACK<T>> x = {};
    if (at < size)
        x = *reinterpret_cast<const vector<T, PACK<T>> *>(row + at);
    return x;
}

/* f(row, its product with a vector) for rows below `end` of a matrix, once for each. */
template <int THREADS, class T, class F>
__device__ __forceinline__ void each_product(const T *of, const T *rows, int64_t pitch, int size, int end, F &&f)
{
    const int lanes = lanes_of(size, PACK<T>), lane = threadIdx.x % lanes, at = lane * PACK<T>;
    const vector<T, PACK<T>> own = own_pack(of, size);
    each_row(rows + at, pitch, at < size, static_cast<int>(threadIdx.x) / lanes, end, THREADS / lanes,
             [&](int row, const vector<T, PACK<T>> &x) {
                 float sum = 0;
#pragma unroll
                 for (int c = 0; c < PACK<T>; c++)
                     sum = fmaf(static_cast<float>(own.at[c]), static_cast<float>(x.at[c]), sum);
                 sum = sum_of_lanes(sum, lanes);
                 if (lane == 0 && row < end)
                     f(row, sum);
             });
}

/* to = by times the sum of rows below `end`, each times its weight: each group of lanes has some rows, then those of a warp
 * meet, then the warps, in `room`, whose next use waits for this one. */
template <int THREADS, class T>
__device__ __forceinline__ void add_rows(const T *rows, int64_t pitch, int size, int end, const float *weights,
                                         float by, T *to, int64_t step, float *room)
{
    constexpr int WARPS = THREADS / WARP;
    const int lanes = lanes_of(size, PACK<T>), at = threadIdx.x % lanes * PACK<T>, width = lanes * PACK<T>;
    float sum[PACK<T>] = {};
    each_row(rows + at, pitch, at < size, static_cast<int>(threadIdx.x) / lanes, end, THREADS / lanes,
             [&](int row, const vector<T, PACK<T>> &x) {
                 const float weight = row < end ? weights[row] : 0.0f;
#pragma unroll
                 for (int c = 0; c < PACK<T>; c++)
                     sum[c] = fmaf(weight, static_cast<float>(x.at[c]), sum[c]);
             });
    for (int distance = lanes; distance < WARP; distance *= 2)
#pragma unroll
        for (int c = 0; c < PACK<T>; c++)
            sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], distance);
    if (threadIdx.x % WARP < lanes)
#pragma unroll
        for (int c = 0; c < PACK<T>; c++)
            room[threadIdx.x / WARP * width + at + c] = sum[c];
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += THREADS) {
        float all = room[i];
#pragma unroll
        for (int w = 1; w < WARPS; w++)
            all += room[w * width + i];
        to[i * step] = T(all * by);
    }
    __syncthreads();
}

/* f(a number of the type), of float32 or 16 bits. */
template <class F> inline void with_narrow(int dtype, F &&f)
{
    if (dtype == PC__CUDA_F32)
        f(float());
    else if (dtype == PC__CUDA_F16)
        f(pc::f16());
    else
        f(pc::bf16());
}

/* Floats of that room. */
template <class T> inline size_t room_for(int size, int threads)
{
    return static_cast<size_t>(threads / WARP) * lanes_of(size, PACK<T>) * PACK<T>;
}

inline bool is_wide(int64_t blocks)
{
    enum { FEW = 66 /* one for every second multiprocessor of a large GPU */ };
    return blocks <= FEW;
}

} // namespace

#endif
