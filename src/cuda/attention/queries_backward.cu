/* queries_backward.cu: gradients of attention of few queries: a block has a matrix of the batch, its weights and their gradients in
 * shared memory, so that keys and values are read for these, and written once. */
#include "cuda/attention/queries.cuh"

namespace
{

/* weights[l][s] and slopes[l][s], which are the gradients of what dropout left of these. */
template <int THREADS, class T>
__device__ __forceinline__ void find_weights(const pc__cuda_attention &a, const scoring<float> &score, int64_t batch,
                                             float *weights, float *slopes)
{
    const T *q = matrix<const T>(a, a.q, batch), *g = matrix<const T>(a, a.g, batch);
    const float *norms = static_cast<const float *>(a.norms) + batch * a.l;
    for (int i = 0; i < a.l; i++) {
        each_product<THREADS>(
            q + i * a.q.row, matrix<const T>(a, a.k, batch), a.k.row, a.e, a.s,
            [&](int key, float product) { weights[i * a.s + key] = exp_of(score.of(product, i, key) - norms[i]); });
        each_product<THREADS>(g + i * a.g.row, matrix<const T>(a, a.v, batch), a.v.row, a.ev, a.s,
                              [&](int key, float product) {
                                  slopes[i * a.s + key] = a.p > 0 ? product * score.factor(i, key) : product;
                              });
    }
    __syncthreads();
}

/* Row j of `to`: by times the sum over queries of their rows of `of`, times their weight of key j. */
template <int THREADS, class T>
__device__ __forceinline__ void spread(const pc__cuda_attention &a, const T *of, int64_t pitch, const float *weights,
                                       float by, int size, T *to, int64_t row)
{
    const int lanes = lanes_of(size, PACK<T>), at = threadIdx.x % lanes * PACK<T>;
    vector<T, PACK<T>> own[MOST_QUERIES];
#pragma unroll
    for (int i = 0; i < MOST_QUERIES; i++)
        if (i < a.l)
            own[i] = own_pack(of + i * pitch, size);
    for (int j = threadIdx.x / lanes; j < a.s && at < size; j += THREADS / lanes) {
        float sum[PACK<T>] = {};
#pragma unroll
        for (int i = 0; i < MOST_QUERIES; i++)
            if (i < a.l)
#pragma unroll
                for (int c = 0; c < PACK<T>; c++)
                    sum[c] = fmaf(weights[i * a.s + j], static_cast<float>(own[i].at[c]), sum[c]);
        vector<T, PACK<T>> rounded;
#pragma unroll
        for (int c = 0; c < PACK<T>; c++)
            rounded.at[c] = T(sum[c] * by);
        *reinterpret_cast<vector<T, PACK<T>> *>(to + j * row + at) = rounded;
    }
}

template <int THREADS, class T>
__global__ void __launch_bounds__(THREADS) queries_backward(const __grid_constant__ pc__cuda_attention a)
{
    extern __shared__ __align__(16) char shared[];
    float *const weights = reinterpret_cast<float *>(shared), *const slopes = weights + a.l * a.s,
                 *const room = slopes + a.l * a.s;
    const int64_t batch = blockIdx.x;
    const float scale = static_cast<float>(a.scale);
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    find_weights<THREADS, T>(a, score, batch, weights, slopes);
    find_slopes<THREADS / WARP>(a, score, weights, slopes);
    __syncthreads();
    spread<THREADS>(a, matrix<const T>(a, a.q, batch), a.q.row, slopes, scale, a.e, matrix<T>(a, a.dk, batch),
                    a.dk.row);
    spread<THREADS>(a, matrix<const T>(a, a.g, batch), a.g.row, weights, 1.0f, a.ev, matrix<T>(a, a.dv, batch),
                    a.dv.row);
    for (int i = 0; i < a.l; i++)
        add_rows<THREADS>(matrix<const T>(a, a.k, batch), a.k.row, a.e, keys_before(a, i + 1), slopes + i * a.s, scale,
                          matrix<T>(a, a.dq, batch) + i * a.dq.row, a.dq.column, room);
}

template <class T> void start(const pc__cuda_attention *a)
{
    const size_t pairs = static_cast<size_t>(a->l) * static_cast<size_t>(a->s);
    const int threads = is_wide(a->batches) ? WIDE : USUAL;
    (void)pc::start_grid(is_wide(a->batches) ? queries_backward<WIDE, T> : queries_backward<USUAL, T>,
                         dim3(static_cast<unsigned>(a->batches)), dim3(threads),
                         (2 * pairs + room_for<T>(a->e, threads)) * sizeof(float), a->queue, a->early, *a);
}

} // namespace

void pc__cuda_attention_queries_backward(const pc__cuda_attention *a)
{
    with_narrow(a->dtype, [&](auto number) { start<decltype(number)>(a); });
}
