/* linear_columns.cuh: a block of linear_columns.cu. It has some columns of x and makes both products for them,
 * dweight[n][columns] = g^T x and dx[m][columns] = g weight, 128 outputs at a time: x, weight and both results pass
 * once through the chip, and a block waits once for each 128 outputs. */
#ifndef PC__CUDA_LINEAR_COLUMNS_CUH
#define PC__CUDA_LINEAR_COLUMNS_CUH

#include "cuda/shared/activations.cuh"
#include "cuda/matmul/linear_held.cuh"

namespace
{

constexpr int ROWS = 32, OUTPUTS = 128, COLUMNS = 32;
constexpr int SHARED = ROWS * (OUTPUTS + PAD) + (ROWS + OUTPUTS) * (COLUMNS + PAD); /* floats: 43 KB */

/* dx's element, with weights from global memory; `g`: the row's gradient, or NULL where it comes from there, too. */
template <class T> __device__ __noinline__ float dx_again(const pc__cuda_linear &l, const float *g, int row, int column)
{
    const T *dy = static_cast<const T *>(l.dy) + row * l.n, *y = static_cast<const T *>(l.y) + row * l.n;
    const T *weight = static_cast<const T *>(l.weight) + column;
    float value = 0;
#pragma unroll 1
    for (int j = 0; j < l.n; j++) {
        const float gradient = g              ? g[j]
                               : l.activation ? activation_gradient(l.activation, float(dy[j]), float(y[j]))
                                              : float(dy[j]);
        value += gradient * float(weight[static_cast<long long>(j) * l.k]);
    }
    return value;
}

template <class T> struct columns {
    static constexpr bool EXACT = sizeof(T) == sizeof(float);
    static constexpr int G_ROW = OUTPUTS + PAD, X_ROW = COLUMNS + PAD;
    static constexpr int NW = COLUMNS / 16; /* of dweight 32 x 8 NW to a warp, 4 x 2 of them */

    const pc__cuda_linear &l;
    const int column;                        /* the first */
    float *const g, *const x, *const weight; /* in shared memory */
    float dx[2][1][4];                       /* 32 x 8 of it to two warps, which share the outputs */

    __device__ columns(const pc__cuda_linear &layer, float *shared)
        : l(layer), column(blockIdx.x * COLUMNS), g(shared), x(g + ROWS * G_ROW), weight(x + ROWS * X_ROW), dx()
    {
    }

    /* What blocks read once; `outputs` of the weights from `first` on. */
    struct operands {
        held<OUTPUTS, COLUMNS, T> weight;
        held<ROWS, COLUMNS, T> x;
    };

    __device__ __forceinline__ void read_weight(operands &some, int first, int outputs) const
    {
        const T *w = static_cast<const T *>(l.weight) + static_cast<long long>(first) * l.k + column;
        some.weight.send({w, l.k, outputs, l.k - column}, weight);
    }

    __device__ __forceinline__ void read_x(operands &some) const
    {
        some.x.send({static_cast<const T *>(l.x) + column, static_cast<int>(l.x_row), l.m, l.k - column}, x);
    }

    __device__ __forceinline__ void read_ahead(operands &some) const
    {
        if (l.dx && l.ready_weight)
            read_weight(some, 0, min(OUTPUTS, l.n));
        if (l.ready_x)
            read_x(some);
    }

    __device__ __forceinline__ void read_rest(operands &some, int first, int outputs) const
    {
        if (l.dx && (first > 0 || !l.ready_weight))
            read_weight(some, first, outputs);
        if (first == 0 && !l.ready_x)
            read_x(some);
    }

    __device__ __forceinline__ void put(const operands &some, int first) const
    {
        if (first == 0)
            some.x.put_unsent(x);
        if (l.dx)
            some.weight.put_unsent(weight);
#if TENSOR_UNITS
        sent();
        wait_sent<0>();
#endif
    }

    /* x, and of `outputs` from `first` on the gradient and the weights. */
    __device__ __forceinline__ void bring(operands &some, int first, int outputs) const
    {
        const T *dy = static_cast<const T *>(l.dy) + first, *y = static_cast<const T *>(l.y) + first;
        held<ROWS, OUTPUTS, T> some_dy, some_y;
        some_dy.read({dy, l.n, l.m, outputs});
        if (l.activation)
            some_y.read({y, l.n, l.m, outputs});
        read_rest(some, first, outputs);
        if (l.activation)
            some_dy.put_through(g, some_y, l.activation);
        else
            some_dy.put(g);
        put(some, first);
    }

    /* x, the weights, and the gradient that the head's block makes too: all outputs are one row of its x, and a warp
     * has the same rows here as there. */
    __device__ __forceinline__ void bring_behind(operands &some, const pc__cuda_head &h) const
    {
        held<ROWS, OUTPUTS, T> y;
        vector<T, 4> out_weight[1] = {};
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp + lane * HEAD_WARPS;
        const bool has = lane < y.COUNT && own < l.m;
        const float label = has ? h.labels[own] : 0;
        const float bias = h.layer.bias ? float(*static_cast<const T *>(h.layer.bias)) : 0.0f;
        y.read({static_cast<const T *>(l.y), l.n, l.m, l.n});
        out_weight[0] = ::read<true>(static_cast<const T *>(h.layer.weight) + lane * 4, l.n - lane * 4);
        read_rest(some, 0, l.n);
        float sum[y.COUNT];
#pragma unroll
        for (int i = 0; i < y.COUNT; i++) {
            const vector<T, 4> row[1] = {y.at[i]};
            sum[i] = dot(row, out_weight);
        }
        const float logit = float(T(own_sum(sum) + bias));
        const float mine = has ? float(T(bce_gradient(logit, label, 1 / float(l.m)))) : 0;
#pragma unroll
        for (int i = 0; i < y.COUNT; i++) {
            const float row = __shfl_sync(0xffffffffu, mine, i);
            float dy[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                dy[j] = activation_gradient(l.activation, float(T(fmaf(row, out_weight[0].at[j], 0.0f))),
                                            float(y.at[i].at[j]));
            *reinterpret_cast<float4 *>(g + y.row_of(i) * G_ROW + y.column_of(i)) =
                make_float4(dy[0], dy[1], dy[2], dy[3]);
        }
        put(some, 0);
    }

    /* Gradients have their dtype's bits behind these. */
    __device__ __forceinline__ bool plain() const
    {
        return l.activation == ACTIVATION_NONE || l.activation == ACTIVATION_RELU;
    }

    __device__ __forceinline__ void make_dweight(int first, int outputs) const
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, output = warp / 2 * 32,
                  c0 = warp % 2 * (COLUMNS / 2);
        if (output >= outputs)
            return;
        float sum[2][NW][4] = {};
        multiply<2, NW, EXACT>(sum, {g + output, 1, G_ROW}, {x + c0, 1, X_ROW}, (l.m + 7) / 8 * 8, plain());
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < NW; n++)
#pragma unroll
                for (int i = 0; i < 4; i += 2) {
                    const int o = output + h * 16 + i / 2 * 8 + lane / 4, c = c0 + n * 8 + lane % 4 * 2;
                    store(o, outputs, c, sum[h][n] + i,
                          static_cast<float *>(l.dweight) + static_cast<long long>(first) * l.k);
                }
    }

    /* What `outputs` from `first` on, which are there, give. */
    __device__ __forceinline__ void multiply_all(int first, int outputs)
    {
        __syncthreads();
        make_dweight(first, outputs);
        if (l.dx)
            add_dx(outputs);
        if (blockIdx.x == 0 && l.db)
            sum_rows(first, outputs);
        __syncthreads();
    }

    /* Two neighbours of dweight. */
    __device__ __forceinline__ void store(int output, int outputs, int c, const float *sum, float *dweight) const
    {
        float two[2];
#pragma unroll
        for (int j = 0; j < 2; j++)
            two[j] = sum[j] != sum[j] ? again(g + output, G_ROW, x + c + j, X_ROW, l.m) : sum[j];
        if (output < outputs && column + c < l.k)
            *reinterpret_cast<float2 *>(dweight + static_cast<long long>(output) * l.k + column + c) =
                make_float2(two[0], two[1]);
    }

    /* A warp takes half of the outputs. */
    __device__ __forceinline__ void add_dx(int outputs)
    {
        const int warp = threadIdx.x / 32, c0 = warp / 2 * 8, from = warp % 2 * (OUTPUTS / 2);
        const int deep = min(OUTPUTS / 2, (outputs - from + 7) / 8 * 8);
        float sum[2][1][4] = {};
        multiply<2, 1, EXACT>(sum, {g + from, G_ROW, 1}, {weight + from * X_ROW + c0, 1, X_ROW}, deep, plain());
#pragma unroll
        for (int e = 0; e < 8; e++)
            (&dx[0][0][0])[e] += (&sum[0][0][0])[e];
    }

    /* The halves of two warps together, over the weights, which nobody reads any more. */
    __device__ __forceinline__ void finish_dx()
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, c0 = warp / 2 * 8;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int r = h * 16 + i / 2 * 8 + lane / 4, c = c0 + lane % 4 * 2 + i % 2;
                if (warp % 2)
                    weight[r * X_ROW + c] = dx[h][0][i];
            }
        __syncthreads();
        if (warp % 2)
            return;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int r = h * 16 + i / 2 * 8 + lane / 4, c = c0 + lane % 4 * 2 + i % 2;
                float value = dx[h][0][i] + weight[r * X_ROW + c];
                if (r >= l.m || column + c >= l.k)
                    continue;
                if (value != value)
                    value = dx_again<T>(l, l.n <= OUTPUTS ? g + r * G_ROW : nullptr, r, column + c);
                static_cast<T *>(l.dx)[static_cast<long long>(r) * l.k + column + c] = T(value);
            }
    }

    /* Of the outputs that are here, a thread each; behind an infinite weight rows past the last are no zeros. */
    __device__ __forceinline__ void sum_rows(int first, int outputs) const
    {
        if (threadIdx.x >= outputs)
            return;
        float sum = 0;
#pragma unroll 8
        for (int r = 0; r < l.m; r++)
            sum += g[r * G_ROW + threadIdx.x];
        static_cast<float *>(l.db)[first + threadIdx.x] = sum;
    }
};

} // namespace

#endif
