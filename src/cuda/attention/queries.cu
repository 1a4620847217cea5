/* queries.cu: attention of few queries to many keys, as when a text is written token by token: a query has a block, and its scores
 * stay in shared memory. */
#include "cuda/attention/queries.cuh"

namespace
{

constexpr int LEAST_KEYS = 256 /* which tiles take no longer for */, MOST_KEYS = 3840,
              MOST_BYTES = 512 << 10; /* of a query: what one multiprocessor reads in some 5 us */
constexpr int MOST_BACK = 2048;       /* pairs of a block backward */

/* They become weights; the logarithm of their sum. */
template <int THREADS>
__device__ __forceinline__ float weigh(const pc__cuda_attention &a, const scoring<float> &score, int query, int end,
                                       float *scores)
{
    float most = -INFINITY, sum = 0;
    for (int j = threadIdx.x; j < end; j += THREADS)
        most = fmaxf(most, scores[j]);
    most = block_join<larger, THREADS>(most, -INFINITY);
    const float subtract = most == -INFINITY ? 0.0f : most;
    for (int j = threadIdx.x; j < end; j += THREADS)
        sum += scores[j] = exp_of(scores[j] - subtract);
    sum = block_join<plus, THREADS>(sum, 0.0f);
    const float by = sum == 0 ? 0.0f : 1 / sum;
    for (int j = threadIdx.x; j < end; j += THREADS)
        scores[j] *= a.p > 0 ? by * score.factor(query, j) : by;
    __syncthreads();
    return sum == 0 ? INFINITY : most + log_of(sum);
}

template <int THREADS, class T>
__global__ void __launch_bounds__(THREADS) queries_kernel(const __grid_constant__ pc__cuda_attention a)
{
    extern __shared__ __align__(16) char shared[];
    float *const scores = reinterpret_cast<float *>(shared), *const room = scores + a.s;
    const int64_t batch = blockIdx.x / static_cast<unsigned>(a.l);
    const int query = static_cast<int>(blockIdx.x - batch * a.l), end = keys_before(a, query + 1);
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    each_product<THREADS>(matrix<const T>(a, a.q, batch) + query * a.q.row, matrix<const T>(a, a.k, batch), a.k.row,
                          a.e, end, [&](int key, float product) { scores[key] = score.of(product, query, key); });
    __syncthreads();
    const float norm = weigh<THREADS>(a, score, query, end, scores);
    if (a.norms && threadIdx.x == 0)
        static_cast<float *>(a.norms)[batch * a.l + query] = norm;
    add_rows<THREADS>(matrix<const T>(a, a.v, batch), a.v.row, a.ev, end, scores, 1.0f,
                      matrix<T>(a, a.y, batch) + query * a.y.row, a.y.column, room);
}

template <class T> void start(const pc__cuda_attention *a)
{
    const int64_t blocks = a->batches * a->l;
    const int threads = is_wide(blocks) ? WIDE : USUAL;
    (void)pc::start_grid(is_wide(blocks) ? queries_kernel<WIDE, T> : queries_kernel<USUAL, T>,
                         dim3(static_cast<unsigned>(blocks)), dim3(threads),
                         (static_cast<size_t>(a->s) + room_for<T>(a->ev, threads)) * sizeof(float), a->queue, a->early,
                         *a);
}

} // namespace

bool pc__cuda_attention_has_few_queries(const pc__cuda_attention *a, bool backward)
{
    if (a->dtype == PC__CUDA_F64 || a->l < 1 || a->l > MOST_QUERIES || a->s < LEAST_KEYS || a->s > MOST_KEYS ||
        (backward && a->l * a->s > MOST_BACK))
        return false;
    const int size = a->dtype == PC__CUDA_F32 ? 4 : 2, pack = 16 / size;
    const pc__cuda_matrices *of_e[] = {&a->q, &a->k, &a->dk}, *of_ev[] = {&a->v, &a->g, &a->dv};
    bool whole = true;
    for (int i = 0; i < (backward ? 3 : 2); i++)
        whole &= lies_in_packs(a, of_e[i], a->e, pack, 16);
    for (int i = 0; i < (backward ? 3 : 1); i++)
        whole &= lies_in_packs(a, of_ev[i], a->ev, pack, 16);
    return whole && static_cast<int64_t>(a->s) * (a->e + a->ev) * size <= MOST_BYTES && a->e > 0 && a->ev > 0 &&
           a->e <= WARP * pack && a->ev <= WARP * pack && a->batches > 0 && a->batches < INT32_MAX / MOST_QUERIES;
}

void pc__cuda_attention_queries(const pc__cuda_attention *a)
{
    with_narrow(a->dtype, [&](auto number) { start<decltype(number)>(a); });
}
