/* short.cu: attention of few queries and few keys, and its gradients. A block has a matrix of the batch whole in shared memory,
 * so each pass is one kernel, which waits for memory once. */
#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 128, WARP = 32, WARPS = THREADS / WARP;
constexpr int QUAD = 4;  /* neighbours that are read and multiplied together */
constexpr int AHEAD = 2; /* of them a thread and matrix on their way at a time */
constexpr int MOST_BYTES = 48 << 10, MOST_PAIRS = 1024;
constexpr int MOST_OF_HALVES = 128, MOST_OF_FEW = 256, FEW = 132; /* 16 bits: beyond, matrix units are faster */

template <class T> using quad = vector<T, QUAD>;

__host__ __device__ inline int quads_of(int size)
{
    return (size + QUAD - 1) / QUAD;
}

/* From row to row in shared memory: an odd number of quads, so that eight rows are in different banks. */
__host__ __device__ inline int pitch_of(int size)
{
    return quads_of(size) * QUAD | QUAD;
}

/* Where matrix i of the batch begins in each of N operands, in elements: its coordinates are divided out once for all. */
template <int N>
__device__ inline void find(const pc__cuda_attention &a, unsigned i, const pc__cuda_matrices *const (&of)[N],
                            int64_t (&at)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        at[k] = 0;
    for (int d = a.dims - 1; d >= 0; d--) {
        const unsigned size = static_cast<unsigned>(a.shape[d]), outer = d ? i / size : 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            at[k] += (i - outer * size) * of[k]->batch[d];
        i = outer;
    }
}

/* Rows of a matrix of the batch; wide: a quad is one access. */
template <class T> struct lines {
    T *at;
    int64_t row, column;
    int count, size;
    bool wide;
};

template <class T>
__device__ inline lines<T> lines_of(const pc__cuda_matrices &m, int64_t begin, int count, int size, bool wide)
{
    return {static_cast<T *>(m.data) + begin, m.row, m.column, count, size, wide};
}

/* Quad i of a row; zeros behind its end and beyond the last row. */
template <class T> __device__ inline quad<T> quad_at(const lines<const T> &of, int row, int i)
{
    const T *from = of.at + row * of.row + i * QUAD * of.column;
    quad<T> x = {};
    if (row >= of.count)
        return x;
    if (of.wide)
        return *reinterpret_cast<const quad<T> *>(from);
#pragma unroll
    for (int c = 0; c < QUAD; c++)
        if (i * QUAD + c < of.size)
            x.at[c] = from[c * of.column];
    return x;
}

template <class T, class R> __device__ inline void put_quad(const lines<T> &to, int row, int i, const quad<R> &x, R by)
{
    T *place = to.at + row * to.row + i * QUAD * to.column;
    quad<T> rounded;
#pragma unroll
    for (int c = 0; c < QUAD; c++)
        rounded.at[c] = T(x.at[c] * by);
    if (to.wide) {
        *reinterpret_cast<quad<T> *>(place) = rounded;
        return;
    }
#pragma unroll
    for (int c = 0; c < QUAD; c++)
        if (i * QUAD + c < to.size)
            place[c * to.column] = rounded.at[c];
}

/* Matrices to shared memory, the first quads of all before any of them is waited for. */
template <int N, class T, class R> __device__ inline void take(const lines<const T> (&from)[N], R *const (&to)[N])
{
    int most = 0;
#pragma unroll
    for (int m = 0; m < N; m++)
        most = max(most, from[m].count * quads_of(from[m].size));
    for (int begin = threadIdx.x; begin < most; begin += THREADS * AHEAD) {
        quad<T> held[AHEAD][N];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
#pragma unroll
            for (int m = 0; m < N; m++) {
                const int quads = quads_of(from[m].size), n = begin + k * THREADS;
                held[k][m] = quad_at(from[m], n / quads, n % quads);
            }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
#pragma unroll
            for (int m = 0; m < N; m++) {
                const int quads = quads_of(from[m].size), n = begin + k * THREADS;
                R *place = to[m] + n / quads * pitch_of(from[m].size) + n % quads * QUAD;
                if (n / quads < from[m].count)
#pragma unroll
                    for (int c = 0; c < QUAD; c++)
                        place[c] = R(held[k][m].at[c]);
            }
    }
    __syncthreads();
}

template <class R> __device__ inline quad<R> held_quad(const R *row, int i)
{
    return reinterpret_cast<const quad<R> *>(row)[i];
}

/* The product of two rows. */
template <class R> __device__ inline R product(const R *one, const R *other, int quads)
{
    quad<R> sums = {};
#pragma unroll 4
    for (int i = 0; i < quads; i++) {
        const quad<R> x = held_quad(one, i), y = held_quad(other, i);
#pragma unroll
        for (int c = 0; c < QUAD; c++)
            sums.at[c] += x.at[c] * y.at[c];
    }
    return (sums.at[0] + sums.at[1]) + (sums.at[2] + sums.at[3]);
}

/* to = by times the sum over the rows of `of`, each times its weight; weights of a row of `to` are `row` apart, those of
 * one sum `step`. */
template <class T, class R>
__device__ inline void multiply(const lines<T> &to, const R *weights, int row, int step, const R *of, int rows, R by)
{
    const int quads = quads_of(to.size), pitch = pitch_of(to.size);
    for (int n = threadIdx.x; n < to.count * quads; n += THREADS) {
        const R *weight = weights + n / quads * row;
        quad<R> sums = {};
#pragma unroll 4
        for (int k = 0; k < rows; k++) {
            const quad<R> x = held_quad(of + k * pitch, n % quads);
#pragma unroll
            for (int c = 0; c < QUAD; c++)
                sums.at[c] += weight[k * step] * x.at[c];
        }
        put_quad(to, n / quads, n % quads, sums, by);
    }
}

/* A warp's row of scores becomes weights; returns the logarithm of their sum. */
template <class R> __device__ inline R weigh(const pc__cuda_attention &a, const scoring<R> &score, R *scores, int query)
{
    const int lane = threadIdx.x % WARP;
    R most = -static_cast<R>(INFINITY), sum = 0;
    for (int j = lane; j < a.s; j += WARP)
        most = scores[j] > most ? scores[j] : most;
    most = warp_join<larger>(most);
    const R subtract = most == -static_cast<R>(INFINITY) ? R(0) : most;
    for (int j = lane; j < a.s; j += WARP)
        sum += scores[j] = exp_of(scores[j] - subtract);
    sum = warp_join<plus>(sum);
    const R by = sum == 0 ? R(0) : 1 / sum;
    for (int j = lane; j < a.s; j += WARP)
        scores[j] *= a.p > 0 ? by * score.factor(query, j) : by;
    return sum == 0 ? static_cast<R>(INFINITY) : most + log_of(sum);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ pc__cuda_attention a, const __grid_constant__ bool wide)
{
    typedef pc::math<T> R;
    extern __shared__ __align__(16) char shared[];
    R *const q = reinterpret_cast<R *>(shared), *const k = q + a.l * pitch_of(a.e), *const v = k + a.s * pitch_of(a.e),
             *const scores = v + a.s * pitch_of(a.ev);
    const int64_t batch = blockIdx.x;
    pc::wait_for_earlier();
    int64_t at[4];
    find<4>(a, blockIdx.x, {&a.q, &a.k, &a.v, &a.y}, at);
    take<3, T, R>({lines_of<const T>(a.q, at[0], a.l, a.e, wide), lines_of<const T>(a.k, at[1], a.s, a.e, wide),
                   lines_of<const T>(a.v, at[2], a.s, a.ev, wide)},
                  {q, k, v});
    const scoring<R> score(a, batch);
    for (int n = threadIdx.x; n < a.l * a.s; n += THREADS) {
        const int i = n / a.s, j = n % a.s;
        scores[n] = score.of(product(q + i * pitch_of(a.e), k + j * pitch_of(a.e), quads_of(a.e)), i, j);
    }
    __syncthreads();
    for (int i = threadIdx.x / WARP; i < a.l; i += WARPS) {
        const R norm = weigh(a, score, scores + i * a.s, i);
        if (a.norms && threadIdx.x % WARP == 0)
            static_cast<R *>(a.norms)[batch * a.l + i] = norm;
    }
    __syncthreads();
    multiply(lines_of<T>(a.y, at[3], a.l, a.ev, wide), scores, a.s, 1, v, a.s, R(1));
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    backward_kernel(const __grid_constant__ pc__cuda_attention a, const __grid_constant__ bool wide)
{
    typedef pc::math<T> R;
    extern __shared__ __align__(16) char shared[];
    R *const q = reinterpret_cast<R *>(shared), *const k = q + a.l * pitch_of(a.e), *const v = k + a.s * pitch_of(a.e),
             *const g = v + a.s * pitch_of(a.ev), *const weights = g + a.l * pitch_of(a.ev),
             *const slopes = weights + a.l * a.s;
    const int64_t batch = blockIdx.x;
    pc::wait_for_earlier();
    int64_t at[7];
    find<7>(a, blockIdx.x, {&a.q, &a.k, &a.v, &a.g, &a.dq, &a.dk, &a.dv}, at);
    take<4, T, R>({lines_of<const T>(a.q, at[0], a.l, a.e, wide), lines_of<const T>(a.k, at[1], a.s, a.e, wide),
                   lines_of<const T>(a.v, at[2], a.s, a.ev, wide), lines_of<const T>(a.g, at[3], a.l, a.ev, wide)},
                  {q, k, v, g});
    const scoring<R> score(a, batch);
    const R *norms = static_cast<const R *>(a.norms) + batch * a.l;
    for (int n = threadIdx.x; n < a.l * a.s; n += THREADS) {
        const int i = n / a.s, j = n % a.s;
        const R x = score.of(product(q + i * pitch_of(a.e), k + j * pitch_of(a.e), quads_of(a.e)), i, j);
        const R slope = product(g + i * pitch_of(a.ev), v + j * pitch_of(a.ev), quads_of(a.ev));
        weights[n] = exp_of(x - norms[i]);
        slopes[n] = a.p > 0 ? slope * score.factor(i, j) : slope;
    }
    __syncthreads();
    find_slopes<WARPS>(a, score, weights, slopes);
    __syncthreads();
    const R scale = static_cast<R>(a.scale);
    multiply(lines_of<T>(a.dq, at[4], a.l, a.e, wide), slopes, a.s, 1, k, a.s, scale);
    multiply(lines_of<T>(a.dk, at[5], a.s, a.e, wide), slopes, 1, a.s, q, a.l, scale);
    multiply(lines_of<T>(a.dv, at[6], a.s, a.ev, wide), weights, 1, a.s, g, a.l, R(1));
}

/* Numbers in shared memory. */
int64_t held(const pc__cuda_attention *a, bool backward)
{
    const int64_t l = a->l, s = a->s, pairs = l * s;
    return (l + s) * pitch_of(a->e) + (backward ? l + s : s) * pitch_of(a->ev) + (backward ? 2 : 1) * pairs;
}

size_t bytes_of(const pc__cuda_attention *a, bool backward)
{
    return (size_t)held(a, backward) * (a->dtype == PC__CUDA_F64 ? sizeof(double) : sizeof(float));
}

template <class T> void start(const pc__cuda_attention *a, bool backward)
{
    const pc__cuda_matrices *of_e[] = {&a->q, &a->k, &a->dq, &a->dk}, *of_ev[] = {&a->v, &a->y, &a->g, &a->dv};
    bool wide = true;
    for (int i = 0; i < (backward ? 4 : 2); i++)
        wide &= lies_in_packs(a, of_e[i], a->e, QUAD, alignof(quad<T>)) &&
                lies_in_packs(a, of_ev[i], a->ev, QUAD, alignof(quad<T>));
    if (a->batches > 0 && a->l + a->s > 0)
        (void)pc::start_grid(backward ? backward_kernel<T> : forward_kernel<T>, dim3((unsigned)a->batches),
                             dim3(THREADS), bytes_of(a, backward), a->queue, a->early, *a, wide);
}

} // namespace

bool pc__cuda_attention_is_short(const pc__cuda_attention *a)
{
    const bool halves = a->dtype == PC__CUDA_F16 || a->dtype == PC__CUDA_BF16;
    const int most = !halves || !pc__cuda_attention_has_units(a) ? MOST_PAIRS
                     : a->batches <= FEW                         ? MOST_OF_FEW
                                                                 : MOST_OF_HALVES;
    return a->e > 0 && a->ev > 0 && (int64_t)a->l * a->s <= most && bytes_of(a, true) <= MOST_BYTES;
}

void pc__cuda_attention_short(const pc__cuda_attention *a, bool backward)
{
    with_number(a->dtype, [&](auto number) { start<decltype(number)>(a, backward); });
}
