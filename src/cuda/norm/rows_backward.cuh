/* rows_backward.cuh: what blocks that go through rows for layer_norm's gradients keep of them, and how their threads sum. */
#ifndef PC__CUDA_NORM_ROWS_BACKWARD_CUH
#define PC__CUDA_NORM_ROWS_BACKWARD_CUH

#include "cuda/norm/moments.cuh"
#include "cuda/norm/rows.h"

#define ONE_BLOCK 256 /* threads of rows that are given so many; longer ones have as many as their packs are */

namespace
{

template <int LANES> constexpr int threads_of = LANES < ONE_BLOCK ? ONE_BLOCK : LANES;

/* The threads of a row: LANES, or at most so many. */
template <int LANES> __device__ __forceinline__ int lanes_of()
{
    return LANES > ONE_BLOCK ? (int)blockDim.x : LANES;
}

/* The weights of a thread's packs: in registers, or where sums of rows take these, in shared memory, where each thread reads
 * its own alone. */
template <class M, int LANES, int N, int W, bool SHARED = (LANES > ONE_BLOCK && W % 2 == 0 && N * W >= 8)>
struct weights {
    numbers<M, W> at[N];

    __device__ __forceinline__ void keep(int i, const numbers<M, W> &w)
    {
        at[i] = w;
    }

    __device__ __forceinline__ numbers<M, W> of(int i) const
    {
        return at[i];
    }
};

template <class M, int LANES, int N, int W> struct weights<M, LANES, N, W, true> {
    static constexpr int V = W < 4 ? W : 4; /* of an access */
    typedef vector<M, V> part[LANES];

    static __device__ __forceinline__ part *room()
    {
        __shared__ part all[N * W / V];
        return all;
    }

    __device__ __forceinline__ void keep(int i, const numbers<M, W> &w)
    {
#pragma unroll
        for (int k = 0; k < W / V; k++)
#pragma unroll
            for (int j = 0; j < V; j++)
                room()[i * (W / V) + k][threadIdx.x].at[j] = w.at[V * k + j];
    }

    __device__ __forceinline__ numbers<M, W> of(int i) const
    {
        numbers<M, W> w;
#pragma unroll
        for (int k = 0; k < W / V; k++) {
            const vector<M, V> some = room()[i * (W / V) + k][threadIdx.x];
#pragma unroll
            for (int j = 0; j < V; j++)
                w.at[V * k + j] = some.at[j];
        }
        return w;
    }
};

/* N packs of a row, and of its gradient. */
template <class T, class G, int N, int W> struct loaded {
    vector<T, W> x[N];
    vector<G, W> g[N];
    pc::math<T> mean, rstd;
};

template <class T, class G, int LANES, int N, int W>
__device__ __forceinline__ void load(loaded<T, G, N, W> &to, const pc__cuda_norm_rows &r, long long row, int lane)
{
    const int n = (int)r.n;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int first = (i * lanes_of<LANES>() + lane) * W;
        if (row < r.rows && first < n) {
            to.x[i] = raw_at<T, W>(r.x, row * n + first);
            to.g[i] = raw_at<G, W>(r.dy, row * n + first);
        } else {
            to.x[i] = {}, to.g[i] = {};
        }
    }
    to.mean = row < r.rows && r.mean ? static_cast<const pc::math<T> *>(r.mean)[row] : pc::math<T>(0);
    to.rstd = row < r.rows ? static_cast<const pc::math<T> *>(r.rstd)[row] : pc::math<T>(0);
}

/* Two sums over LANES neighbouring threads, with one stop; the room is for one use in turn with another. */
template <int LANES, class M> __device__ __forceinline__ void sum_both(M &a, M &b, pair<M> *room)
{
    if constexpr (LANES > ONE_BLOCK) {
        const pair<M> all = over_block(pair<M>{a, b}, room);
        a = all.first, b = all.second;
    } else {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            a += __shfl_xor_sync(0xffffffffu, a, distance);
            b += __shfl_xor_sync(0xffffffffu, b, distance);
        }
        if (LANES == 32)
            return;
        constexpr int warps = LANES / 32;
        const int warp = threadIdx.x / 32, first = warp / warps * warps;
        if (threadIdx.x % 32 == 0)
            room[warp] = {a, b};
        __syncthreads();
        a = b = 0;
#pragma unroll
        for (int i = 0; i < warps; i++)
            a += room[first + i].first, b += room[first + i].second;
    }
}

/* Groups of a block that have a row add their sums to the first one's, in order. */
template <int LANES, int N, int W, class M>
__device__ __forceinline__ void join_groups(numbers<M, W> (&sums)[N], M *room, int group, int lane, long long rows)
{
    constexpr int groups = threads_of<LANES> / LANES;
#pragma unroll 1
    for (int k = 1; k < groups && k < rows; k++) {
        if (group == k)
#pragma unroll
            for (int i = 0; i < N * W; i++)
                room[i * LANES + lane] = sums[i / W].at[i % W];
        __syncthreads();
        if (group == 0)
#pragma unroll
            for (int i = 0; i < N * W; i++)
                sums[i / W].at[i % W] += room[i * LANES + lane];
        __syncthreads();
    }
}

/* The block's sums; of the only one, the gradients. */
template <class T, int LANES, int N, int W, class M>
__device__ __forceinline__ void leave_sums(const pc__cuda_norm_rows &r, const numbers<M, W> (&dweight)[N],
                                           const numbers<M, W> (&dbias)[N], int lane)
{
    M *sums = static_cast<M *>(r.sums) + blockIdx.x * 2 * r.n;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int place = (i * lanes_of<LANES>() + lane) * W;
        if (place >= (int)r.n)
            continue;
        if (gridDim.x > 1) {
            put<M, W>(sums, place, dweight[i]);
            put<M, W>(sums, r.n + place, dbias[i]);
            continue;
        }
#pragma unroll
        for (int j = 0; j < W; j++) {
            put_gradient<T>(r.dweight, place + j, dweight[i].at[j]);
            put_gradient<T>(r.dbias, place + j, dbias[i].at[j]);
        }
    }
}

} // namespace

#endif
