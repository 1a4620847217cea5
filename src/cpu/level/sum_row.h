/* sum_row.h: the sum of 16-bit numbers side by side. A run of them is added in float32, in vectors that stay in registers, and
 * runs in float64. */
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

/* One more number to each of a run's sums, in no order that matters. */
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

/* A run's sums in one vector. */
INLINE singles joined(const singles *sum)
{
    singles all = sum[0];
    UNROLLED for (int v = 1; v < SUMS; v++) all += sum[v];
    return all;
}

INLINE doubles wide_singles(singles x)
{
    typedef VECTOR(float, PC__VECTOR_BYTES / 2) half;
    const half *part = (const half *)&x;
    return __builtin_convertvector(part[0], doubles) + __builtin_convertvector(part[1], doubles);
}

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

/* T of 16 bits; `of` gives a number as a double. */
#define PC__SUM_ROW(name, T, of)                                                                                       \
    static void row_##name(const void *from, int64_t n, pc__partial *value, void *also)                                \
    {                                                                                                                  \
        enum { LANES = SUMS_BYTES / sizeof(float) };                                                                   \
        const T *x = from;                                                                                             \
        doubles part = {0};                                                                                            \
        double total = 0;                                                                                              \
        (void)also;                                                                                                    \
        for (int64_t i = 0; n < LANES && i < n; i++)                                                                   \
            total += of(x[i]);                                                                                         \
        for (int64_t begin = 0; n >= LANES && begin < n; begin += RUN) {                                               \
            const int64_t end = PC__MIN(begin + RUN, n);                                                               \
            singles sum[SUMS] = {{0}};                                                                                 \
            int64_t i = begin;                                                                                         \
            for (; i + LANES <= end; i += LANES)                                                                       \
                more_##name(sum, x + i);                                                                               \
            if (i < end) {                                                                                             \
                T room[LANES];                                                                                         \
                last_of(room, x + n, (n - i) * (int64_t)sizeof(T), sizeof room);                                       \
                more_##name(sum, room);                                                                                \
            }                                                                                                          \
            part += wide_singles(joined(sum));                                                                         \
        }                                                                                                              \
        UNROLLED for (int k = 0; k < PC__VECTOR_BYTES / 8; k++) total += part[k];                                      \
        value->d = total;                                                                                              \
    }

#endif
