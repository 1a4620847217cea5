/* head.cu: the end of a network with one output by one block. A warp makes logits of rows, their losses and gradients;
 * behind one barrier warps make pieces of dweight and rows of dx. x comes from memory once and lies in the first-level
 * cache the second time. The sums are in the order of linear_few.cu and loss.cu, so that a step has the same bits
 * however it is run. */
#include "cuda/head.h"

#include "cuda/early.cuh"
#include "cuda/half.cuh"
#include "cuda/linear_few.cuh"
#include "cuda/loss.cuh"
#include "cuda/score.cuh"
#include "cuda/sums.cuh"

namespace
{

constexpr int WARPS = 16, THREADS = WARPS * LANES, COLUMNS = LANES * 4; /* of a warp's piece of a row */
constexpr int PIECES = PC__HEAD_INPUTS / COLUMNS, AT_ONCE = 2;          /* rows of a warp */

/* Between the two halves. */
struct results {
    alignas(16) float gradient[ROWS_MOST]; /* of rows as ROW_GROUPS says, zeros behind the last */
    double lost[ROWS_MOST];
    int right[ROWS_MOST];
    float4 parts[ROW_GROUPS][PIECES][LANES]; /* of dweight */
};

__device__ inline int place_of(int row)
{
    return row % ROW_GROUPS * TERMS + row / ROW_GROUPS;
}

/* A row's logit is there: what follows from it, by one thread. */
template <class T> __device__ inline void pass(const pc__cuda_head &h, int row, float sum, float label, results &r)
{
    const pc__cuda_linear &l = h.layer;
    const T logit = T(sum);
    const float x = logit, gradient = bce_gradient(x, label, l.m);
    static_cast<T *>(l.y)[row] = logit;
    h.dlogits[row] = gradient;
    if (h.rounded)
        static_cast<T *>(h.rounded)[row] = T(gradient);
    r.gradient[place_of(row)] = float(T(gradient));
    r.lost[row] = lost<PC__LOSS_BCE>(x, label);
    r.right[row] = (x >= 0) == static_cast<int64_t>(label);
}

/* Logits of this warp's rows, AT_ONCE of them with all loads under way. */
template <class T> __device__ inline void make_logits(const pc__cuda_head &h, results &r)
{
    const pc__cuda_linear &l = h.layer;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, mine = lane * 4;
    vector<T, 4> weight[PIECES], x[AT_ONCE][PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++)
        weight[i] = read<true>(static_cast<const T *>(l.weight) + mine + i * COLUMNS, l.k - mine - i * COLUMNS);
    const float bias = l.bias ? float(*static_cast<const T *>(l.bias)) : 0.0f;
#pragma unroll 1
    for (int first = warp; first < l.m; first += AT_ONCE * WARPS) {
        float label[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int row = first + k * WARPS;
            const T *from = static_cast<const T *>(l.x) + row * l.x_row + mine;
#pragma unroll
            for (int i = 0; i < PIECES; i++)
                x[k][i] = read<true>(from + i * COLUMNS, row < l.m ? l.k - mine - i * COLUMNS : 0);
            label[k] = row < l.m ? h.labels[row] : 0;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            float sum = 0;
#pragma unroll
            for (int i = 0; i < PIECES; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum = fmaf(x[k][i].at[j], weight[i].at[j], sum);
            sum = warp_join<plus>(sum);
            if (lane == 0 && first + k * WARPS < l.m)
                pass<T>(h, first + k * WARPS, sum + bias, label[k], r);
        }
    }
}

/* Columns of dweight over a group of rows. */
template <class T> __device__ inline void add_rows(const pc__cuda_linear &l, int group, int piece, results &r)
{
    const int lane = threadIdx.x % LANES, column = piece * COLUMNS + lane * 4;
    const T *from = static_cast<const T *>(l.x) + group * l.x_row + column;
    vector<T, 4> rows[TERMS];
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < TERMS; i++)
        rows[i] = read<true>(from + i * ROW_GROUPS * l.x_row, group + i * ROW_GROUPS < l.m ? l.k - column : 0);
#pragma unroll
    for (int i = 0; i < TERMS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[j] = fmaf(r.gradient[group * TERMS + i], rows[i].at[j], sum[j]);
    r.parts[group][piece][lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}

/* A piece of a row of dx. */
template <class T> __device__ inline void make_dx(const pc__cuda_linear &l, int row, int piece, const results &r)
{
    const int column = piece * COLUMNS + threadIdx.x % LANES * 4;
    const vector<T, 4> weight = read<true>(static_cast<const T *>(l.weight) + column, l.k - column);
    float dx[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        dx[j] = fmaf(r.gradient[place_of(row)], weight.at[j], 0.0f);
    write<true>(static_cast<T *>(l.dx) + row * l.k + column, dx, l.k - column);
}

/* A piece of dweight from its parts. */
__device__ inline void join(const pc__cuda_linear &l, int piece, const results &r)
{
    const int lane = threadIdx.x % LANES, column = piece * COLUMNS + lane * 4;
    float4 sum = r.parts[0][piece][lane];
#pragma unroll
    for (int group = 1; group < ROW_GROUPS; group++) {
        const float4 part = r.parts[group][piece][lane];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    const float all[4] = {sum.x, sum.y, sum.z, sum.w};
    write<true>(l.dweight + column, all, l.k - column);
}

/* The batch's numbers, by a warp. */
__device__ inline void sum_up(const pc__cuda_head &h, const results &r)
{
    const int lane = threadIdx.x, m = h.layer.m;
    const float db = warp_join<plus>(r.gradient[lane] + r.gradient[lane + LANES]);
    const double lost = warp_join<plus>(r.lost[lane]) + warp_join<plus>(r.lost[lane + LANES]);
    const int right = warp_join<plus>(r.right[lane] + r.right[lane + LANES]);
    if (lane > 0)
        return;
    const float loss = static_cast<float>(lost / static_cast<double>(m));
    *h.loss = loss;
    if (h.layer.db)
        *h.layer.db = db;
    if (h.stage == PC__HEAD_SCORE)
        add_score(h.score.sums, loss, m, right);
}

template <class T> __global__ void __launch_bounds__(THREADS, 1) head_kernel(const __grid_constant__ pc__cuda_head h)
{
    __shared__ results r;
    const pc__cuda_linear &l = h.layer;
    const int warp = threadIdx.x / LANES, pieces = (l.k + COLUMNS - 1) / COLUMNS;
    if (threadIdx.x < ROWS_MOST && threadIdx.x >= l.m) {
        r.gradient[place_of(threadIdx.x)] = 0;
        r.lost[threadIdx.x] = r.right[threadIdx.x] = 0;
    }
    pc::wait_for_earlier();
    make_logits<T>(h, r);
    __syncthreads();
    const int sums = ROW_GROUPS * pieces, tasks = sums + (l.dx ? l.m * pieces : 0);
#pragma unroll 1
    for (int task = warp; task < tasks; task += WARPS)
        if (task < sums)
            add_rows<T>(l, task % ROW_GROUPS, task / ROW_GROUPS, r);
        else
            make_dx<T>(l, (task - sums) / pieces, (task - sums) % pieces, r);
    __syncthreads();
    if (warp < pieces)
        join(l, warp, r);
    if (warp == 0)
        sum_up(h, r);
}

template <class T> cudaError_t launch(const pc__cuda_head *h)
{
    return pc::start(head_kernel<T>, 1, THREADS, h->layer.queue, h->layer.early, *h);
}

} // namespace

int pc__cuda_head_wide(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32 ? is_wide<float>(l) : is_wide<pc::bf16>(l);
}

cudaError_t pc__cuda_head_launch(const pc__cuda_head *h)
{
    return h->layer.dtype == PC__CUDA_F32   ? launch<float>(h)
           : h->layer.dtype == PC__CUDA_F16 ? launch<pc::f16>(h)
                                            : launch<pc::bf16>(h);
}
