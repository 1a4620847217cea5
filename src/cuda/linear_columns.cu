/* linear_columns.cu: linear layers of many inputs backward, for batches of up to 32 rows. A block has some columns of x
 * and makes both products for them, dweight[n][columns] = g^T x and dx[m][columns] = g weight, 128 outputs at a time:
 * x, weight and both results pass once through the chip, and a block waits once for each 128 outputs. (In tiles of 32
 * x 64, a block each, most of the time is such waits.) x and the first weights are on their way before the kernel in
 * front is done, where they are ready.
 *
 * Shared memory holds floats, whatever comes; rows are padded by 8, so that the four rows and eight columns that a warp
 * reads together lie in different banks. */
#include "cuda/activations.cuh"
#include "cuda/early.cuh"
#include "cuda/head.cuh"
#include "cuda/linear_few.h"
#include "cuda/tensor.cuh"

namespace
{

constexpr int THREADS = 256, ROWS = 32, OUTPUTS = 128, COLUMNS = 32, PAD = 8;
constexpr int SHARED = ROWS * (OUTPUTS + PAD) + (ROWS + OUTPUTS) * (COLUMNS + PAD); /* floats: 43 KB */

/* A part of a matrix in global memory; rows, columns and what lies between are in fours. */
template <class T> struct part {
    const T *data;
    int row, height, width; /* elements from row to row; rows and columns that exist */
};

/* What a thread has of one on its way to shared memory, HEIGHT x WIDTH there with zeros beyond its ends: through
 * registers, so that all loads of a block are under way at once. */
template <int HEIGHT, int WIDTH, class T> struct held {
    static constexpr int FOURS = WIDTH / 4, COUNT = HEIGHT * FOURS / THREADS;
    static_assert(HEIGHT * FOURS % THREADS == 0, "all threads the same");
    vector<T, 4> at[COUNT];

    __device__ __forceinline__ static int row_of(int i)
    {
        return (i * THREADS + threadIdx.x) / FOURS;
    }

    __device__ __forceinline__ static int column_of(int i)
    {
        return (i * THREADS + threadIdx.x) % FOURS * 4;
    }

    __device__ __forceinline__ void read(const part<T> &p)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int r = row_of(i), c = column_of(i);
            at[i] = {};
            if (r < p.height && c < p.width)
                at[i] =
                    pc::ahead(reinterpret_cast<const vector<T, 4> *>(p.data + static_cast<long long>(r) * p.row + c));
        }
    }

    /* Floats need no registers on their way. */
    __device__ __forceinline__ void send(const part<T> &p, float *to)
    {
#if TENSOR_UNITS
        if constexpr (sizeof(T) == sizeof(float)) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const int r = row_of(i), c = column_of(i);
                const bool there = r < p.height && c < p.width;
                send_past(to + r * (WIDTH + PAD) + c, there ? p.data + static_cast<long long>(r) * p.row + c : p.data,
                          there);
            }
            return;
        }
#endif
        read(p);
    }

    __device__ __forceinline__ void put_unsent(float *to) const
    {
#if TENSOR_UNITS
        if constexpr (sizeof(T) == sizeof(float))
            return;
#endif
        put(to);
    }

    __device__ __forceinline__ void put(float *to) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            *reinterpret_cast<float4 *>(to + row_of(i) * (WIDTH + PAD) + column_of(i)) =
                make_float4(at[i].at[0], at[i].at[1], at[i].at[2], at[i].at[3]);
    }

    /* As the gradient in front of an activation, of which `values` are the results. */
    __device__ __forceinline__ void put_through(float *to, const held &values, int activation) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            float g[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                g[j] = activation_gradient(activation, float(at[i].at[j]), float(values.at[i].at[j]));
            *reinterpret_cast<float4 *>(to + row_of(i) * (WIDTH + PAD) + column_of(i)) =
                make_float4(g[0], g[1], g[2], g[3]);
        }
    }
};

/* An operand of a product in shared memory: element (outer, k) is at outer * outers + k * ks. */
struct operand {
    const float *data;
    int outers, ks;
};

/* sum[16 H][8 N] += a b over `deep` of k, a multiple of 8, by a warp; the warp's tile begins at a.data and b.data.
 * EXACT: of floats; else both have 11 bits at most, but for a's gradients unless these are `plain`. As tensor.cuh says,
 * a thread has of 16 x 8 sums rows g and g + 8, columns 2 t and behind. */
template <int H, int N, bool EXACT>
__device__ __forceinline__ void multiply(float (&sum)[H][N][4], operand a, operand b, int deep, bool plain)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#if TENSOR_UNITS
    a.data += g * a.outers + t * a.ks;
    b.data += g * b.outers + t * b.ks;
#pragma unroll 2
    for (int k = 0; k < deep; k += 8, a.data += 8 * a.ks, b.data += 8 * b.ks) {
        halves<4> left[H];
        halves<2> right[N];
#pragma unroll
        for (int h = 0; h < H; h++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[h].take(i, a.data[(h * 16 + i % 2 * 8) * a.outers + i / 2 * 4 * a.ks]);
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                right[n].take(i, b.data[n * 8 * b.outers + i * 4 * b.ks]);
#pragma unroll
        for (int pass = 0; pass < 3; pass += EXACT ? 1 : 2) {
            if (!EXACT && pass == 0 && plain)
                continue;
#pragma unroll
            for (int h = 0; h < H; h++)
#pragma unroll
                for (int n = 0; n < N; n++)
                    add_tensor(sum[h][n], pass == 0 ? left[h].low : left[h].high,
                               pass == 1 ? right[n].low : right[n].high);
        }
    }
#else
    (void)plain;
    for (int k = 0; k < deep; k++)
        for (int h = 0; h < H; h++)
            for (int n = 0; n < N; n++)
                for (int i = 0; i < 4; i++)
                    sum[h][n][i] += a.data[(h * 16 + i / 2 * 8 + g) * a.outers + k * a.ks] *
                                    b.data[(n * 8 + t * 2 + i % 2) * b.outers + k * b.ks];
#endif
}

/* Where a factor is infinite or too large to be halved, matrix units make NaN, and floats have the last word. */
__device__ __noinline__ float again(const float *a, int a_step, const float *b, int b_step, int count)
{
    float value = 0;
#pragma unroll 1
    for (int k = 0; k < count; k++)
        value += a[k * a_step] * b[k * b_step];
    return value;
}

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
                    store(o, outputs, c, sum[h][n] + i, l.dweight + static_cast<long long>(first) * l.k);
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
        l.db[first + threadIdx.x] = sum;
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS, 3) backward_kernel(const __grid_constant__ pc__cuda_linear l)
{
    __shared__ alignas(16) float shared[SHARED];
    columns<T> here(l, shared);
    typename columns<T>::operands some;
    here.read_ahead(some);
    pc::wait_for_earlier();
#pragma unroll 1
    for (int first = 0; first < l.n; first += OUTPUTS) {
        const int outputs = min(OUTPUTS, l.n - first);
        here.bring(some, first, outputs);
        here.multiply_all(first, outputs);
    }
    if (l.dx)
        here.finish_dx();
}

/* Behind the head of a network, as which one more block works. */
template <class T>
__global__ void __launch_bounds__(THREADS, 3)
    behind_head_kernel(const __grid_constant__ pc__cuda_linear l, const __grid_constant__ pc__cuda_head h)
{
    __shared__ alignas(16) float shared[SHARED];
    typedef typename head<T, 1>::results results;
    static_assert(sizeof(results) <= sizeof shared && HEAD_THREADS == THREADS && OUTPUTS == HEAD_PIECE, "a block's");
    columns<T> here(l, shared);
    typename columns<T>::operands some;
    const bool is_head = blockIdx.x == gridDim.x - 1;
    if (!is_head)
        here.read_ahead(some);
    pc::wait_for_earlier();
    if (is_head) {
        head<T, 1>(h, *reinterpret_cast<results *>(shared)).run();
        return;
    }
    here.bring_behind(some, h);
    here.multiply_all(0, l.n);
    if (l.dx)
        here.finish_dx();
}

template <class T> cudaError_t run(const pc__cuda_linear *l, const pc__cuda_head *h)
{
    const unsigned blocks = (l->k + COLUMNS - 1) / COLUMNS;
    return h ? pc::start(behind_head_kernel<T>, blocks + 1, THREADS, l->queue, l->early, *l, *h)
             : pc::start(backward_kernel<T>, blocks, THREADS, l->queue, l->early, *l);
}

} // namespace

int pc__cuda_linear_has_columns(const pc__cuda_linear *l)
{
    const uintptr_t places = reinterpret_cast<uintptr_t>(l->x) | reinterpret_cast<uintptr_t>(l->weight) |
                             reinterpret_cast<uintptr_t>(l->y) | reinterpret_cast<uintptr_t>(l->dy) |
                             reinterpret_cast<uintptr_t>(l->dx) | reinterpret_cast<uintptr_t>(l->dweight);
    return l->m <= ROWS && l->k >= 8 * l->multiprocessors && places % 16 == 0 &&
           (l->n | l->k | static_cast<int>(l->x_row)) % 4 == 0 && !pc__cuda_linear_few_suits_backward(l);
}

cudaError_t pc__cuda_linear_columns(const pc__cuda_linear *l, const pc__cuda_head *h)
{
    return l->dtype == PC__CUDA_F32   ? run<float>(l, h)
           : l->dtype == PC__CUDA_F16 ? run<pc::f16>(l, h)
                                      : run<pc::bf16>(l, h);
}
