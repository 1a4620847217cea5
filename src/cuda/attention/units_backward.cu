/* units_backward.cu: the gradients of attention by matrix units: as plain_backward.cu, blocks have 64
 * queries and go over the keys, for dq, or 64 keys and go over the queries, for dk and dv; the next ones are on the way
 * meanwhile. One launch has both kinds, so that few of them fill more of the chip. */
#include "cuda/attention/units.cuh"

namespace
{

/* Rows that are gone over at a time: sums of 128 columns leave registers for fewer, and float32 99 KB of shared memory. */
template <class T, int D> constexpr int AT_ONCE = sizeof(T) > 2 ? D > 64 ? 16 : D > 32 ? 32 : 64 : D > 64 ? 32 : 64;

/* What is gone over lies twice in shared memory, for the next ones are on the way. */
template <class T, int D> constexpr size_t SHARED = (2 * ROWS + 4 * AT_ONCE<T, D>)*PITCH<T, D> * sizeof(T);

/* What lies_on_16_bytes. */
struct wholes {
    bool q, k, v, g;
};

#if TENSOR_UNITS

/* Of a query: the logarithm of the sum of its weights, a lane's in UNITs, and the mean of their gradients. */
struct ends {
    float norm, mean;
};

/* They lie behind the D numbers of its row. */
template <int D, class T> __device__ inline const ends &ends_of(const T *rows, int row)
{
    static_assert(PACK<T> * sizeof(T) >= sizeof(ends), "what is between two rows");
    return *reinterpret_cast<const ends *>(rows + row * PITCH<T, D> + D);
}

/* Those of N queries from `first` on; zeros beyond the last one, whose rows of q and g are zeros too. */
template <int D, int N, class T>
__device__ inline void send_ends(T *rows, const pc__cuda_attention &a, int64_t batch, int first)
{
    static_assert(2 * N <= THREADS, "a number for each thread");
    const int row = threadIdx.x / 2, second = threadIdx.x % 2, i = first + row;
    if (row >= N)
        return;
    const float *from = static_cast<const float *>(second ? a.means : a.norms) + batch * a.l;
    send_or_clear<4>(reinterpret_cast<float *>(rows + row * PITCH<T, D> + D) + second, from + i, i < a.l);
}

/* Columns of a lane's row that are seen: `count` from `first` on. */
struct span {
    int first, count;

    __device__ inline bool has(int column) const
    {
        return static_cast<unsigned>(column - first) < static_cast<unsigned>(count);
    }
};

/* Of columns from `column` on. */
template <bool OF_KEYS> __device__ inline span span_of(const pc__cuda_attention &a, int row, int column)
{
    const int first = OF_KEYS && a.causal ? max(row, column) : column;
    const int end = OF_KEYS ? a.l : a.causal ? min(a.s, row + 1) : a.s;
    return {first - column, row < (OF_KEYS ? a.s : a.l) ? max(end - first, 0) : 0};
}

/* Products become weights, and those with the gradient of y the gradients of scores. Rows from `mine` on, columns from
 * `theirs` on. Queries are the rows, whose ends a lane has, or the columns: `columns` are theirs in shared memory. */
template <class T, int D, bool OF_KEYS, bool PLAIN, int N>
__device__ inline void slope(const scoring<float> &score, int mine, int theirs, const ends (&of_rows)[2],
                             const T *columns, float (&weights)[N / EIGHT][4], float (&slopes)[N / EIGHT][4])
{
    const pc__cuda_attention &a = score.a;
    const int lane = threadIdx.x % 32, queries = OF_KEYS ? theirs : mine, keys = OF_KEYS ? mine : theirs;
    const int row = mine + lane / 4, column = theirs + lane % 4 * 2;
    const bool all = PLAIN && queries + (OF_KEYS ? N : 16) <= a.l && keys + (OF_KEYS ? 16 : N) <= a.s &&
                     (!a.causal || keys + (OF_KEYS ? 16 : N) <= queries + 1);
    const float scale = score.scale * UNIT<T>;
    const auto turn = [&](auto seen) {
#pragma unroll
        for (int n = 0; n < N / EIGHT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int right = n * EIGHT + i % 2, down = i / 2 * EIGHT;
                const int query = OF_KEYS ? column + right : row + down, key = OF_KEYS ? row + down : column + right;
                const ends own = OF_KEYS ? ends_of<D>(columns, lane % 4 * 2 + right) : of_rows[i / 2];
                const float norm = OF_KEYS ? own.norm * UNIT<T> : own.norm;
                const float at = PLAIN ? weights[n][i] * scale : score.of(weights[n][i], query, key) * UNIT<T>;
                const float weight = seen(i / 2, right) ? power_of_2((at - norm) * IN_UNIT<T>) : 0;
                const float factor = !PLAIN && a.p > 0 ? score.factor(query, key) : 1;
                slopes[n][i] = weight * (slopes[n][i] * factor - own.mean);
                weights[n][i] = weight * factor;
            }
    };
    if (all) {
        turn([](int, int) { return true; });
    } else {
        const span of[2] = {span_of<OF_KEYS>(a, row, column), span_of<OF_KEYS>(a, row + EIGHT, column)};
        turn([&](int k, int right) { return of[k].has(right); });
    }
}

/* Block `index` of those that have keys, or of those that have queries. */
template <class T, int D, bool OF_KEYS, bool PLAIN>
__device__ inline void do_block(const pc__cuda_attention &a, const wholes &whole, unsigned index, char *shared)
{
    constexpr int N = AT_ONCE<T, D>;
    T *mine_1 = reinterpret_cast<T *>(shared), *mine_2 = mine_1 + ROWS * PITCH<T, D>;
    T *theirs = mine_2 + ROWS * PITCH<T, D>; /* two of each, and the next ones */
    const unsigned rows = OF_KEYS ? a.s : a.l, blocks = (rows + ROWS - 1) / ROWS, own = threadIdx.x / 32 * 16;
    const int64_t batch = index / blocks;
    const int block = index % blocks, first = (OF_KEYS ? block : blocks - 1 - block) * ROWS;
    const scoring<float> score(a, batch);
    const pc__cuda_matrices *const of[] = {&a.q, &a.k, &a.v, &a.g};
    int64_t begins[4];
    find_matrices(a, of, static_cast<unsigned>(batch), begins);
    const lines<T> q = lines_of<T>(a.q, begins[0], a.l, a.e, whole.q),
                   k = lines_of<T>(a.k, begins[1], a.s, a.e, whole.k),
                   v = lines_of<T>(a.v, begins[2], a.s, a.ev, whole.v),
                   g = lines_of<T>(a.g, begins[3], a.l, a.ev, whole.g);
    float sums_1[D / EIGHT][4] = {}, sums_2[OF_KEYS ? D / EIGHT : 1][4] = {};
    send_rows<D, ROWS>(mine_1, OF_KEYS ? k : q, first);
    send_rows<D, ROWS>(mine_2, OF_KEYS ? v : g, first);
    const int end = OF_KEYS ? a.l : keys_before(a, first + ROWS), begin = OF_KEYS ? first_query(a, first, N) : 0;
    const auto send = [&](int j) {
        T *to = theirs + j / N % 2 * 2 * N * PITCH<T, D>;
        send_rows<D, N>(to, OF_KEYS ? q : k, j);
        send_rows<D, N>(to + N * PITCH<T, D>, OF_KEYS ? g : v, j);
        if constexpr (OF_KEYS)
            send_ends<D, N>(to, a, batch, j);
    };
    ends of_mine[2] = {};
#pragma unroll
    for (int k = 0; k < 2 && !OF_KEYS; k++) {
        const int row = first + own + threadIdx.x % 32 / 4 + k * EIGHT;
        const int64_t at = batch * a.l + row;
        if (row < a.l)
            of_mine[k] = {static_cast<const float *>(a.norms)[at] * UNIT<T>, static_cast<const float *>(a.means)[at]};
    }
    send(begin);
    sent();
    for (int j = begin; j < end; j += N) {
        const T *theirs_1 = theirs + j / N % 2 * 2 * N * PITCH<T, D>, *theirs_2 = theirs_1 + N * PITCH<T, D>;
        float weights[N / EIGHT][4], slopes[N / EIGHT][4];
        wait_sent<0>();
        __syncthreads();
        if (j + N < end)
            send(j + N);
        sent();
        if (first + own >= rows)
            continue; /* a warp without rows: it sends and waits with the others */
        multiply_rows<D, N>(mine_1 + own * PITCH<T, D>, theirs_1, weights);
        multiply_rows<D, N>(mine_2 + own * PITCH<T, D>, theirs_2, slopes);
        slope<T, D, OF_KEYS, PLAIN, N>(score, first + own, j, of_mine, theirs_1, weights, slopes);
        add_rows<D, N>(slopes, theirs_1, sums_1);
        if constexpr (OF_KEYS)
            add_rows<D, N>(weights, theirs_2, sums_2);
    }
    wait_sent<0>();
    const float scale[2] = {score.scale, score.scale}, one[2] = {1, 1};
    put_rows<D, T>(a, OF_KEYS ? a.dk : a.dq, batch, rows, a.e, first + own, sums_1, scale);
    if constexpr (OF_KEYS)
        put_rows<D, T>(a, a.dv, batch, rows, a.ev, first + own, sums_2, one);
}
#endif

template <class T, int D, bool PLAIN>
__global__ void __launch_bounds__(THREADS, D <= 16 ? 4 : 0)
    backward_kernel(const __grid_constant__ pc__cuda_attention a, const wholes whole, unsigned of_keys)
{
#if TENSOR_UNITS
    extern __shared__ __align__(128) char shared[];
    pc::wait_for_earlier();
    if (blockIdx.x < of_keys)
        do_block<T, D, true, PLAIN>(a, whole, blockIdx.x, shared);
    else
        do_block<T, D, false, PLAIN>(a, whole, blockIdx.x - of_keys, shared);
#endif
}

template <class T, int D, bool PLAIN> void start(const pc__cuda_attention *a)
{
    constexpr size_t shared = SHARED<T, D>;
    const unsigned of_keys = (unsigned)(a->batches * blocks_of(a->s));
    const unsigned blocks = of_keys + (unsigned)(a->batches * blocks_of(a->l));
    if (blocks == 0)
        return;
    const wholes whole = {lies_on_16_bytes(a, &a->q, a->e), lies_on_16_bytes(a, &a->k, a->e),
                          lies_on_16_bytes(a, &a->v, a->ev), lies_on_16_bytes(a, &a->g, a->ev)};
    (void)pc::start_staged(backward_kernel<T, D, PLAIN>, dim3(blocks), dim3(THREADS), shared, a->queue, a->early, *a,
                           whole, of_keys);
}

template <class T> void backward(const pc__cuda_attention *a)
{
    const int size = a->e > a->ev ? a->e : a->ev;
    if (is_plain(a))
        size <= LEAST<T>    ? start<T, LEAST<T>, true>(a)
        : size <= 32        ? start<T, 32, true>(a)
        : size <= 64        ? start<T, 64, true>(a)
        : size <= MIDDLE<T> ? start<T, MIDDLE<T>, true>(a)
                            : start<T, 128, true>(a);
    else
        size <= 64 ? start<T, 64, false>(a) : start<T, 128, false>(a);
}

} // namespace

void pc__cuda_attention_units_backward(const pc__cuda_attention *a)
{
    if (a->dtype == PC__CUDA_F32)
        backward<float>(a);
    else
        a->dtype == PC__CUDA_F16 ? backward<pc::f16>(a) : backward<pc::bf16>(a);
}
