/* queries.cu: attention of few queries to many keys, as when a text is written letter by letter. A query has a block: its scores
 * stay in shared memory, and neighbouring lanes have neighbours of a key's or a value's row, 16 bytes each. */
#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, WARP = 32, WARPS = THREADS / WARP;
constexpr int AT_ONCE = 4;                              /* rows of a thread on their way */
constexpr int MOST_KEYS = 8192, MOST_BYTES = 512 << 10; /* of a query: what one multiprocessor reads in some 5 us */
constexpr int MOST_QUERIES = 4, MOST_PACKS = WARP;      /* packs of a row */

template <class T> constexpr int PACK = 16 / sizeof(T);

/* Lanes of a row, a power of two. */
__host__ __device__ inline int lanes_of(int size, int pack)
{
    int lanes = 1;
    while (lanes * pack < size)
        lanes *= 2;
    return lanes;
}

/* Rows first, first + step, ... below `end` of a matrix, AT_ONCE of them on their way: f(row, this lane's pack). As many turns
 * for all threads: in the last, what lies behind the end is zeros. */
template <class T, class F>
__device__ __forceinline__ void each_row(const T *at, int64_t pitch, bool live, int first, int end, int step, F &&f)
{
    const int turns = (end + AT_ONCE * step - 1) / (AT_ONCE * step);
    for (int turn = 0, row = first; turn < turns; turn++, row += AT_ONCE * step) {
        vector<T, PACK<T>> x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            x[u] = {};
            if (live && row + u * step < end)
                x[u] = *reinterpret_cast<const vector<T, PACK<T>> *>(at + (row + u * step) * pitch);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            f(row + u * step, x[u]);
    }
}

/* Scores of the query's keys below `end`. */
template <class T>
__device__ __forceinline__ void find_scores(const pc__cuda_attention &a, const scoring<float> &score, int query,
                                            int64_t batch, int end, float *scores)
{
    const int lanes = lanes_of(a.e, PACK<T>), lane = threadIdx.x % lanes, at = lane * PACK<T>;
    const bool live = at < a.e;
    vector<T, PACK<T>> raw = {};
    if (live)
        raw = *reinterpret_cast<const vector<T, PACK<T>> *>(matrix<const T>(a, a.q, batch) + query * a.q.row + at);
    each_row(matrix<const T>(a, a.k, batch) + at, a.k.row, live, static_cast<int>(threadIdx.x) / lanes, end,
             THREADS / lanes, [&](int key, const vector<T, PACK<T>> &x) {
                 float sum = 0;
#pragma unroll
                 for (int c = 0; c < PACK<T>; c++)
                     sum = fmaf(static_cast<float>(raw.at[c]), static_cast<float>(x.at[c]), sum);
                 for (int distance = lanes / 2; distance > 0; distance /= 2)
                     sum += __shfl_xor_sync(0xffffffffu, sum, distance);
                 if (lane == 0 && key < end)
                     scores[key] = score.of(sum, query, key);
             });
}

/* They become weights; the logarithm of their sum. */
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

/* y = weights times values: each group of lanes has some rows, then those of a warp meet, then the warps. */
template <class T>
__device__ __forceinline__ void add_values(const pc__cuda_attention &a, int query, int64_t batch, int end,
                                           const float *weights, float *room)
{
    const int lanes = lanes_of(a.ev, PACK<T>), lane = threadIdx.x % lanes, at = lane * PACK<T>;
    float sum[PACK<T>] = {};
    each_row(matrix<const T>(a, a.v, batch) + at, a.v.row, at < a.ev, static_cast<int>(threadIdx.x) / lanes, end,
             THREADS / lanes, [&](int key, const vector<T, PACK<T>> &x) {
                 const float weight = key < end ? weights[key] : 0.0f;
#pragma unroll
                 for (int c = 0; c < PACK<T>; c++)
                     sum[c] = fmaf(weight, static_cast<float>(x.at[c]), sum[c]);
             });
    for (int distance = lanes; distance < WARP; distance *= 2)
#pragma unroll
        for (int c = 0; c < PACK<T>; c++)
            sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], distance);
    const int width = lanes * PACK<T>;
    if (threadIdx.x % WARP < lanes)
#pragma unroll
        for (int c = 0; c < PACK<T>; c++)
            room[threadIdx.x / WARP * width + at + c] = sum[c];
    __syncthreads();
    T *y = matrix<T>(a, a.y, batch) + query * a.y.row;
    for (int i = threadIdx.x; i < a.ev; i += THREADS) {
        float all = room[i];
#pragma unroll
        for (int w = 1; w < WARPS; w++)
            all += room[w * width + i];
        y[i * a.y.column] = T(all);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) queries_kernel(const __grid_constant__ pc__cuda_attention a)
{
    extern __shared__ __align__(16) char shared[];
    float *const scores = reinterpret_cast<float *>(shared), *const room = scores + a.s;
    const int64_t batch = blockIdx.x / static_cast<unsigned>(a.l);
    const int query = static_cast<int>(blockIdx.x - batch * a.l), end = keys_before(a, query + 1);
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    find_scores<T>(a, score, query, batch, end, scores);
    __syncthreads();
    const float norm = weigh(a, score, query, end, scores);
    if (a.norms && threadIdx.x == 0)
        static_cast<float *>(a.norms)[batch * a.l + query] = norm;
    add_values<T>(a, query, batch, end, scores, room);
}

template <class T> void start(const pc__cuda_attention *a)
{
    const size_t room = static_cast<size_t>(WARPS) * lanes_of(a->ev, PACK<T>) * PACK<T>;
    (void)pc::start_grid(queries_kernel<T>, dim3(static_cast<unsigned>(a->batches * a->l)), dim3(THREADS),
                         (static_cast<size_t>(a->s) + room) * sizeof(float), a->queue, a->early, *a);
}

} // namespace

bool pc__cuda_attention_has_few_queries(const pc__cuda_attention *a)
{
    if (a->dtype == PC__CUDA_F64 || a->l < 1 || a->l > MOST_QUERIES || a->s < 1 || a->s > MOST_KEYS)
        return false;
    const int size = a->dtype == PC__CUDA_F32 ? 4 : 2, pack = 16 / size;
    return static_cast<int64_t>(a->s) * (a->e + a->ev) * size <= MOST_BYTES && a->e > 0 && a->ev > 0 &&
           a->e <= MOST_PACKS * pack && a->ev <= MOST_PACKS * pack && a->batches > 0 &&
           a->batches < INT32_MAX / MOST_QUERIES && lies_in_packs(a, &a->q, a->e, pack, 16) &&
           lies_in_packs(a, &a->k, a->e, pack, 16) && lies_in_packs(a, &a->v, a->ev, pack, 16);
}

void pc__cuda_attention_queries(const pc__cuda_attention *a)
{
    if (a->dtype == PC__CUDA_F32)
        start<float>(a);
    else if (a->dtype == PC__CUDA_F16)
        start<pc::f16>(a);
    else
        start<pc::bf16>(a);
}
