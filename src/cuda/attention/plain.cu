/* plain.cu: attention of any size without matrix units. A block has a tile of queries and some columns of their results; it
 * goes over the keys with a running maximum and sum of each row. */
#include "cuda/attention/plain.cuh"

namespace
{

/* Over the lanes of half a warp, which have a row together. */
template <class T, class F> __device__ inline T across(T x, F &&f)
{
#pragma unroll
    for (int other = ACROSS / 2; other > 0; other /= 2)
        x = f(x, __shfl_xor_sync(0xffffffffu, x, other));
    return x;
}

/* A row's part of a tile of scores becomes weights; returns what sums so far shrink by. */
template <class T, int N> __device__ inline T weigh(T (&scores)[N], T &most, T &total)
{
    T largest = most, sum = 0;
#pragma unroll
    for (int c = 0; c < N; c++)
        largest = scores[c] > largest ? scores[c] : largest;
    largest = across(largest, [](T a, T b) { return a > b ? a : b; });
    const T subtract = largest == -static_cast<T>(INFINITY) ? T(0) : largest, shrink = exp_of(most - subtract);
#pragma unroll
    for (int c = 0; c < N; c++) {
        scores[c] = exp_of(scores[c] - subtract);
        sum += scores[c];
    }
    most = largest;
    total = total * shrink + across(sum, [](T a, T b) { return a + b; });
    return shrink;
}

template <class T>
__global__ void __launch_bounds__(THREADS) forward_kernel(const __grid_constant__ pc__cuda_attention a)
{
    constexpr int N = cut<T>::N, SIDE = cut<T>::SIDE;
    __shared__ tiles<T> t;
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS, blocks = (a.l + SIDE - 1) / SIDE;
    const int64_t batch = blockIdx.x / blocks;
    const int i = static_cast<int>(blockIdx.x % blocks) * SIDE, column = static_cast<int>(blockIdx.y) * SIDE;
    pc::wait_for_earlier();
    const scoring<T> score(a, batch);
    const lines<T> q = lines_of<T>(a, a.q, batch, a.l, a.e), k = lines_of<T>(a, a.k, batch, a.s, a.e),
                   v = lines_of<T>(a, a.v, batch, a.s, a.ev);
    T sums[N][N] = {}, most[N], total[N] = {}, by[N];
#pragma unroll
    for (int r = 0; r < N; r++)
        most[r] = -static_cast<T>(INFINITY);
    const int end = keys_before(a, i + SIDE);
    for (int j = 0; j < end; j += SIDE) {
        T weights[N][N];
        multiply_rows(t, q, i, k, j, weights);
#pragma unroll
        for (int r = 0; r < N; r++) {
            const int query = i + y * N + r;
#pragma unroll
            for (int c = 0; c < N; c++)
                weights[r][c] = score.of(weights[r][c], query, j + x * N + c);
            const T shrink = weigh(weights[r], most[r], total[r]);
#pragma unroll
            for (int c = 0; c < N; c++) {
                sums[r][c] *= shrink;
                if (a.p > 0)
                    weights[r][c] *= score.factor(query, j + x * N + c);
            }
        }
        keep_weights(t, weights);
        add_rows(t, v, j, column, sums);
    }
#pragma unroll
    for (int r = 0; r < N; r++) {
        const int query = i + y * N + r;
        by[r] = total[r] == 0 ? T(0) : 1 / total[r];
        if (a.norms && x == 0 && column == 0 && query < a.l)
            static_cast<T *>(a.norms)[batch * a.l + query] =
                total[r] == 0 ? static_cast<T>(INFINITY) : most[r] + log_of(total[r]);
    }
    put_rows(a, a.y, batch, a.l, a.ev, i, column, sums, by);
}

} // namespace

void pc__cuda_attention_plain(const pc__cuda_attention *a)
{
    if (a->dtype == PC__CUDA_F64)
        start_tiles(a, forward_kernel<double>, a->l, cut<double>::SIDE, a->ev);
    else
        start_tiles(a, forward_kernel<float>, a->l, cut<float>::SIDE, a->ev);
}
