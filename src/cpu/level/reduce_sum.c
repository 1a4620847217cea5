/* reduce_sum.c: sums. A run of numbers is added in their own type, in lanes, so that it becomes vector code; runs are
 * added in the wider type. 16-bit numbers are float32 on the way. */
#include "cpu/level/halves.h"
#include "cpu/level/reduce.h"
#include "tensor/half.h"

enum {
    RUN = 1024, /* numbers, in LANES sums */
    LANES = 32,
};

/* Vectors of eight numbers of a type, however many registers that is. */
#define EIGHT(T) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias)) T

/* T in memory, C while a run is added, A beyond; `whole` adds up what of a run fills lanes, and says how much that was; `take`
 * gives n numbers as C, in their place or in `room`; `member` of a partial has A. */
#define SUM(name, T, C, A, whole, take, member)                                                                        \
    static void row_##name(const void *from, int64_t n, pc__partial *value, int64_t *place)                            \
    {                                                                                                                  \
        typedef EIGHT(C) narrow;                                                                                       \
        typedef EIGHT(A) wide;                                                                                         \
        wide part = {0};                                                                                               \
        A total = 0;                                                                                                   \
        (void)place;                                                                                                   \
        for (int64_t begin = 0; begin < n; begin += RUN) {                                                             \
            const int64_t end = PC__MIN(RUN, n - begin);                                                               \
            const T *run = (const T *)from + begin;                                                                    \
            _Alignas(PC__VECTOR_BYTES) C lane[LANES] = {0}, room[LANES];                                               \
            const int64_t done = whole(lane, run, end), left = end - done;                                             \
            const C *x = take(room, run + done, left);                                                                 \
            int64_t i = 0;                                                                                             \
            for (int k = 0; k < LANES; k += 8)                                                                         \
                part += __builtin_convertvector(*(const narrow *)(lane + k), wide);                                    \
            for (; i + 8 <= left; i += 8)                                                                              \
                part += __builtin_convertvector(*(const narrow *)(x + i), wide);                                       \
            for (; i < left; i++)                                                                                      \
                total += x[i];                                                                                         \
        }                                                                                                              \
        part += __builtin_shufflevector(part, part, 4, 5, 6, 7, 0, 1, 2, 3);                                           \
        part += __builtin_shufflevector(part, part, 2, 3, 0, 1, 6, 7, 4, 5);                                           \
        value->member = total + (part[0] + part[1]);                                                                   \
    }                                                                                                                  \
    /* Rows one behind the other are as one where several fit. */                                                      \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               int64_t *place)                                                                         \
    {                                                                                                                  \
        const int64_t fold = step == n ? PC__MAX(PC__MIN(PC__COLUMNS / n, reduced), 1) : 1, wide = fold * n;           \
        const int64_t rows = reduced / fold, left = reduced % fold * n;                                                \
        C part[PC__COLUMNS], room[4][PC__COLUMNS];                                                                     \
        A total[PC__COLUMNS];                                                                                          \
        (void)place;                                                                                                   \
        for (int64_t j = 0; j < wide; j++)                                                                             \
            total[j] = 0;                                                                                              \
        for (int64_t begin = 0; begin < rows; begin += RUN / LANES) {                                                  \
            const int64_t end = PC__MIN(begin + RUN / LANES, rows);                                                    \
            int64_t r = begin;                                                                                         \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                part[j] = 0;                                                                                           \
            for (; r + 4 <= end; r += 4) {                                                                             \
                const T *row = (const T *)from + r * fold * step;                                                      \
                const C *x = take(room[0], row, wide), *y = take(room[1], row + fold * step, wide),                    \
                        *z = take(room[2], row + 2 * fold * step, wide),                                               \
                        *u = take(room[3], row + 3 * fold * step, wide);                                               \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)(part[j] + ((x[j] + y[j]) + (z[j] + u[j])));                                          \
            }                                                                                                          \
            for (; r < end; r++) {                                                                                     \
                const C *x = take(room[0], (const T *)from + r * fold * step, wide);                                   \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)(part[j] + x[j]);                                                                     \
            }                                                                                                          \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                total[j] += part[j];                                                                                   \
        }                                                                                                              \
        const C *x = take(room[0], (const T *)from + rows * fold * step, left);                                        \
        for (int64_t j = 0; j < left; j++)                                                                             \
            total[j] += x[j];                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = total[j];                                                                   \
        for (int64_t f = 1; f < fold; f++)                                                                             \
            for (int64_t j = 0; j < n; j++)                                                                            \
                PC__MEMBER(value, j, member) += total[f * n + j];                                                      \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, int64_t *place, const pc__partial *more, const int64_t *where,         \
                            int64_t first, int64_t n)                                                                  \
    {                                                                                                                  \
        (void)place, (void)where, (void)first;                                                                         \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) += PC__MEMBER(more, j, member);                                               \
    }
#define IN_PLACE(room, from, n) ((void)(room), from)
#define WHOLE(name, C)                                                                                                 \
    static inline int64_t whole_##name(C *restrict lane, const C *x, int64_t n)                                        \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int k = 0; k < LANES; k++)                                                                            \
                lane[k] = (C)(lane[k] + x[i + k]);                                                                     \
        return i;                                                                                                      \
    }
WHOLE(u64, uint64_t)
WHOLE(f32, float)
WHOLE(f64, double)

/* 16-bit numbers as a loop takes them, whose sums are in registers: in no order that matters. */
typedef float singles __attribute__((vector_size(PC__VECTOR_BYTES), may_alias));

#define ONES_8 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff
#define HALVES(half)                                                                                                   \
    static inline int64_t whole_##half(float *restrict lane, const pc_##half *x, int64_t n)                            \
    {                                                                                                                  \
        enum { VECTORS = LANES * 4 / PC__VECTOR_BYTES };                                                               \
        typedef uint16_t bits __attribute__((vector_size(LANES * 2), aligned(2), may_alias));                          \
        static const uint16_t steps[2 * LANES] = {[LANES] = ONES_8, ONES_8, ONES_8, ONES_8};                           \
        singles sum[VECTORS] = {{0}};                                                                                  \
        if (n < LANES)                                                                                                 \
            return 0;                                                                                                  \
        for (int64_t i = 0; i < n; i += LANES) {                                                                       \
            const int64_t at = PC__MIN(i, n - LANES); /* what is there again is zero */                                \
            const bits some = *(const bits *)(x + at) & *(const bits *)(steps + LANES - (i - at));                     \
            const pc_##half *taken = (const pc_##half *)&some;                                                         \
            _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v += 2)                                               \
            {                                                                                                          \
                _Alignas(PC__VECTOR_BYTES) float got[PC__HALVES];                                                      \
                pc__take_##half(got, taken + v * PC__HALVES / 2);                                                      \
                sum[v] += ((const singles *)got)[0];                                                                   \
                sum[v + 1] += ((const singles *)got)[1];                                                               \
            }                                                                                                          \
        }                                                                                                              \
        for (int v = 0; v < VECTORS; v++)                                                                              \
            ((singles *)lane)[v] = sum[v];                                                                             \
        return n;                                                                                                      \
    }                                                                                                                  \
    static inline const float *from_##half(float *room, const pc_##half *from, int64_t n)                              \
    {                                                                                                                  \
        pc__load_halves(room, from, n, sizeof(#half) == sizeof("f16"));                                                \
        return room;                                                                                                   \
    }
HALVES(f16)
HALVES(bf16)

SUM(i64, uint64_t, uint64_t, uint64_t, whole_u64, IN_PLACE, u)
SUM(f16, pc_f16, float, double, whole_f16, from_f16, d)
SUM(bf16, pc_bf16, float, double, whole_bf16, from_bf16, d)
SUM(f32, float, float, double, whole_f32, IN_PLACE, d)
SUM(f64, double, double, double, whole_f64, IN_PLACE, d)

#define STORE(T, of, member)                                                                                           \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                               \
    break

#define AS_IS(x) (x)
#define TO_FLOAT(x) ((float)(x))
#define TO_F16(x) pc__f16_of((float)(x))
#define TO_BF16(x) pc__bf16_of((float)(x))

static void store(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)
{
    switch (dtype) {
    case PC_F16:
        STORE(pc_f16, TO_F16, d);
    case PC_BF16:
        STORE(pc_bf16, TO_BF16, d);
    case PC_F32:
        STORE(float, TO_FLOAT, d);
    case PC_F64:
        STORE(double, AS_IS, d);
    default:
        STORE(uint64_t, AS_IS, u);
    }
}

PC__KERNEL(sum)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, store                                                                 \
    }
    static const pc__reduction sums[PC_DTYPE_COUNT] = {
        [PC_I64] = ROW(i64), [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    (void)stream;
    return pc__reduce(call, &sums[call->in[0]->dtype], NULL);
}
