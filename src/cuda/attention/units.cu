/* units.cu: attention of numbers of 16 bits and of float32 by matrix units, with float32 sums. A block has 64 queries, or
 * 128 where they are many, so that what is read of a key serves two products, and goes over the keys 64 or 32 at a time, the next
 * ones and their values on the way meanwhile. */
#include "cuda/attention/units.cuh"

namespace
{

/* Keys that are gone over at a time: what lies in shared memory is at most 99 KB, all that some devices have. */
template <class T, int D, int M> constexpr int AT_ONCE = sizeof(T) > 2 && D *M > 64 ? 32 : 64;

#if TENSOR_UNITS

/* Over the four lanes that have a row together. */
template <class F> __device__ inline float across(float x, F &&f)
{
    x = f(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return f(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Of a lane's two rows: the largest score so far, and the sum of exp(score - most). */
struct running {
    float most[2], total[2];
};

/* Products with keys from `key` on become weights; `shrink` is what sums so far shrink by. */
template <class T, bool PLAIN, int KEYS>
__device__ inline void weigh(const scoring<float> &score, int query, int key, float (&scores)[KEYS / EIGHT][4],
                             running &r, float (&shrink)[2])
{
    const pc__cuda_attention &a = score.a;
    const int lane = threadIdx.x % 32, row = query + lane / 4, column = key + lane % 4 * 2;
    const bool all = PLAIN && key + KEYS <= a.s && query + 16 <= a.l && (!a.causal || key + KEYS <= query + 1);
    const float scale = score.scale * UNIT<T>;
    float largest[2] = {r.most[0], r.most[1]}, sum[2] = {}, subtract[2];
    if (all) {
#pragma unroll
        for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[n][i] *= scale;
    } else {
#pragma unroll
        for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float &x = scores[n][i];
                const int at = row + i / 2 * EIGHT, of = column + n * EIGHT + i % 2;
                if (PLAIN)
                    x = score.is_seen(at, of) ? x * scale : -INFINITY;
                else
                    x = score.of(x, at, of) * UNIT<T>;
            }
    }
#pragma unroll
    for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            largest[i / 2] = fmaxf(scores[n][i], largest[i / 2]);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        largest[k] = across(largest[k], [](float x, float y) { return x > y ? x : y; });
        subtract[k] = largest[k] == -INFINITY ? 0 : largest[k];
        shrink[k] = exp2f((r.most[k] - subtract[k]) * IN_UNIT<T>);
        r.most[k] = largest[k];
    }
#pragma unroll
    for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float &x = scores[n][i];
            x = exp2f((x - subtract[i / 2]) * IN_UNIT<T>);
            sum[i / 2] += x;
            if (!PLAIN && a.p > 0)
                x *= score.factor(row + i / 2 * EIGHT, column + n * EIGHT + i % 2);
        }
#pragma unroll
    for (int k = 0; k < 2; k++)
        r.total[k] = r.total[k] * shrink[k] + across(sum[k], [](float x, float y) { return x + y; });
}

template <class T, int D>
__device__ inline void finish(const pc__cuda_attention &a, int64_t batch, int query, const running &r,
                              const float (&sums)[D / EIGHT][4])
{
    const int lane = threadIdx.x % 32;
    float by[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int row = query + lane / 4 + k * EIGHT;
        by[k] = r.total[k] == 0 ? 0 : 1 / r.total[k];
        if (a.norms && lane % 4 == 0 && row < a.l)
            static_cast<float *>(a.norms)[batch * a.l + row] =
                r.total[k] == 0 ? INFINITY : r.most[k] / UNIT<T> + logf(r.total[k]);
    }
    put_rows<D, T>(a, a.y, batch, a.l, a.ev, query, sums, by);
}
#endif

/* M: sixteens of queries of a warp. */
template <class T, int D, int M, bool PLAIN>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ pc__cuda_attention a, bool whole_q, bool whole_k, bool whole_v)
{
#if TENSOR_UNITS
    constexpr int KEYS = AT_ONCE<T, D, M>;
    extern __shared__ __align__(128) char shared[];
    T *theirs = reinterpret_cast<T *>(shared),
      *mine = theirs + 4 * KEYS * PITCH<T, D>; /* keys, values, and the next ones */
    const int blocks = (a.l + M * ROWS - 1) / (M * ROWS), own = threadIdx.x / 32 * 16 * M;
    const int64_t batch = blockIdx.x / blocks;
    const int first =
        (blocks - 1 - static_cast<int>(blockIdx.x % blocks)) * M * ROWS; /* of causal ones the longest first */
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    const lines<T> q = lines_of<T>(a, a.q, batch, a.l, a.e, whole_q), k = lines_of<T>(a, a.k, batch, a.s, a.e, whole_k),
                   v = lines_of<T>(a, a.v, batch, a.s, a.ev, whole_v);
    const int end = keys_before(a, first + M * ROWS);
    float sums[M][D / EIGHT][4] = {};
    running r[M];
#pragma unroll
    for (int m = 0; m < M; m++)
        r[m] = {{-INFINITY, -INFINITY}, {0, 0}};
    send_rows<D, M * ROWS>(mine, q, first);
    send_rows<D, KEYS>(theirs, k, 0);
    send_rows<D, KEYS>(theirs + KEYS * PITCH<T, D>, v, 0);
    sent();
#pragma unroll 1
    for (int key = 0; key < end; key += KEYS) {
        const T *keys = theirs + key / KEYS % 2 * 2 * KEYS * PITCH<T, D>, *values = keys + KEYS * PITCH<T, D>;
        T *next = theirs + (key / KEYS + 1) % 2 * 2 * KEYS * PITCH<T, D>;
        float scores[M][KEYS / EIGHT][4], shrink[M][2];
        wait_sent<0>();
        __syncthreads();
        if (key + KEYS < end) {
            send_rows<D, KEYS>(next, k, key + KEYS);
            send_rows<D, KEYS>(next + KEYS * PITCH<T, D>, v, key + KEYS);
        }
        sent();
        if (first + own >= a.l)
            continue; /* a warp without queries: it sends and waits with the others */
        multiply_rows<D, KEYS>(mine + own * PITCH<T, D>, keys, scores);
#pragma unroll
        for (int m = 0; m < M; m++) {
            weigh<T, PLAIN, KEYS>(score, first + own + m * 16, key, scores[m], r[m], shrink[m]);
#pragma unroll
            for (int n = 0; n < D / EIGHT; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sums[m][n][i] *= shrink[m][i / 2];
        }
        add_rows<D, KEYS>(scores, values, sums);
    }
    wait_sent<0>();
#pragma unroll
    for (int m = 0; m < M; m++)
        finish<T, D>(a, batch, first + own + m * 16, r[m], sums[m]);
#endif
}

template <class T, int D, int M, bool PLAIN> void start(const pc__cuda_attention *a)
{
    constexpr size_t shared = (4 * AT_ONCE<T, D, M> + M * ROWS) * PITCH<T, D> * sizeof(T);
    const unsigned blocks = static_cast<unsigned>(a->batches * ((a->l + M * ROWS - 1) / (M * ROWS)));
    if (shared > 40 << 10)
        (void)cudaFuncSetAttribute(forward_kernel<T, D, M, PLAIN>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared));
    if (blocks > 0)
        (void)pc::start_grid(forward_kernel<T, D, M, PLAIN>, dim3(blocks), dim3(THREADS), shared, a->queue, a->early,
                             *a, lies_on_16_bytes(a, &a->q, a->e), lies_on_16_bytes(a, &a->k, a->e),
                             lies_on_16_bytes(a, &a->v, a->ev));
}

/* Blocks of 128 queries leave multiprocessors idle where there are few. */
template <class T, int D> void by_queries(const pc__cuda_attention *a)
{
    enum { BLOCKS = 264 };
    a->batches *(a->l / (2 * ROWS)) >= BLOCKS ? start<T, D, 2, true>(a) : start<T, D, 1, true>(a);
}

template <class T> void forward(const pc__cuda_attention *a)
{
    const int size = a->e > a->ev ? a->e : a->ev;
    if (is_plain(a))
        size <= LEAST<T>    ? by_queries<T, LEAST<T>>(a)
        : size <= 32        ? by_queries<T, 32>(a)
        : size <= 64        ? by_queries<T, 64>(a)
        : size <= MIDDLE<T> ? start<T, MIDDLE<T>, 1, true>(a)
                            : start<T, 128, 1, true>(a);
    else
        size <= 64 ? start<T, 64, 1, false>(a) : start<T, 128, 1, false>(a);
}

} // namespace

bool pc__cuda_attention_has_units(const pc__cuda_attention *a)
{
    return a->dtype != PC__CUDA_F64 && a->e <= 128 && a->ev <= 128 && pc__cuda_code_version() >= 80;
}

void pc__cuda_attention_units(const pc__cuda_attention *a)
{
    if (a->dtype == PC__CUDA_F32)
        forward<float>(a);
    else
        a->dtype == PC__CUDA_F16 ? forward<pc::f16>(a) : forward<pc::bf16>(a);
}
