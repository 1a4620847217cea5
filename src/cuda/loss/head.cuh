/* head.cuh: the end of a network with one output by one block of eight warps. A warp makes logits of rows and a lane
 * each of their losses and gradients; behind a barrier warps make pieces of dweight and rows of dx. x comes from memory
 * once and lies in the first-level cache the second time. The sums are in the order of linear_few.cu and loss.cu, so
 * that a step has the same bits however it is run. */
#ifndef PC__CUDA_HEAD_CUH
#define PC__CUDA_HEAD_CUH

#include "cuda/shared/half.cuh"
#include "cuda/loss/head.h"
#include "cuda/matmul/linear_few.cuh"
#include "cuda/loss/loss.cuh"
#include "cuda/loss/score.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

/* What a warp's rows and lanes have of a matrix; of a row, a lane has four neighbours in each piece of it. */
constexpr int HEAD_WARPS = 8, HEAD_THREADS = HEAD_WARPS * LANES, HEAD_PIECE = LANES * 4;
static_assert(PC__HEAD_ROWS == ROWS_MOST, "sums over the rows hold as many");

/* The sums along rows are there, SUMS of them, a warp's own: the one of this lane's row. */
template <int SUMS> __device__ __forceinline__ float own_sum(const float (&sum)[SUMS])
{
    float own = sum[0];
#pragma unroll
    for (int i = 1; i < SUMS; i++)
        own = threadIdx.x % LANES == i ? sum[i] : own;
    return own;
}

/* A row's product with the weights, in the order in which the layer by itself adds it up. */
template <int PIECES, class T>
__device__ __forceinline__ float dot(const vector<T, 4> (&x)[PIECES], const vector<T, 4> (&weight)[PIECES])
{
    return warp_join<plus>(own_dot(x, weight));
}

/* PIECES of a row, all there are. */
template <class T, int PIECES> struct head {
    static constexpr int AT_ONCE = PIECES == 1 ? 4 : 2; /* rows of a warp */

    /* Between the two halves; gradients as ROW_GROUPS says, zeros behind the last. */
    struct results {
        alignas(16) float gradient[ROWS_MOST];
        double lost[ROWS_MOST];
        int right[ROWS_MOST];
        float4 parts[ROW_GROUPS][PIECES][LANES]; /* of dweight */
    };

    const pc__cuda_head &h;
    const pc__cuda_linear &l;
    results &r;
    const int warp, lane;

    __device__ head(const pc__cuda_head &what, results &room)
        : h(what), l(what.layer), r(room), warp(threadIdx.x / LANES), lane(threadIdx.x % LANES)
    {
    }

    __device__ __forceinline__ void run() const
    {
        if (threadIdx.x < ROWS_MOST && threadIdx.x >= l.m) {
            r.gradient[place_of(threadIdx.x)] = 0;
            r.lost[threadIdx.x] = r.right[threadIdx.x] = 0;
        }
        const bool sums_up = warp == HEAD_WARPS - 1;
        const double *sums = sums_up ? h.score.sums : nullptr;
        const double2 before = sums ? make_double2(sums[0], sums[1]) : make_double2(0, 0);
        make_logits();
        __syncthreads();
        if (sums_up)
            sum_up(before);
        const int first = ROW_GROUPS * PIECES, tasks = first + (l.dx ? l.m * PIECES : 0);
#pragma unroll 1
        for (int task = warp; task < tasks; task += HEAD_WARPS)
            if (task < first)
                add_rows(task % ROW_GROUPS, task / ROW_GROUPS);
            else
                make_dx((task - first) / PIECES, (task - first) % PIECES);
        __syncthreads();
        if (warp < PIECES)
            join();
    }

  private:
    static __device__ __forceinline__ int place_of(int row)
    {
        return row % ROW_GROUPS * TERMS + row / ROW_GROUPS;
    }

    /* AT_ONCE rows with all loads under way; then a lane has a row. */
    __device__ __forceinline__ void make_logits() const
    {
        vector<T, 4> weight[PIECES], x[AT_ONCE][PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            weight[i] = piece(static_cast<const T *>(l.weight), i, true);
        const float bias = l.bias ? float(*static_cast<const T *>(l.bias)) : 0.0f, inverse = 1 / float(l.m);
#pragma unroll 1
        for (int first = warp; first < l.m; first += AT_ONCE * HEAD_WARPS) {
            const int own = first + lane * HEAD_WARPS;
            const bool has = lane < AT_ONCE && own < l.m;
            const float label = has ? h.labels[own] : 0;
            float sum[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (int i = 0; i < PIECES; i++) {
                    const int row = first + k * HEAD_WARPS;
                    x[k][i] = piece(static_cast<const T *>(l.x) + row * l.x_row, i, row < l.m);
                }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                sum[k] = dot(x[k], weight);
            const float mine = own_sum(sum);
            if (has)
                pass(own, mine + bias, label, inverse);
        }
    }

    __device__ __forceinline__ vector<T, 4> piece(const T *row, int i, bool there) const
    {
        const int column = i * HEAD_PIECE + lane * 4;
        return read<true>(row + column, there ? l.k - column : 0);
    }

    /* What follows from a logit. */
    __device__ __forceinline__ void pass(int row, float sum, float label, float inverse) const
    {
        const T logit = T(sum);
        const float x = logit, gradient = bce_gradient(x, label, inverse);
        static_cast<T *>(l.y)[row] = logit;
        h.dlogits[row] = gradient;
        if (h.rounded)
            static_cast<T *>(h.rounded)[row] = T(gradient);
        r.gradient[place_of(row)] = float(T(gradient));
        r.lost[row] = lost<PC__LOSS_BCE>(x, label);
        r.right[row] = (x >= 0) == static_cast<int64_t>(label);
    }

    /* Columns of dweight over a group of rows. */
    __device__ __forceinline__ void add_rows(int group, int i) const
    {
        const T *from = static_cast<const T *>(l.x) + group * l.x_row;
        vector<T, 4> rows[TERMS];
        float sum[4] = {};
#pragma unroll
        for (int k = 0; k < TERMS; k++)
            rows[k] = piece(from + k * ROW_GROUPS * l.x_row, i, group + k * ROW_GROUPS < l.m);
#pragma unroll
        for (int k = 0; k < TERMS; k++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[j] = fmaf(r.gradient[group * TERMS + k], rows[k].at[j], sum[j]);
        r.parts[group][i][lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }

    /* A piece of a row of dx. */
    __device__ __forceinline__ void make_dx(int row, int i) const
    {
        const int column = i * HEAD_PIECE + lane * 4;
        const vector<T, 4> weight = piece(static_cast<const T *>(l.weight), i, true);
        float dx[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            dx[j] = fmaf(r.gradient[place_of(row)], weight.at[j], 0.0f) + 0.0f; /* as zero has no sign there */
        write<true>(static_cast<T *>(l.dx) + row * l.k + column, dx, l.k - column);
    }

    /* This warp's piece of dweight from its parts. */
    __device__ __forceinline__ void join() const
    {
        const int column = warp * HEAD_PIECE + lane * 4;
        float4 sum = r.parts[0][warp][lane];
#pragma unroll
        for (int group = 1; group < ROW_GROUPS; group++) {
            const float4 part = r.parts[group][warp][lane];
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        const float all[4] = {sum.x, sum.y, sum.z, sum.w};
        write<true>(static_cast<float *>(l.dweight) + column, all, l.k - column);
    }

    /* The batch's numbers, by a warp; `before`: what the score's sums are. */
    __device__ __forceinline__ void sum_up(double2 before) const
    {
        const float db = warp_join<plus>(r.gradient[lane] + r.gradient[lane + LANES]);
        const double lost = warp_join<plus>(r.lost[lane]) + warp_join<plus>(r.lost[lane + LANES]);
        const int right = warp_join<plus>(r.right[lane] + r.right[lane + LANES]);
        if (lane > 0)
            return;
        const float loss = static_cast<float>(lost / static_cast<double>(l.m));
        *h.loss = loss;
        if (l.db)
            *static_cast<float *>(l.db) = db;
        if (h.score.sums)
            add_score(h.score.sums, before, loss, l.m, right);
    }
};

} // namespace

#endif
