/* sum_row.h: the sum of numbers side by side. A run of them is added in their own type, in vectors that stay in registers;
 * runs are added in the wider type. 16-bit numbers are float32 on the way. */
#ifndef PC__SUM_ROW_H
#define PC__SUM_ROW_H

#include "cpu/level/halves.h"
#include "cpu/level/reduce.h"

enum {
    RUN = 1024,
    SUMS_BYTES = 128, /* of a run's sums */
    SUMS = SUMS_BYTES / PC__VECTOR_BYTES,
};

#define VECTOR(T, bytes) T __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias))
typedef VECTOR(float, PC__VECTOR_BYTES) singles;
typedef VECTOR(double, PC__VECTOR_BYTES) doubles;
typedef VECTOR(uint64_t, PC__VECTOR_BYTES) wholes;
typedef VECTOR(uint8_t, PC__VECTOR_BYTES) bits;

#define UNROLLED _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

/* One more number to each of a run's sums. */
#define MORE(name, T, sums)                                                                                            \
    INLINE void more_##name(sums *sum, const T *x)                                                                     \
    {                                                                                                                  \
        UNROLLED for (int v = 0; v < SUMS; v++) sum[v] += ((const sums *)x)[v];                                        \
    }
MORE(u64, uint64_t, wholes)
MORE(f32, float, singles)
MORE(f64, double, doubles)

/* In no order that matters. */
#define MORE_HALVES(half)                                                                                              \
    INLINE void more_##half(singles *sum, const pc_##half *x)                                                          \
    {                                                                                                                  \
        UNROLLED for (int v = 0; v < SUMS; v += 2)                                                                     \
        {                                                                                                              \
            float got[PC__HALVES];                                                                                     \
            pc__take_##half(got, x + v * PC__HALVES / 2);                                                              \
            sum[v] += ((const singles *)got)[0];                                                                       \
            sum[v + 1] += ((const singles *)got)[1];                                                                   \
        }                                                                                                              \
    }
MORE_HALVES(f16)
MORE_HALVES(bf16)

/* A run's sums in one vector of the wider type. */
#define JOINED(sums)                                                                                                   \
    INLINE sums joined_##sums(const sums *sum)                                                                         \
    {                                                                                                                  \
        sums all = sum[0];                                                                                             \
        UNROLLED for (int v = 1; v < SUMS; v++) all += sum[v];                                                         \
        return all;                                                                                                    \
    }
JOINED(wholes)
JOINED(doubles)
JOINED(singles)

INLINE doubles wide_singles(singles x)
{
    typedef VECTOR(float, PC__VECTOR_BYTES / 2) half;
    const half *part = (const half *)&x;
    return __builtin_convertvector(part[0], doubles) + __builtin_convertvector(part[1], doubles);
}
#define wide_doubles(x) (x)
#define wide_wholes(x) (x)

/* room = the `size` bytes that end at `end`, all but the last `there` of them zero. */
INLINE void last_of(void *room, const void *end, int64_t there, const int size)
{
#define ONES_8 255, 255, 255, 255, 255, 255, 255, 255
#define ONES_64 ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8
    static const uint8_t steps[2 * SUMS_BYTES] = {[SUMS_BYTES] = ONES_64, ONES_64};
    const char *from = (const char *)end - size;
    const uint8_t *mask = steps + SUMS_BYTES - size + there;
    UNROLLED for (int i = 0; i < size; i += PC__VECTOR_BYTES) * (bits *)((char *)room + i) =
        *(const bits *)(from + i) & *(const bits *)(mask + i);
}

/* T in memory, `sums` vectors of what a run is added in; A beyond, which `wide` has and `member` of a partial. */
#define PC__SUM_ROW(name, T, sums, wide, A, of, member)                                                                \
    static void row_##name(const void *from, int64_t n, pc__partial *value, void *also)                                \
    {                                                                                                                  \
        enum { LANES = SUMS_BYTES / sizeof(((sums){0})[0]) };                                                          \
        const T *x = from;                                                                                             \
        wide part = {0};                                                                                               \
        A total = 0;                                                                                                   \
        (void)also;                                                                                                    \
        for (int64_t i = 0; n < LANES && i < n; i++)                                                                   \
            total += of(x[i]);                                                                                         \
        for (int64_t begin = 0; n >= LANES && begin < n; begin += RUN) {                                               \
            const int64_t end = PC__MIN(begin + RUN, n);                                                               \
            sums sum[SUMS] = {{0}};                                                                                    \
            int64_t i = begin;                                                                                         \
            for (; i + LANES <= end; i += LANES)                                                                       \
                more_##name(sum, x + i);                                                                               \
            if (i < end) {                                                                                             \
                T room[LANES];                                                                                         \
                last_of(room, x + n, (n - i) * (int64_t)sizeof(T), sizeof room);                                       \
                more_##name(sum, room);                                                                                \
            }                                                                                                          \
            part += wide_##sums(joined_##sums(sum));                                                                   \
        }                                                                                                              \
        UNROLLED for (int k = 0; k < PC__VECTOR_BYTES / 8; k++) total += part[k];                                      \
        value->member = total;                                                                                         \
    }

#endif
