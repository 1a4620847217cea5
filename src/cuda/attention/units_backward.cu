/* units_backward.cu: the gradients of attention of 16-bit numbers by matrix units: as plain_backward.cu, blocks have 64
 * queries and go over the keys, for dq, or 64 keys and go over the queries, for dk and dv. */
#include "cuda/attention/units.cuh"

namespace
{

/* Rows that are gone over at a time: sums of 128 columns leave registers for fewer. */
template <int D> constexpr int AT_ONCE = D > 64 ? 32 : 64;

template <class T, int D> constexpr size_t SHARED = (2 * ROWS + 2 * AT_ONCE<D>)*PITCH<D> * sizeof(T);

#if TENSOR_UNITS

/* Products become weights, and those with the gradient of y the gradients of scores. Rows from `mine` on, columns from
 * `theirs` on. */
template <bool OF_KEYS, int N>
__device__ inline void slope(const scoring<float> &score, int64_t batch, int mine, int theirs,
                             float (&weights)[N / EIGHT][4], float (&slopes)[N / EIGHT][4])
{
    const pc__cuda_attention &a = score.a;
    const int lane = threadIdx.x % 32;
    const float *norms = static_cast<const float *>(a.norms) + batch * a.l;
    const float *means = static_cast<const float *>(a.means) + batch * a.l;
#pragma unroll
    for (int n = 0; n < N / EIGHT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = mine + lane / 4 + i / 2 * EIGHT, column = theirs + n * EIGHT + lane % 4 * 2 + i % 2;
            const int query = OF_KEYS ? column : row, key = OF_KEYS ? row : column;
            const bool there = query < a.l;
            const float norm = there ? norms[query] : INFINITY, mean = there ? means[query] : 0;
            const float weight = exp2f((score.of(weights[n][i], query, key) - norm) * LOG2_E);
            const float factor = a.p > 0 ? score.factor(query, key) : 1;
            slopes[n][i] = weight * (slopes[n][i] * factor - mean);
            weights[n][i] = weight * factor;
        }
}
#endif

template <class T, int D, bool OF_KEYS>
__global__ void __launch_bounds__(THREADS) backward_kernel(const __grid_constant__ pc__cuda_attention a, bool whole_q,
                                                           bool whole_k, bool whole_v, bool whole_g)
{
#if TENSOR_UNITS
    constexpr int N = AT_ONCE<D>;
    extern __shared__ __align__(128) char shared[];
    T *mine_1 = reinterpret_cast<T *>(shared), *mine_2 = mine_1 + ROWS * PITCH<D>;
    T *theirs_1 = mine_2 + ROWS * PITCH<D>, *theirs_2 = theirs_1 + N * PITCH<D>;
    const int rows = OF_KEYS ? a.s : a.l, blocks = (rows + ROWS - 1) / ROWS, own = threadIdx.x / 32 * 16;
    const int64_t batch = blockIdx.x / blocks;
    const int block = static_cast<int>(blockIdx.x % blocks), first = (OF_KEYS ? block : blocks - 1 - block) * ROWS;
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    const lines<T> q = lines_of<T>(a, a.q, batch, a.l, a.e, whole_q), k = lines_of<T>(a, a.k, batch, a.s, a.e, whole_k),
                   v = lines_of<T>(a, a.v, batch, a.s, a.ev, whole_v),
                   g = lines_of<T>(a, a.g, batch, a.l, a.ev, whole_g);
    float sums_1[D / EIGHT][4] = {}, sums_2[OF_KEYS ? D / EIGHT : 1][4] = {};
    send_rows<D, ROWS>(mine_1, OF_KEYS ? k : q, first);
    send_rows<D, ROWS>(mine_2, OF_KEYS ? v : g, first);
    const int end = OF_KEYS ? a.l : keys_before(a, first + ROWS);
    for (int j = OF_KEYS ? first_query(a, first, N) : 0; j < end; j += N) {
        float weights[N / EIGHT][4], slopes[N / EIGHT][4];
        __syncthreads();
        send_rows<D, N>(theirs_1, OF_KEYS ? q : k, j);
        send_rows<D, N>(theirs_2, OF_KEYS ? g : v, j);
        sent();
        wait_sent<0>();
        __syncthreads();
        multiply_rows<D, N>(mine_1 + own * PITCH<D>, theirs_1, weights);
        multiply_rows<D, N>(mine_2 + own * PITCH<D>, theirs_2, slopes);
        slope<OF_KEYS, N>(score, batch, first + own, j, weights, slopes);
        add_rows<D, N>(slopes, theirs_1, sums_1);
        if constexpr (OF_KEYS)
            add_rows<D, N>(weights, theirs_2, sums_2);
    }
    sent();
    wait_sent<0>();
    const float scale[2] = {score.scale, score.scale}, one[2] = {1, 1};
    put_rows<D, T>(a, OF_KEYS ? a.dk : a.dq, batch, rows, a.e, first + own, sums_1, scale);
    if constexpr (OF_KEYS)
        put_rows<D, T>(a, a.dv, batch, rows, a.ev, first + own, sums_2, one);
#endif
}

template <class T, int D, bool OF_KEYS> void start(const pc__cuda_attention *a)
{
    constexpr size_t shared = SHARED<T, D>;
    const unsigned blocks = static_cast<unsigned>(a->batches * blocks_of(OF_KEYS ? a->s : a->l));
    if (blocks == 0)
        return;
    if (shared > 40 << 10)
        (void)cudaFuncSetAttribute(backward_kernel<T, D, OF_KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared));
    (void)pc::start_grid(backward_kernel<T, D, OF_KEYS>, dim3(blocks), dim3(THREADS), shared, a->queue, a->early, *a,
                         lies_on_16_bytes(a, &a->q, a->e), lies_on_16_bytes(a, &a->k, a->e),
                         lies_on_16_bytes(a, &a->v, a->ev), lies_on_16_bytes(a, &a->g, a->ev));
}

template <class T, int D> void both(const pc__cuda_attention *a)
{
    start<T, D, false>(a);
    start<T, D, true>(a);
}

template <class T> void backward(const pc__cuda_attention *a)
{
    const int size = a->e > a->ev ? a->e : a->ev;
    size <= 32 ? both<T, 32>(a) : size <= 64 ? both<T, 64>(a) : both<T, 128>(a);
}

} // namespace

void pc__cuda_attention_units_backward(const pc__cuda_attention *a)
{
    a->dtype == PC__CUDA_F16 ? backward<pc::f16>(a) : backward<pc::bf16>(a);
}
