/* plain_backward.cu: the gradients of attention without matrix units. Blocks have a tile of queries and go over the keys,
 * for dq, or a tile of keys and go over the queries, for dk and dv: so nothing is added by several blocks, for the price of
 * weights that are made twice. */
#include "cuda/attention/plain.cuh"

namespace
{

/* OF_KEYS: rows of tiles are keys, and what they go over are queries. */
template <class T, bool OF_KEYS>
__global__ void __launch_bounds__(THREADS) backward_kernel(const __grid_constant__ pc__cuda_attention a)
{
    constexpr int N = cut<T>::N, SIDE = cut<T>::SIDE;
    __shared__ tiles<T> t;
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS, rows = OF_KEYS ? a.s : a.l;
    const int blocks = (rows + SIDE - 1) / SIDE, column = static_cast<int>(blockIdx.y) * SIDE;
    const int64_t batch = blockIdx.x / blocks;
    const int i = static_cast<int>(blockIdx.x % blocks) * SIDE;
    pc::wait_for_earlier();
    const scoring<T> score(a, batch);
    const lines<T> q = lines_of<T>(a, a.q, batch, a.l, a.e), k = lines_of<T>(a, a.k, batch, a.s, a.e),
                   v = lines_of<T>(a, a.v, batch, a.s, a.ev), g = lines_of<T>(a, a.g, batch, a.l, a.ev);
    const T *norms = static_cast<const T *>(a.norms) + batch * a.l,
            *means = static_cast<const T *>(a.means) + batch * a.l;
    T first[N][N] = {}, second[N][N] = {}, scale[N], one[N];
    const int end = OF_KEYS ? a.l : keys_before(a, i + SIDE);
    for (int j = OF_KEYS ? first_query(a, i, SIDE) : 0; j < end; j += SIDE) {
        T weights[N][N], slopes[N][N];
        multiply_rows(t, OF_KEYS ? k : q, i, OF_KEYS ? q : k, j, weights);
        multiply_rows(t, OF_KEYS ? v : g, i, OF_KEYS ? g : v, j, slopes);
#pragma unroll
        for (int r = 0; r < N; r++)
#pragma unroll
            for (int c = 0; c < N; c++) {
                const int mine = i + y * N + r, theirs = j + x * N + c;
                const int query = OF_KEYS ? theirs : mine, key = OF_KEYS ? mine : theirs;
                const T norm = query < a.l ? norms[query] : static_cast<T>(INFINITY);
                const T weight = exp_of(score.of(weights[r][c], query, key) - norm);
                const T factor = a.p > 0 ? score.factor(query, key) : T(1);
                slopes[r][c] = query < a.l ? weight * (slopes[r][c] * factor - means[query]) : T(0);
                weights[r][c] = weight * factor;
            }
        keep_weights(t, slopes);
        add_rows(t, OF_KEYS ? q : k, j, column, first);
        if (OF_KEYS) {
            keep_weights(t, weights);
            add_rows(t, g, j, column, second);
        }
    }
#pragma unroll
    for (int r = 0; r < N; r++)
        scale[r] = static_cast<T>(a.scale), one[r] = 1;
    put_rows(a, OF_KEYS ? a.dk : a.dq, batch, rows, a.e, i, column, first, scale);
    if (OF_KEYS)
        put_rows(a, a.dv, batch, rows, a.ev, i, column, second, one);
}

template <class T> void backward(const pc__cuda_attention *a)
{
    start_tiles(a, backward_kernel<T, false>, a->l, cut<T>::SIDE, a->e);
    start_tiles(a, backward_kernel<T, true>, a->s, cut<T>::SIDE, a->e > a->ev ? a->e : a->ev);
}

} // namespace

void pc__cuda_attention_plain_backward(const pc__cuda_attention *a)
{
    a->dtype == PC__CUDA_F64 ? backward<double>(a) : backward<float>(a);
}
