/* units.cu: attention of numbers of 16 bits and of float32 by matrix units, with float32 sums. A block has 64 queries and
 * goes over the keys, 64 or 32 at a time, the next ones and their values on the way meanwhile. Three such blocks or more of up
 * to 64 numbers fit into a multiprocessor, or four (start.c): while one waits for memory, or for its last product, others work. */
#include "cuda/attention/units.cuh"

namespace
{

/* Keys that are gone over at a time: what lies in shared memory is at most 99 KB, all that some devices have. Of up to FEW keys
 * LEAST_KEYS at a time: a block has less to wait for and leaves room for others. */
constexpr int LEAST_KEYS = 32;
template <class T, int D> constexpr int FEW = sizeof(T) > 2 || D < 32 ? 64 : 224;
template <class T, int D> constexpr int AT_ONCE = sizeof(T) > 2 && D > 32 ? LEAST_KEYS : 64;

/* Which operands can be read or written by 16 bytes. */
struct wholes {
    bool q, k, v, y;
};

#if TENSOR_UNITS

/* Over the four lanes that have a row together. */
template <class F> __device__ inline float across(float x, F &&f)
{
    x = f(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return f(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Of a lane's two rows: `most`, which no score so far is more than SLACK above, minus infinity where none was seen; and of the
 * lane's own columns the sum of exp(score - most). */
struct running {
    float most[2], total[2];
};

/* Weights may be 2^8 before `most` moves and what was added up so far shrinks, so that after the first keys there is mostly nothing
 * to shrink; rounded to 16 bits a larger number is as exact. Not beside a mask or a dropout, whose factor may be large: float16
 * ends at 2^16. */
template <class T, bool PLAIN> constexpr float SLACK = PLAIN ? 8 / IN_UNIT<T> : 0;

/* Products become scores when multiplied by what is returned, which is above 0: minus infinity where a query does not attend to a
 * key. */
template <class T, bool PLAIN, int KEYS>
__device__ inline float find_scores(const scoring<float> &score, int query, int key, float (&scores)[KEYS / EIGHT][4])
{
    const pc__cuda_attention &a = score.a;
    const int lane = threadIdx.x % 32, row = query + lane / 4, column = key + lane % 4 * 2;
    const float scale = score.scale * UNIT<T>;
    const bool whole = key + KEYS <= a.s && (!a.causal || key + KEYS <= query + 1), scaled = !PLAIN || scale <= 0;
    if (scaled) {
#pragma unroll
        for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float &x = scores[n][i];
                const int at = row + i / 2 * EIGHT, of = column + n * EIGHT + i % 2;
                x = PLAIN ? x * scale : score.of(x, at, of) * UNIT<T>;
            }
    }
    if (PLAIN && !whole) {
        int seen[2];
#pragma unroll
        for (int k = 0; k < 2; k++)
            seen[k] = (a.causal ? min(a.s, row + k * EIGHT + 1) : a.s) - column;
#pragma unroll
        for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[n][i] = n * EIGHT + i % 2 < seen[i / 2] ? scores[n][i] : -INFINITY;
    }
    return scaled ? 1 : scale;
}

/* Products with keys from `key` on become weights; `shrink` is what sums so far shrink by. False: by nothing, in no lane. */
template <class T, bool PLAIN, int KEYS>
__device__ inline bool weigh(const scoring<float> &score, int query, int key, float (&scores)[KEYS / EIGHT][4],
                             running &r, float (&shrink)[2])
{
    const float by = find_scores<T, PLAIN, KEYS>(score, query, key, scores);
    float largest[2] = {-INFINITY, -INFINITY}, subtract[2];
    bool moves = false;
#pragma unroll
    for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            largest[i / 2] = fmaxf(scores[n][i], largest[i / 2]);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        largest[k] = across(largest[k], [](float x, float y) { return x > y ? x : y; }) * by;
        const float most = largest[k] - r.most[k] > SLACK<T, PLAIN> ? largest[k] : r.most[k];
        subtract[k] = most == -INFINITY ? 0 : most;
        shrink[k] = power_of_2((r.most[k] - subtract[k]) * IN_UNIT<T>);
        moves |= most != r.most[k];
        r.most[k] = most;
        r.total[k] *= shrink[k];
    }
    const int lane = threadIdx.x % 32, row = query + lane / 4, column = key + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < KEYS / EIGHT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float &x = scores[n][i];
            x = power_of_2((x * by - subtract[i / 2]) * IN_UNIT<T>);
            r.total[i / 2] += x;
            if (!PLAIN && score.a.p > 0)
                x *= score.factor(row + i / 2 * EIGHT, column + n * EIGHT + i % 2);
        }
    return __ballot_sync(0xffffffffu, moves) != 0;
}

/* A warp's queries, from `query` on, see keys from `key` on, with their values. */
template <class T, int D, int KEYS, bool PLAIN>
__device__ inline void see_keys(const scoring<float> &score, int query, int key, const T *mine, const T *keys,
                                const T *values, running &r, float (&sums)[D / EIGHT][4])
{
    float scores[KEYS / EIGHT][4], shrink[2];
    multiply_rows<D, KEYS>(mine, keys, scores);
    if (weigh<T, PLAIN, KEYS>(score, query, key, scores, r, shrink)) {
#pragma unroll
        for (int n = 0; n < D / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[n][i] *= shrink[i / 2];
    }
    add_rows<D, KEYS>(scores, values, sums);
}

template <class T, int D>
__device__ inline void finish(const pc__cuda_attention &a, int64_t batch, int query, const running &r,
                              const float (&sums)[D / EIGHT][4], T *mine, bool whole)
{
    const int lane = threadIdx.x % 32;
    float by[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int row = query + lane / 4 + k * EIGHT;
        const float total = across(r.total[k], [](float x, float y) { return x + y; });
        by[k] = total == 0 ? 0 : 1 / total;
        if (a.norms && lane % 4 == 0 && row < a.l)
            static_cast<float *>(a.norms)[batch * a.l + row] =
                total == 0 ? INFINITY : r.most[k] / UNIT<T> + logf(total);
    }
    if constexpr (sizeof(T) == 2) {
        if (whole)
            return put_packs<D>(a, a.y, batch, a.l, a.ev, query, sums, by, mine);
    }
    put_rows<D, T>(a, a.y, batch, a.l, a.ev, query, sums, by);
}

/* What other groups of warps have of the same rows, from other keys, is added to what the first one has. `held` has room for the
 * sums of all but one. */
template <class T, int D, int GROUPS>
__device__ inline void join(float *held, int group, running &r, float (&sums)[D / EIGHT][4])
{
    constexpr int EACH = D / 2 + 4; /* numbers of a thread */
    float *place = held + threadIdx.x % THREADS;
    __syncthreads();
    if (group > 0) {
        float *to = place + (group - 1) * EACH * THREADS;
#pragma unroll
        for (int i = 0; i < D / 2; i++)
            to[i * THREADS] = sums[i / 4][i % 4];
#pragma unroll
        for (int k = 0; k < 2; k++)
            to[(D / 2 + k) * THREADS] = r.most[k], to[(D / 2 + 2 + k) * THREADS] = r.total[k];
    }
    __syncthreads();
    for (int other = 1; group == 0 && other < GROUPS; other++, place += EACH * THREADS) {
        float by[2], by_other[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const float theirs = place[(D / 2 + k) * THREADS], most = fmaxf(r.most[k], theirs),
                        subtract = most == -INFINITY ? 0 : most;
            by[k] = power_of_2((r.most[k] - subtract) * IN_UNIT<T>);
            by_other[k] = power_of_2((theirs - subtract) * IN_UNIT<T>);
            r.total[k] = r.total[k] * by[k] + place[(D / 2 + 2 + k) * THREADS] * by_other[k];
            r.most[k] = most;
        }
#pragma unroll
        for (int i = 0; i < D / 2; i++) {
            float &x = sums[i / 4][i % 4];
            x = x * by[i % 4 / 2] + place[i * THREADS] * by_other[i % 4 / 2];
        }
    }
}
#endif

/* GROUPS: of four warps, which have the same queries and each a part of the KEYS. */
template <class T, int D, int KEYS, int GROUPS, bool PLAIN>
__global__ void __launch_bounds__(GROUPS *THREADS, PLAIN &&GROUPS == 1 && D == 64 ? 4 : 0)
    forward_kernel(const __grid_constant__ pc__cuda_attention a, wholes whole)
{
#if TENSOR_UNITS
    constexpr int ALL = GROUPS * THREADS, PART = KEYS / GROUPS;
    extern __shared__ __align__(128) char shared[];
    T *mine = reinterpret_cast<T *>(shared),
      *theirs = mine + ROWS * PITCH<T, D>; /* keys, values, and the next ones where there are any */
    const int blocks = (a.l + ROWS - 1) / ROWS, own = threadIdx.x / 32 % WARPS * 16,
              part = threadIdx.x / THREADS * PART;
    const unsigned batch = blockIdx.x / blocks;
    const int first =
        (blocks - 1 - static_cast<int>(blockIdx.x - batch * blocks)) * ROWS; /* of causal ones the longest first */
    pc::wait_for_earlier();
    const scoring<float> score(a, batch);
    const pc__cuda_matrices *const of[] = {&a.q, &a.k, &a.v};
    int64_t begins[3];
    find_matrices(a, of, batch, begins);
    const lines<T> q = lines_of<T>(a.q, begins[0], a.l, a.e, whole.q),
                   k = lines_of<T>(a.k, begins[1], a.s, a.e, whole.k),
                   v = lines_of<T>(a.v, begins[2], a.s, a.ev, whole.v);
    const int end = keys_before(a, first + ROWS);
    float sums[D / EIGHT][4] = {};
    running r = {{-INFINITY, -INFINITY}, {0, 0}};
    send_rows<D, ROWS, ALL>(mine, q, first);
    send_rows<D, KEYS, ALL>(theirs, k, 0);
    send_rows<D, KEYS, ALL>(theirs + KEYS * PITCH<T, D>, v, 0);
    sent();
#pragma unroll 1
    for (int key = 0; key < end; key += KEYS) {
        const T *keys = theirs + (key / KEYS % 2 * 2 * KEYS + part) * PITCH<T, D>;
        T *next = theirs + (key / KEYS + 1) % 2 * 2 * KEYS * PITCH<T, D>;
        wait_sent<0>();
        __syncthreads();
        if (key + KEYS < end) {
            send_rows<D, KEYS, ALL>(next, k, key + KEYS);
            send_rows<D, KEYS, ALL>(next + KEYS * PITCH<T, D>, v, key + KEYS);
        }
        sent();
        if (first + own >= a.l || (a.causal && key + part >= first + own + 16))
            continue; /* a warp without queries, or none that attends to these: it sends and waits with the others */
        see_keys<T, D, PART, PLAIN>(score, first + own, key + part, mine + own * PITCH<T, D>, keys,
                                    keys + KEYS * PITCH<T, D>, r, sums);
    }
    wait_sent<0>();
    if (end <= 0)
        __syncthreads(); /* without keys: results leave by way of rows that other warps' queries are still sent to */
    if constexpr (GROUPS > 1) {
        join<T, D, GROUPS>(reinterpret_cast<float *>(theirs), part / PART, r, sums);
        if (part > 0)
            return;
    }
    finish<T, D>(a, batch, first + own, r, sums, mine + own * PITCH<T, D>, whole.y);
#endif
}

template <class T, int D, int KEYS, int GROUPS, bool PLAIN> void start(const pc__cuda_attention *a)
{
    const auto kernel = forward_kernel<T, D, KEYS, GROUPS, PLAIN>;
    const auto bytes = [](int tiles) { return (tiles * KEYS + ROWS) * PITCH<T, D> * static_cast<int>(sizeof(T)); };
    static_assert((GROUPS - 1) * (D / 2 + 4) * THREADS * sizeof(float) <= 4 * KEYS * PITCH<T, D> * sizeof(T), "joined");
    const unsigned blocks = static_cast<unsigned>(a->batches * blocks_of(a->l));
    const wholes whole = {lies_on_16_bytes(a, &a->q, a->e), lies_on_16_bytes(a, &a->k, a->e),
                          lies_on_16_bytes(a, &a->v, a->ev), lies_on_16_bytes(a, &a->y, a->ev)};
    if (blocks > 0)
        (void)pc::start_staged(kernel, dim3(blocks), dim3(GROUPS * THREADS),
                               static_cast<size_t>(bytes(GROUPS == 1 && a->s <= KEYS ? 2 : 4)), a->queue, a->early, *a,
                               whole);
}

/* Where queries are few, two groups of warps share the keys. */
template <class T, int D, bool PLAIN, int KEYS = AT_ONCE<T, D>> void by_rows(const pc__cuda_attention *a)
{
    enum { BLOCKS = 132 };
    if (a->s > KEYS && a->batches * blocks_of(a->l) <= BLOCKS)
        start<T, D, AT_ONCE<T, D>, 2, PLAIN>(a);
    else
        start<T, D, KEYS, 1, PLAIN>(a);
}

template <class T, int D> void by_keys(const pc__cuda_attention *a)
{
    if (a->s <= FEW<T, D>)
        by_rows<T, D, true, LEAST_KEYS>(a);
    else
        by_rows<T, D, true>(a);
}

template <class T> void forward(const pc__cuda_attention *a)
{
    const int size = a->e > a->ev ? a->e : a->ev;
    if (is_plain(a))
        size <= LEAST<T>    ? by_keys<T, LEAST<T>>(a)
        : size <= 32        ? by_keys<T, 32>(a)
        : size <= 64        ? by_keys<T, 64>(a)
        : size <= MIDDLE<T> ? by_rows<T, MIDDLE<T>, true>(a)
                            : by_rows<T, 128, true>(a);
    else
        size <= 64 ? by_rows<T, 64, false>(a) : by_rows<T, 128, false>(a);
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
