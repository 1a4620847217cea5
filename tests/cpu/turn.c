/* Transpositions of small matrices of all sizes, apart and side by side, at every level. */
#include "levels.h"

typedef void (*turn_fn)(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                        size_t bytes);
#define TURN(level)                                                                                                    \
    void pc__turn_##level(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns, \
                          size_t bytes);
PC__EACH_LEVEL(TURN)

typedef struct turn_of {
    const char *level;
    turn_fn turn;
} turn_of;

#define NAMED(level) {#level, pc__turn_##level},
static const turn_of turns[] = {PC__EACH_LEVEL(NAMED)};

enum { UNTOUCHED = 0xa5 };

/* `from` and `to` have no byte more than the matrix; gaps between rows of `to` stay as they are. A gap of -columns repeats
 * one row. */
static void check(turn_fn turn, int64_t rows, int64_t columns, int64_t gap_from, int64_t gap_to, int64_t bytes)
{
    const int64_t from_row = columns * bytes + gap_from * bytes, to_row = rows * bytes + gap_to * bytes;
    const int64_t from_bytes = (rows - 1) * from_row + columns * bytes,
                  to_bytes = (columns - 1) * to_row + rows * bytes;
    unsigned char *from = malloc((size_t)from_bytes), *to = malloc((size_t)to_bytes);
    assert_true(from && to);
    for (int64_t i = 0; i < from_bytes; i++)
        from[i] = (unsigned char)(i * 37 + i / 251);
    memset(to, UNTOUCHED, (size_t)to_bytes);
    turn((char *)to, to_row, (const char *)from, from_row, rows, columns, (size_t)bytes);
    for (int64_t i = 0; i < to_bytes; i++) {
        const int64_t c = i / to_row, r = i % to_row / bytes, byte = i % to_row % bytes;
        const unsigned char expected = r < rows ? from[r * from_row + c * bytes + byte] : UNTOUCHED;
        if (to[i] != expected)
            fail_msg("%d rows, %d columns of %d bytes, gaps %d and %d: row %d, column %d is wrong", (int)rows,
                     (int)columns, (int)bytes, (int)gap_from, (int)gap_to, (int)r, (int)c);
    }
    free(from);
    free(to);
}

static void all_sizes(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 19, 31, 33, 50, 67};
    (void)state;
    for (int l = 0; l < PC__COUNT(turns); l++)
        for (int i = 0; level_runs(turns[l].level) && i < PC__COUNT(sizes) * PC__COUNT(sizes); i++)
            for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
                for (int gaps = 0; gaps < 6; gaps++) {
                    const int64_t rows = sizes[i / PC__COUNT(sizes)], columns = sizes[i % PC__COUNT(sizes)];
                    check(turns[l].turn, rows, columns, gaps < 4 ? gaps % 2 : -columns, gaps / 2 % 2 * 3, bytes);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_sizes)};
    return cmocka_run_group_tests_name("cpu.turn", tests, NULL, NULL);
}
