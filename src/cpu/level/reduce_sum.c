/* reduce_sum.c: sums. A run of numbers is added in their own type, in lanes, so that it becomes vector code; runs are
 * added in the wider type. 16-bit numbers are float32 on the way. */
#include "cpu/level/halves.h"
#include "cpu/level/reduce.h"
#include "tensor/half.h"

enum {
    RUN = 1024, /* numbers, in LANES sums */
    LANES = 32,
};

#define AS_IS(x) (x)
/* T in memory, C while a run is added, A beyond; `take` gives n numbers as C, in their place or in `room`; `member` of a
 * partial has A. */
#define SUM(name, T, C, A, take, member)                                                                               \
    static void row_##name(const void *from, int64_t n, pc__partial *value, int64_t *place)                            \
    {                                                                                                                  \
        A total = 0;                                                                                                   \
        (void)place;                                                                                                   \
        for (int64_t begin = 0; begin < n; begin += RUN) {                                                             \
            const int64_t end = PC__MIN(RUN, n - begin);                                                               \
            int64_t i = 0;                                                                                             \
            C lane[LANES] = {0}, room[RUN];                                                                            \
            const C *x = take(room, (const T *)from + begin, end);                                                     \
            for (; i + LANES <= end; i += LANES)                                                                       \
                for (int k = 0; k < LANES; k++)                                                                        \
                    lane[k] = (C)(lane[k] + x[i + k]);                                                                 \
            A sum = 0;                                                                                                 \
            for (int k = 0; k < LANES; k++)                                                                            \
                sum += lane[k];                                                                                        \
            for (; i < end; i++)                                                                                       \
                sum += x[i];                                                                                           \
            total += sum;                                                                                              \
        }                                                                                                              \
        value->member = total;                                                                                         \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               int64_t *place)                                                                         \
    {                                                                                                                  \
        (void)place;                                                                                                   \
        for (int64_t j = 0; j < n; j++)                                                                                \
            value[j].member = 0;                                                                                       \
        for (int64_t begin = 0; begin < reduced; begin += RUN / LANES) {                                               \
            const int64_t end = PC__MIN(begin + RUN / LANES, reduced);                                                 \
            C part[PC__COLUMNS], room[PC__COLUMNS];                                                                    \
            for (int64_t j = 0; j < n; j++)                                                                            \
                part[j] = 0;                                                                                           \
            for (int64_t r = begin; r < end; r++) {                                                                    \
                const C *x = take(room, (const T *)from + r * step, n);                                                \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    part[j] = (C)(part[j] + x[j]);                                                                     \
            }                                                                                                          \
            for (int64_t j = 0; j < n; j++)                                                                            \
                value[j].member += part[j];                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, int64_t *place, const pc__partial *more, const int64_t *where,         \
                            int64_t first, int64_t n)                                                                  \
    {                                                                                                                  \
        (void)place, (void)where, (void)first;                                                                         \
        for (int64_t j = 0; j < n; j++)                                                                                \
            value[j].member += more[j].member;                                                                         \
    }
#define IN_PLACE(room, from, n) ((void)(room), from)
static inline const float *from_f16(float *room, const pc_f16 *from, int64_t n)
{
    pc__load_halves(room, from, n, true);
    return room;
}

static inline const float *from_bf16(float *room, const pc_bf16 *from, int64_t n)
{
    pc__load_halves(room, from, n, false);
    return room;
}

SUM(i64, uint64_t, uint64_t, uint64_t, IN_PLACE, u)
SUM(f16, pc_f16, float, double, from_f16, d)
SUM(bf16, pc_bf16, float, double, from_bf16, d)
SUM(f32, float, float, double, IN_PLACE, d)
SUM(f64, double, double, double, IN_PLACE, d)

#define STORE(T, of, member)                                                                                           \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((T *)to)[j] = of(value[j].member);                                                                            \
    break

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
