/* linear_few.cu: linear layers of few outputs, forward of few results too, in a launch each way. There is hardly anything to
 * compute: what takes time is one wait after the other, and code that comes from memory to be run once. So a thread has
 * all its loads under way before it uses the first, straight into registers, and the sums are plain ones in floats,
 * always in the same order, which does not depend on how the numbers lie in memory.
 *
 * Forward, each element of y has a block, of as many warps as its sum is long, or a thread where it is short. Backward, a warp has 128 columns: of
 * dweight, for which the warps share the rows of x, or of a row of dx. Either is a sum of rows of a matrix, each times
 * a number of the gradient, which goes through the activation on its way. */
#include "cuda/matmul/linear_few.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/matmul/linear_activation.cuh"
#include "cuda/matmul/linear_few.cuh"
#include "cuda/matmul/linear_gradient.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int FOURS = 4, WARP_LONG = FOURS * LANES * 4, WARPS_MOST = 8; /* forward: of a sum */
constexpr int WARPS = ROW_GROUPS, THREADS = WARPS * LANES, COLUMNS = LANES * 4;
constexpr double PRODUCTS_MOST = 1 << 21;     /* operands are read once for each element, from the second-level cache */
constexpr double IN_FLIGHT = 1024;            /* warps forward: some 4600 took 7.3 us, where tiles take 4.6 */
constexpr int SHORT = 16, SHORT_THREADS = 64; /* of a sum for a thread, of which a block has so many */
constexpr double SHORT_RESULTS = 32768;

/* For more blocks beside it the compiler would save registers, and compute before the last loads are under way. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(WARPS_MOST *LANES, 1) few_forward_kernel(const __grid_constant__ pc__cuda_linear l)
{
    __shared__ float parts[WARPS_MOST];
    const int column = blockIdx.x, row = blockIdx.y, warps = blockDim.x / LANES;
    const int mine = threadIdx.x * 4, step = blockDim.x * 4;
    const T *x = static_cast<const T *>(l.x) + row * static_cast<int>(l.x_row) + mine;
    const T *weight = static_cast<const T *>(l.weight) + column * l.k + mine;
    pc::wait_for_earlier();
    vector<T, 4> a[FOURS], b[FOURS];
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        a[i] = read<WIDE>(x + i * step, l.k - mine - i * step);
        b[i] = read<WIDE>(weight + i * step, l.k - mine - i * step);
    }
    const float bias = l.bias ? float(static_cast<const T *>(l.bias)[column]) : 0.0f;
    float sum = warp_join<plus>(own_dot(a, b));
    if (warps > 1) {
        if (threadIdx.x % LANES == 0)
            parts[threadIdx.x / LANES] = sum;
        __syncthreads();
        sum = parts[0];
#pragma unroll 1
        for (int i = 1; i < warps; i++)
            sum += parts[i];
    }
    if (threadIdx.x == 0)
        static_cast<T *>(l.y)[row * l.n + column] = layer_activated<T>(l.activation, sum + bias);
}

/* The same of a sum so short that a thread has it. */
template <class T>
__global__ void __launch_bounds__(SHORT_THREADS, 1) few_short_kernel(const __grid_constant__ pc__cuda_linear l)
{
    const int i = blockIdx.x * SHORT_THREADS + threadIdx.x, row = i / l.n, column = i - row * l.n;
    pc::wait_for_earlier();
    if (row >= l.m)
        return;
    const T *x = static_cast<const T *>(l.x) + row * static_cast<int>(l.x_row);
    const T *weight = static_cast<const T *>(l.weight) + column * l.k;
    T a[SHORT], b[SHORT];
#pragma unroll
    for (int k = 0; k < SHORT; k++) {
        a[k] = k < l.k ? x[k] : T(0.0f);
        b[k] = k < l.k ? weight[k] : T(0.0f);
    }
    const float bias = l.bias ? float(static_cast<const T *>(l.bias)[column]) : 0.0f;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < SHORT; k++)
        sum = fmaf(float(a[k]), float(b[k]), sum);
    static_cast<T *>(l.y)[i] = layer_activated<T>(l.activation, sum + bias);
}

/* The sum of `terms` rows of a matrix, in this lane's columns: row i, `step` rows from one to the next, times a number
 * of the gradient at g + i * g_step. The numbers, zeros behind the last, are left in `numbers`. */
template <class T, bool WIDE>
__device__ inline void add_rows(const pc__cuda_linear &l, const T *matrix, long long step, int columns, int g,
                                int g_step, int terms, float *numbers, float (&sum)[4])
{
    const int mine = threadIdx.x % LANES;
    const bool has = mine < terms;
    const T dy = has ? static_cast<const T *>(l.dy)[g + mine * g_step] : T(0.0f);
    const T y = has && l.activation ? static_cast<const T *>(l.y)[g + mine * g_step] : T(0.0f);
    vector<T, 4> rows[TERMS];
#pragma unroll
    for (int i = 0; i < TERMS; i++)
        rows[i] = read<WIDE>(matrix + i * step, i < terms ? columns : 0);
    if (mine < TERMS)
        numbers[mine] = has ? activation_gradient(l.activation, float(dy), float(y)) : 0.0f;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TERMS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[j] = fmaf(numbers[i], rows[i].at[j], sum[j]);
}

/* Blocks of an output each, then of WARPS rows of dx. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(THREADS) few_backward_kernel(const __grid_constant__ pc__cuda_linear l)
{
    __shared__ alignas(16) float numbers[WARPS][TERMS];
    __shared__ float4 parts[WARPS][LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int column = blockIdx.x * COLUMNS + lane * 4, columns = l.k - column, output = blockIdx.y;
    const bool weights = output < l.n;
    const int row = weights ? warp : (output - l.n) * WARPS + warp;
    const int terms = weights ? (l.m - warp + WARPS - 1) / WARPS : row < l.m ? l.n : 0;
    pc::wait_for_earlier();
    float sum[4] = {};
    add_rows<T, WIDE>(
        l, (weights ? static_cast<const T *>(l.x) + row * l.x_row : static_cast<const T *>(l.weight)) + column,
        weights ? WARPS * l.x_row : l.k, columns, row * l.n + (weights ? output : 0), weights ? WARPS * l.n : 1, terms,
        numbers[warp], sum);
    if (!weights) {
        write<WIDE>(static_cast<T *>(l.dx) + row * l.k + column, sum, row < l.m ? columns : 0);
        return;
    }
    parts[warp][lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    __syncthreads();
    if (warp == 1 && blockIdx.x == 0 && l.db) {
        const float *all = numbers[0];
        const float total = warp_join<plus>(all[lane] + all[lane + LANES]);
        if (lane == 0)
            store_gradient<T>(l.db, l.narrow, output, total);
    }
    if (warp > 0)
        return;
#pragma unroll
    for (int w = 1; w < WARPS; w++) {
        const float4 part = parts[w][lane];
        sum[0] += part.x, sum[1] += part.y, sum[2] += part.z, sum[3] += part.w;
    }
    if (l.narrow)
        write<WIDE>(static_cast<T *>(l.dweight) + output * l.k + column, sum, columns);
    else
        write<WIDE>(static_cast<float *>(l.dweight) + output * l.k + column, sum, columns);
}

bool has_few_products(const pc__cuda_linear *l)
{
    return static_cast<double>(l->m) * l->n * l->k <= PRODUCTS_MOST;
}

/* One output is the head's, too, whose sums are a warp's: with the same bits. */
bool is_short(const pc__cuda_linear *l)
{
    return l->n > 1 && l->k <= SHORT && static_cast<double>(l->m) * l->n <= SHORT_RESULTS;
}

int warps_of(const pc__cuda_linear *l)
{
    return (l->k + WARP_LONG - 1) / WARP_LONG;
}

template <class T> cudaError_t forward(const pc__cuda_linear *l)
{
    const int warps = warps_of(l);
    if (is_short(l))
        return pc::start(few_short_kernel<T>, (l->m * l->n + SHORT_THREADS - 1) / SHORT_THREADS, SHORT_THREADS,
                         l->queue, l->early, *l);
    return pc::start_grid(is_wide<T>(l) ? few_forward_kernel<T, true> : few_forward_kernel<T, false>, dim3(l->n, l->m),
                          dim3(warps * LANES), 0, l->queue, l->early, *l);
}

template <class T> cudaError_t backward(const pc__cuda_linear *l)
{
    const int rows = l->dx ? (l->m + WARPS - 1) / WARPS : 0;
    return pc::start_grid(is_wide<T>(l) ? few_backward_kernel<T, true> : few_backward_kernel<T, false>,
                          dim3((l->k + COLUMNS - 1) / COLUMNS, l->n + rows), dim3(THREADS), 0, l->queue, l->early, *l);
}

} // namespace

bool pc__cuda_linear_few_suits(const pc__cuda_linear *l)
{
    const bool at_once = static_cast<double>(l->m) * l->n * warps_of(l) <= IN_FLIGHT;
    if (is_short(l))
        return true;
    return l->m <= ROWS_MOST && l->k <= WARPS_MOST * WARP_LONG && has_few_products(l) && (l->n <= TERMS || at_once);
}

bool pc__cuda_linear_few_suits_backward(const pc__cuda_linear *l)
{
    return l->m <= ROWS_MOST && l->n <= TERMS && has_few_products(l);
}

cudaError_t pc__cuda_linear_few_forward(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32   ? forward<float>(l)
           : l->dtype == PC__CUDA_F16 ? forward<pc::f16>(l)
                                      : forward<pc::bf16>(l);
}

cudaError_t pc__cuda_linear_few_backward(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32   ? backward<float>(l)
           : l->dtype == PC__CUDA_F16 ? backward<pc::f16>(l)
                                      : backward<pc::bf16>(l);
}
