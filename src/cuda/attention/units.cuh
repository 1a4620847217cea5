/* units.cuh: tiles of numbers for matrix units, of 16 bits here and of float32 in units_floats.cuh. Four warps have 16 rows of a tile each;
 * what they go over lies in shared memory, rows of D numbers and 16 bytes between them, so that the eight rows of a square are in
 * different banks. */
#ifndef PC__CUDA_ATTENTION_UNITS_CUH
#define PC__CUDA_ATTENTION_UNITS_CUH

#include "cuda/attention/score.cuh"
#include "cuda/attention/units_floats.cuh"
#include "cuda/shared/mma.cuh"
#include "cuda/shared/staged.cuh"

namespace
{

constexpr int WARPS = 4, THREADS = WARPS * 32, ROWS = WARPS * 16; /* ROWS: of a tile */
constexpr float LOG2_E = 1.4426950408889634f;

/* What a score is multiplied by, and then what its difference from the largest one is, for powers of 2. Scores of 16-bit numbers are in
 * units of log 2; those of float32 are not, for the difference of two large ones would have the error of that product. */
template <class T> constexpr float UNIT = sizeof(T) > 2 ? 1 : LOG2_E;
template <class T> constexpr float IN_UNIT = LOG2_E / UNIT<T>;

/* Numbers in 16 bytes, and from row to row. */
template <class T> constexpr int PACK = 16 / sizeof(T);
template <class T, int D> constexpr int PITCH = D + PACK<T>;

/* Columns of tiles for more than 64 and up to so many: of 128 a quarter of the work, which is three products in float32. And for
 * the fewest: what matrix units multiply at once. */
template <class T> constexpr int MIDDLE = sizeof(T) > 2 ? 96 : 128;
template <class T> constexpr int LEAST = sizeof(T) > 2 ? 32 : 16;

/* Whether 16 bytes of a row can be read at once, from its first column on. */
inline bool lies_on_16_bytes(const pc__cuda_attention *a, const pc__cuda_matrices *m, int size)
{
    const int pack = a->dtype == PC__CUDA_F32 ? PACK<float> : PACK<pc::f16>;
    return lies_in_packs(a, m, size, pack, 16);
}

/* Neither a mask nor a dropout, whose code, once for each number of a tile, is too much for the cache of instructions. */
inline bool is_plain(const pc__cuda_attention *a)
{
    return !a->mask.data && a->p == 0;
}

inline int blocks_of(int rows)
{
    return (rows + ROWS - 1) / ROWS;
}

#if TENSOR_UNITS

/* 2^x by the special function units, 2^-22 of it off; zero below 2^-126. */
__device__ inline float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Rows of a matrix of the batch. */
template <class T> struct lines {
    const T *at;
    int64_t row, column;
    int count, size;
    bool whole; /* lies_on_16_bytes, and there are some */
};

/* Of a matrix that begins with element `begin`. */
template <class T>
__device__ inline lines<T> lines_of(const pc__cuda_matrices &m, int64_t begin, int count, int size, bool whole)
{
    return {static_cast<const T *>(m.data) + begin, m.row, m.column, count, size, whole && count > 0 && size > 0};
}

/* Below, where a thread's packs are of different columns. */
template <int D, int N, int THREADS, class T>
__device__ inline void send_uneven_rows(T *to, const lines<T> &of, int first)
{
    constexpr int PACKS = D / PACK<T>;
    static_assert(N * PACKS % THREADS == 0, "as many for each thread");
#pragma unroll
    for (int k = 0; k < N * PACKS / THREADS; k++) {
        const int at = threadIdx.x + k * THREADS, row = at / PACKS, e = at % PACKS * PACK<T>, i = first + row;
        T *place = to + row * PITCH<T, D> + e;
        const bool there = i < of.count && e < of.size;
        if (of.whole) {
            send_past(place, there ? of.at + i * of.row + e : of.at, there);
            continue;
        }
#pragma unroll 1
        for (int n = 0; n < PACK<T>; n++)
            place[n] = i < of.count && e + n < of.size ? of.at[i * of.row + (e + n) * of.column] : T(0.0f);
    }
}

/* to[N][PITCH] = rows from `first` on, zeros beyond them and behind their ends; it arrives as cp.async does. */
template <int D, int N, int THREADS = WARPS * 32, class T>
__device__ inline void send_rows(T *to, const lines<T> &of, int first)
{
    constexpr int PACKS = D / PACK<T>, STEP = THREADS / PACKS;
    if constexpr (THREADS % PACKS != 0)
        return send_uneven_rows<D, N, THREADS>(to, of, first);
    const int e = threadIdx.x % PACKS * PACK<T>, begin = threadIdx.x / PACKS;
    T *place = to + begin * PITCH<T, D> + e;
    if (of.whole) {
        const T *from = of.at + (first + begin) * of.row + e;
        if (N % STEP == 0 && of.size == D && first + N <= of.count) {
#pragma unroll
            for (int k = 0; k < N / STEP; k++, from += STEP * of.row)
                send_past(place + k * STEP * PITCH<T, D>, from, true);
            return;
        }
        const int left = e < of.size ? of.count - first - begin : 0;
#pragma unroll
        for (int k = 0; k < (N + STEP - 1) / STEP; k++, from += STEP * of.row)
            if (N % STEP == 0 || begin + k * STEP < N)
                send_past(place + k * STEP * PITCH<T, D>, k * STEP < left ? from : of.at, k * STEP < left);
        return;
    }
#pragma unroll 1
    for (int i = first + begin; i < first + N; i += STEP, place += STEP * PITCH<T, D>)
#pragma unroll 1
        for (int k = 0; k < PACK<T>; k++)
            place[k] = i < of.count && e + k < of.size ? of.at[i * of.row + (e + k) * of.column] : T(0.0f);
}

/* What a lane points to: of 16 rows of a left factor; of 16 rows that are columns of a right one; of 16 rows of a right
 * one, turned. */
template <int D, class T> __device__ inline const T *left_of(const T *rows)
{
    const int lane = threadIdx.x % 32;
    return rows + lane % 16 * PITCH<T, D> + lane / 16 * EIGHT;
}

template <int D, class T> __device__ inline const T *right_of(const T *rows)
{
    const int lane = threadIdx.x % 32;
    return rows + (lane / 16 * EIGHT + lane % EIGHT) * PITCH<T, D> + lane / EIGHT % 2 * EIGHT;
}

/* 16-bit numbers: sums[16][N] = the warp's rows of `mine` times rows of `theirs`, N of them. */
template <int D, int N, class T>
__device__ inline void multiply_halves(const T *mine, const T *theirs, float (&sums)[N / EIGHT][4])
{
    clear(sums);
#pragma unroll
    for (int e = 0; e < D; e += 16) {
        unsigned left[4];
        take_squares<false>(left, left_of<D>(mine) + e);
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            unsigned right[4];
            take_squares<false>(right, right_of<D>(theirs + n * 16 * PITCH<T, D>) + e);
            const unsigned first[2] = {right[0], right[1]}, second[2] = {right[2], right[3]};
            add_tensor(sums[2 * n], left, first, T());
            add_tensor(sums[2 * n + 1], left, second, T());
        }
    }
}

/* 16-bit numbers: sums[16][D] += weights[16][N], rounded, times rows of `theirs`, N of them. */
template <int D, int N, class T>
__device__ inline void add_halves(const float (&weights)[N / EIGHT][4], const T *theirs, float (&sums)[D / EIGHT][4])
{
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        unsigned left[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float(&four)[4] = weights[2 * k + i / 2];
            left[i] = pc::word_of<T>(four[i % 2 * 2], four[i % 2 * 2 + 1]);
        }
#pragma unroll
        for (int e = 0; e < D / 16; e++) {
            unsigned right[4];
            take_squares<true>(right, left_of<D>(theirs + k * 16 * PITCH<T, D>) + e * 16);
            const unsigned first[2] = {right[0], right[1]}, second[2] = {right[2], right[3]};
            add_tensor(sums[2 * e], left, first, T());
            add_tensor(sums[2 * e + 1], left, second, T());
        }
    }
}

template <int D, int N, class T>
__device__ inline void multiply_rows(const T *mine, const T *theirs, float (&sums)[N / EIGHT][4])
{
    if constexpr (sizeof(T) == 2)
        multiply_halves<D, N>(mine, theirs, sums);
    else
        multiply_floats<D, N, PITCH<T, D>>(mine, theirs, sums);
}

template <int D, int N, class T>
__device__ inline void add_rows(const float (&weights)[N / EIGHT][4], const T *theirs, float (&sums)[D / EIGHT][4])
{
    if constexpr (sizeof(T) == 2)
        add_halves<D, N>(weights, theirs, sums);
    else
        add_floats<D, N, PITCH<T, D>>(weights, theirs, sums);
}

/* The warp's rows of a matrix, from `first` on, = sums, those of a lane's two rows each times its `by`. */
template <int D, class T>
__device__ inline void put_rows(const pc__cuda_attention &a, const pc__cuda_matrices &m, int64_t batch, int count,
                                int size, int first, const float (&sums)[D / EIGHT][4], const float (&by)[2])
{
    T *to = matrix<T>(a, m, batch);
    const int lane = threadIdx.x % 32, begin = lane % 4 * 2;
    const bool pairs =
        m.column == 1 && size % 2 == 0 && m.row % 2 == 0 && reinterpret_cast<uintptr_t>(to) % (2 * sizeof(T)) == 0;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int row = first + lane / 4 + k * EIGHT;
        T *line = to + row * m.row;
#pragma unroll
        for (int n = 0; n < D / EIGHT; n++) {
            const int e = n * EIGHT + begin;
            const vector<T, 2> two = {T(sums[n][2 * k] * by[k]), T(sums[n][2 * k + 1] * by[k])};
            if (row >= count || e >= size)
                continue;
            if (pairs) {
                *reinterpret_cast<vector<T, 2> *>(line + e) = two;
            } else {
                line[e * m.column] = two.at[0];
                if (e + 1 < size)
                    line[(e + 1) * m.column] = two.at[1];
            }
        }
    }
}

/* The same of 16-bit numbers by 16 bytes, by way of the warp's own rows in shared memory; the result lies_on_16_bytes. */
template <int D, class T>
__device__ inline void put_packs(const pc__cuda_attention &a, const pc__cuda_matrices &m, int64_t batch, int count,
                                 int size, int first, const float (&sums)[D / EIGHT][4], const float (&by)[2], T *held)
{
    constexpr int PACKS = D / PACK<T>;
    T *to = matrix<T>(a, m, batch);
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int n = 0; n < D / EIGHT; n++)
            *reinterpret_cast<unsigned *>(held + (lane / 4 + k * EIGHT) * PITCH<T, D> + n * EIGHT + lane % 4 * 2) =
                pc::word_of<T>(sums[n][2 * k] * by[k], sums[n][2 * k + 1] * by[k]);
    __syncwarp();
#pragma unroll
    for (int i = lane; i < 16 * PACKS; i += 32) {
        const int row = i / PACKS, e = i % PACKS * PACK<T>;
        if (first + row < count && e < size)
            *reinterpret_cast<uint4 *>(to + (first + row) * m.row + e) =
                *reinterpret_cast<const uint4 *>(held + row * PITCH<T, D> + e);
    }
}
#endif

} // namespace

#endif
