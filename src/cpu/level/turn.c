/* turn.c: transposition of small matrices. Blocks of 16 bytes by as many rows as that has elements: a row of the result
 * is interleaved from all rows of the block, two at a time, as in a perfect shuffle of cards. 16 bytes are what every
 * SIMD level interleaves in one instruction; wider vectors would need two. Blocks go along the rows of the side whose rows
 * lie further apart: few of its cache lines are then begun at a time, which matters where its rows are a power of 2 apart,
 * and so compete for the same few places of a cache. The last blocks
 * lie over their neighbours where sizes are no multiples. Two to four rows, or columns side by side, are a loop whose steps
 * the compiler knows, and makes vectors of. Otherwise fewer than a block has are a part of it: columns beyond theirs are read and
 * dropped, where that many rows come behind (so not where one row is repeated), and what is written beyond rows side by side is
 * overwritten by the next. */
#include "cpu/level/turn.h"

#include "base/base.h"

#define LOW_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_2 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_2 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 2
#define HIGH_8 1, 3

typedef void block_fn(char *to, int64_t to_row, const char *from, int64_t from_row);

/* All of it in blocks of n x n, along the side whose rows lie further apart; both sides have as many at least. */
static inline __attribute__((always_inline)) void in_blocks(char *to, int64_t to_row, const char *from,
                                                            int64_t from_row, int64_t rows, int64_t columns,
                                                            const int64_t bytes, const int64_t n, block_fn *block)
{
    const bool along = to_row > from_row;
    const int64_t outer = along ? columns : rows, inner = along ? rows : columns;
    for (int64_t i = 0; i < outer; i += n)
        for (int64_t j = 0; j < inner; j += n) {
            const int64_t a = PC__MIN(i, outer - n), b = PC__MIN(j, inner - n);
            const int64_t r = along ? b : a, c = along ? a : b;
            block(to + c * to_row + r * bytes, to_row, from + r * from_row + c * bytes, from_row);
        }
}

#ifdef PC__LEVEL_v4
#include <immintrin.h>

/* A block of 16 whole vectors of 4-byte elements: within their quarters first, then the quarters. */
static void square_4(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    __m512i row[16], next[16];
    for (int i = 0; i < 16; i++)
        row[i] = _mm512_loadu_si512(from + i * from_row);
    for (int i = 0; i < 16; i += 2) {
        next[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        next[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int half = 0; half < 2; half++) {
            row[i + 2 * half] = _mm512_unpacklo_epi64(next[i + half], next[i + half + 2]);
            row[i + 2 * half + 1] = _mm512_unpackhi_epi64(next[i + half], next[i + half + 2]);
        }
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            next[i + 8 * half] = _mm512_shuffle_i32x4(row[i + 8 * half], row[i + 8 * half + 4], 0x88);
            next[i + 8 * half + 4] = _mm512_shuffle_i32x4(row[i + 8 * half], row[i + 8 * half + 4], 0xdd);
        }
    for (int i = 0; i < 8; i++) {
        const int at = i % 4 + 4 * (i / 4);
        _mm512_storeu_si512(to + i * to_row, _mm512_shuffle_i32x4(next[at], next[at + 8], 0x88));
        _mm512_storeu_si512(to + (i + 8) * to_row, _mm512_shuffle_i32x4(next[at], next[at + 8], 0xdd));
    }
}
#endif

#define TURN(T, bytes, stages)                                                                                         \
    enum { N_##bytes = 16 / (bytes) };                                                                                 \
    typedef T vector_##bytes __attribute__((vector_size(16)));                                                         \
    typedef T memory_##bytes __attribute__((vector_size(16), aligned(bytes), may_alias));                              \
    static inline __attribute__((always_inline)) void some_##bytes(char *to, int64_t to_row, const char *from,         \
                                                                   int64_t from_row, int64_t rows, int64_t columns)    \
    {                                                                                                                  \
        vector_##bytes row[N_##bytes], next[N_##bytes];                                                                \
        _Pragma("GCC unroll 16") for (int i = 0; i < N_##bytes; i++) row[i] =                                          \
            *(const memory_##bytes *)(const void *)(from + (i < rows ? i : 0) * from_row);                             \
        _Pragma("GCC unroll 4") for (int s = 0; s < (stages); s++)                                                     \
        {                                                                                                              \
            _Pragma("GCC unroll 8") for (int i = 0; i < N_##bytes / 2; i++)                                            \
            {                                                                                                          \
                next[2 * i] = __builtin_shufflevector(row[i], row[i + N_##bytes / 2], LOW_##bytes);                    \
                next[2 * i + 1] = __builtin_shufflevector(row[i], row[i + N_##bytes / 2], HIGH_##bytes);               \
            }                                                                                                          \
            _Pragma("GCC unroll 16") for (int i = 0; i < N_##bytes; i++) row[i] = next[i];                             \
        }                                                                                                              \
        _Pragma("GCC unroll 16") for (int i = 0; i < N_##bytes; i++) if (i < columns) *                                \
            (memory_##bytes *)(void *)(to + i * to_row) = row[i];                                                      \
    }                                                                                                                  \
    static inline void block_##bytes(char *to, int64_t to_row, const char *from, int64_t from_row)                     \
    {                                                                                                                  \
        some_##bytes(to, to_row, from, from_row, N_##bytes, N_##bytes);                                                \
    }                                                                                                                  \
    static void single_##bytes(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,             \
                               int64_t columns)                                                                        \
    {                                                                                                                  \
        const bool wide = rows < columns;                                                                              \
        for (int64_t i = 0; i < (wide ? rows : columns); i++)                                                          \
            for (int64_t j = 0; j < (wide ? columns : rows); j++) {                                                    \
                const int64_t r = wide ? i : j, c = wide ? j : i;                                                      \
                ((T *)(void *)(to + c * to_row))[r] = ((const T *)(const void *)(from + r * from_row))[c];             \
            }                                                                                                          \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void narrow_##bytes(T *restrict to, int64_t to_row, int64_t to_next,  \
                                                                     const T *restrict from, int64_t from_row,         \
                                                                     int64_t from_next, int64_t n, const int count)    \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            _Pragma("GCC unroll 4") for (int k = 0; k < count; k++) to[i * to_next + k * to_row] =                     \
                from[i * from_next + k * from_row];                                                                    \
    }                                                                                                                  \
    static bool few_##bytes(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,                \
                            int64_t columns)                                                                           \
    {                                                                                                                  \
        T *t = (T *)(void *)to;                                                                                        \
        const T *f = (const T *)(const void *)from;                                                                    \
        const bool apart = from_row == columns * (bytes), together = to_row == rows * (bytes);                         \
        if (apart && columns == 2)                                                                                     \
            narrow_##bytes(t, to_row / (bytes), 1, f, 1, 2, rows, 2);                                                  \
        else if (apart && columns == 3)                                                                                \
            narrow_##bytes(t, to_row / (bytes), 1, f, 1, 3, rows, 3);                                                  \
        else if (apart && columns == 4)                                                                                \
            narrow_##bytes(t, to_row / (bytes), 1, f, 1, 4, rows, 4);                                                  \
        else if (together && rows == 2)                                                                                \
            narrow_##bytes(t, 1, 2, f, from_row / (bytes), 1, columns, 2);                                             \
        else if (together && rows == 3)                                                                                \
            narrow_##bytes(t, 1, 3, f, from_row / (bytes), 1, columns, 3);                                             \
        else if (together && rows == 4)                                                                                \
            narrow_##bytes(t, 1, 4, f, from_row / (bytes), 1, columns, 4);                                             \
        else if (rows < N_##bytes && rows == 2)                                                                        \
            narrow_##bytes(t, 1, to_row / (bytes), f, from_row / (bytes), 1, columns, 2);                              \
        else if (rows < N_##bytes && rows == 3)                                                                        \
            narrow_##bytes(t, 1, to_row / (bytes), f, from_row / (bytes), 1, columns, 3);                              \
        else if (rows < N_##bytes && rows == 4)                                                                        \
            narrow_##bytes(t, 1, to_row / (bytes), f, from_row / (bytes), 1, columns, 4);                              \
        else                                                                                                           \
            return false;                                                                                              \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void turn_##bytes(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,               \
                             int64_t columns)                                                                          \
    {                                                                                                                  \
        if (few_##bytes(to, to_row, from, from_row, rows, columns))                                                    \
            return;                                                                                                    \
        if (PC__MIN(rows, columns) < N_##bytes) {                                                                      \
            int64_t done = 0;                                                                                          \
            if (columns > 1 && columns < N_##bytes)                                                                    \
                for (; from_row > 0 && done + 2 * N_##bytes <= rows; done += N_##bytes)                                \
                    some_##bytes(to + done * (bytes), to_row, from + done * from_row, from_row, N_##bytes, columns);   \
            else if (rows > 1 && to_row == rows * (bytes))                                                             \
                for (; done + 2 * N_##bytes <= columns; done += N_##bytes)                                             \
                    some_##bytes(to + done * to_row, to_row, from + done * (bytes), from_row, rows, N_##bytes);        \
            if (columns > 1 && columns < N_##bytes)                                                                    \
                single_##bytes(to + done * (bytes), to_row, from + done * from_row, from_row, rows - done, columns);   \
            else                                                                                                       \
                single_##bytes(to + done * to_row, to_row, from + done * (bytes), from_row, rows, columns - done);     \
            return;                                                                                                    \
        }                                                                                                              \
        in_blocks(to, to_row, from, from_row, rows, columns, bytes, N_##bytes, block_##bytes);                         \
    }
TURN(uint8_t, 1, 4)
TURN(uint16_t, 2, 3)
TURN(uint32_t, 4, 2)
TURN(uint64_t, 8, 1)

void pc__turn(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns, size_t bytes)
{
    switch (bytes) {
    case 1:
        turn_1(to, to_row, from, from_row, rows, columns);
        break;
    case 2:
        turn_2(to, to_row, from, from_row, rows, columns);
        break;
    case 4:
#ifdef PC__LEVEL_v4
        if (rows >= 16 && columns >= 16) {
            in_blocks(to, to_row, from, from_row, rows, columns, 4, 16, square_4);
            break;
        }
#endif
        turn_4(to, to_row, from, from_row, rows, columns);
        break;
    default:
        turn_8(to, to_row, from, from_row, rows, columns);
    }
}
