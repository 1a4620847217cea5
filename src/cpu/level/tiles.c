/* tiles.c: loops whose innermost dimension does not suit an operand, by tiles that stay in the first-level cache. An input
 * that runs along another dimension in memory has its part of the tile transposed, and is then read by rows. Where the
 * innermost dimension is short, two of them together make the runs, or three, and an input that no one stride leads through
 * is copied so; where several are, many blocks of them do, each gathered by the same list of places. */
#include "cpu/level/tiles.h"

#include "cpu/level/each.h"
#include "cpu/level/turn.h"

enum {
    ROW_MOST = 2048,    /* elements of a tile's rows */
    ACROSS_BYTES = 128, /* two cache lines of the dimension that a transposed input runs along */
    ROOM = 16384,       /* bytes of an input's part of a tile */
    SHORT = 48,         /* an innermost dimension below this makes runs that cost more than their elements */
    FLAT = 1024,        /* elements of a run of two dimensions */
    PART = 16384,       /* elements that a core takes at a time */
};

static bool runs_along(const pc__loop *loop, int k, int d)
{
    return d >= 0 && loop->strides[k][d] == loop->bytes[k];
}

/* The input runs along dimension d, and does not along the last one. */
static bool is_turned(const pc__loop *loop, int k, int d)
{
    const int last = loop->ndim - 1;
    return runs_along(loop, k, d) && loop->strides[k][last] != 0 && !runs_along(loop, k, last);
}

/* The first dimension of `dims` that an input runs along where it does not along the last one; -1 without such inputs. */
static int other_dimension(const pc__loop *loop, int dims)
{
    for (int k = 1; k < loop->operands; k++)
        for (int d = 0; d < dims; d++)
            if (is_turned(loop, k, d))
                return d;
    return -1;
}

/* One stride leads through dimensions d and d + 1. */
static bool is_flat_at(const pc__loop *loop, int k, int d)
{
    return loop->strides[k][d] == loop->strides[k][d + 1] * loop->shape[d + 1];
}

/* One stride leads through the last two dimensions. */
static bool is_flat(const pc__loop *loop, int k)
{
    return is_flat_at(loop, k, loop->ndim - 2);
}

static int64_t widest(const pc__loop *loop)
{
    int64_t bytes = 1;
    for (int k = 1; k < loop->operands; k++)
        bytes = PC__MAX(bytes, loop->bytes[k]);
    return bytes;
}

/* Pieces of about the same size, none above `most`. */
static int64_t even(int64_t all, int64_t most)
{
    const int64_t pieces = (all + PC__MAX(most, 1) - 1) / PC__MAX(most, 1);
    return pieces > 1 ? (all + pieces - 1) / pieces : all;
}

/* Elements that a tile has along dimension d. */
static int64_t step_of(const pc__tiles *t, int d)
{
    if (t->outer >= 0 && d > t->outer)
        return t->loop->shape[d];
    return d == t->loop->ndim - 1 ? t->columns
           : d == t->across       ? t->rows
           : d == t->middle       ? t->middles
           : d == t->outer        ? t->outers
                                  : 1;
}

/* The dimension in front of a block of several that are short together, all of which one stride of the output leads through, where
 * no input runs along that dimension or those before it; -1: there is none. */
static int outer_dimension(const pc__loop *loop, int64_t *block)
{
    int d = loop->ndim - 1;
    *block = loop->shape[d];
    while (d > 1 && is_flat_at(loop, 0, d - 1) && *block * loop->shape[d - 1] < SHORT)
        *block *= loop->shape[--d];
    if (d > 0 && d < loop->ndim - 1 && !is_flat_at(loop, 0, d - 1))
        *block /= loop->shape[d++];
    return d < loop->ndim - 1 && other_dimension(loop, d) < 0 ? d - 1 : -1;
}

/* The cut into tiles, as large as they are. */
static void count_tiles(pc__tiles *t)
{
    const pc__loop *loop = t->loop;
    for (int d = 0; d < loop->ndim; d++) {
        t->pieces[d] = (loop->shape[d] + step_of(t, d) - 1) / step_of(t, d);
        t->count *= t->pieces[d];
    }
}

bool pc__tiles_make(pc__tiles *t, const pc__loop *loop)
{
    const int last = loop->ndim - 1;
    if (last < 1)
        return false;
    *t = (pc__tiles){.loop = loop, .across = -1, .middle = -1, .rows = 1, .middles = 1, .outers = 1, .count = 1};
    t->outer = outer_dimension(loop, &t->block);
    if (t->outer >= 0) {
        t->outers = even(loop->shape[t->outer], FLAT / t->block);
        count_tiles(t);
        t->together = PC__MAX(PART / (t->outers * t->block), 1);
        return true;
    }
    const int64_t all = loop->shape[last], bytes = widest(loop);
    const bool is_short = all < SHORT && is_flat(loop, 0);
    t->middle = is_short ? last - 1 : -1;
    t->across = other_dimension(loop, is_short ? last - 1 : last);
    if (t->across < 0 && t->middle < 0)
        return false;
    if (t->across >= 0)
        t->rows = PC__MIN(loop->shape[t->across], ACROSS_BYTES / bytes);
    const int64_t row = t->across < 0 ? FLAT : PC__MIN(ROOM / bytes / t->rows, is_short ? FLAT : ROW_MOST);
    t->columns = is_short ? all : PC__MIN(all, row);
    if (is_short)
        t->middles = even(loop->shape[last - 1], row / all);
    if (t->across < 0 && t->middle > 0 && t->middles == loop->shape[t->middle]) { /* short, too */
        t->across = t->middle - 1;
        t->rows = even(loop->shape[t->across], FLAT / (t->middles * all));
    }
    count_tiles(t);
    t->together = PC__MAX(PART / (t->rows * t->middles * t->columns), 1);
    return true;
}

/* `times` times the first `size` bytes. */
static void repeat(char *to, int64_t size, int64_t times)
{
    for (int64_t done = 1, more; done < times; done += more) {
        more = PC__MIN(done, times - done);
        memcpy(to + done * size, to, (size_t)(more * size));
    }
}

/* Rows of so many bytes, one behind the other: in pieces as large as that allows, the last of which lies over the one before. */
static void copy_rows(char *restrict to, const char *restrict from, int64_t step, int64_t rows, int64_t bytes)
{
#define BY(size)                                                                                                       \
    if (bytes >= (size)) {                                                                                             \
        for (; rows > 0; rows--, to += bytes, from += step) {                                                          \
            for (int64_t i = 0; i < bytes - (size); i += (size))                                                       \
                memcpy(to + i, from + i, (size));                                                                      \
            memcpy(to + bytes - (size), from + bytes - (size), (size));                                                \
        }                                                                                                              \
        return;                                                                                                        \
    }
    BY(64)
    BY(32)
    BY(16)
    BY(8)
    BY(4)
    BY(2)
    BY(1)
#undef BY
}

/* A row of the tile, side by side. */
static void gather_row(const pc__tiles *t, int k, const char *from, int64_t middles, int64_t columns, char *to)
{
    const pc__loop *loop = t->loop;
    const int64_t along = loop->strides[k][loop->ndim - 1], bytes = loop->bytes[k], run = columns * bytes;
    const int64_t middle = t->middle < 0 ? 0 : loop->strides[k][t->middle];
    if (middle == bytes)
        pc__turn(to, run, from, along, columns, middles, (size_t)bytes);
    else if (along == bytes)
        copy_rows(to, from, middle, middle ? middles : 1, run);
    else if (middle && columns < middles)
        for (int64_t c = 0; c < columns; c++)
            pc__move(to + c * bytes, run, from + c * along, middle, middles, (size_t)bytes);
    else
        for (int64_t m = 0; m < (middle ? middles : 1); m++)
            pc__move(to + m * run, bytes, from + m * middle, along, columns, (size_t)bytes);
    if (!middle)
        repeat(to, run, middles);
}

/* `times` blocks, `step` bytes apart, of elements at these n places each, one behind the other. */
#define PICK(T)                                                                                                        \
    static void pick_##T(char *to, const char *from, int64_t step, int64_t times, const int64_t *at, int64_t n)        \
    {                                                                                                                  \
        T *restrict out = (T *)(void *)to;                                                                             \
        for (; times > 0; times--, from += step, out += n)                                                             \
            _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++) out[i] = *(const T *)(const void *)(from + at[i]); \
    }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)

static void gather_blocks(const pc__tiles *t, int k, const char *from, int64_t outers, char *to)
{
    const pc__loop *loop = t->loop;
    const int64_t step = loop->strides[k][t->outer], n = t->block;
    int64_t at[SHORT];
    for (int64_t i = 0; i < n; i++) {
        at[i] = 0;
        for (int64_t d = loop->ndim - 1, rest = i; d > t->outer; rest /= loop->shape[d--])
            at[i] += rest % loop->shape[d] * loop->strides[k][d];
    }
    switch (loop->bytes[k]) {
    case 1:
        pick_uint8_t(to, from, step, outers, at, n);
        break;
    case 2:
        pick_uint16_t(to, from, step, outers, at, n);
        break;
    case 4:
        pick_uint32_t(to, from, step, outers, at, n);
        break;
    default:
        pick_uint64_t(to, from, step, outers, at, n);
    }
}

/* The part of a tile that an operand has, row by row. */
static void gather(const pc__tiles *t, int k, const char *from, const int64_t sizes[4], char *to)
{
    if (t->outer >= 0) {
        gather_blocks(t, k, from, sizes[3], to);
        return;
    }
    const pc__loop *loop = t->loop;
    const int64_t rows = sizes[0], middles = sizes[1], columns = sizes[2], bytes = loop->bytes[k];
    const int64_t down = t->across < 0 ? 0 : loop->strides[k][t->across], row = middles * columns * bytes;
    const int64_t middle = t->middle < 0 ? 0 : loop->strides[k][t->middle], along = loop->strides[k][loop->ndim - 1];
    if (is_turned(loop, k, t->across)) {
        for (int64_t m = 0; m < middles; m++)
            pc__turn(to + m * columns * bytes, row, from + m * middle, along, columns, rows, (size_t)bytes);
        return;
    }
    for (int64_t r = 0; r < (down ? rows : 1); r++)
        gather_row(t, k, from + r * down, middles, columns, to + r * row);
    if (!down)
        repeat(to, row, rows);
}

/* An input goes into a tile by a dense copy. */
static bool is_copied(const pc__tiles *t, int k)
{
    bool flat = true;
    for (int d = t->outer; d >= 0 && d + 1 < t->loop->ndim; d++)
        flat = flat && is_flat_at(t->loop, k, d);
    return k > 0 && (!flat || is_turned(t->loop, k, t->across) || (t->middle >= 0 && !is_flat(t->loop, k)));
}

/* A tile row by row, or in one run where rows follow each other, from dense copies of those inputs that no one stride leads
 * through. */
static void run_rows(const pc__tiles *t, char *const *data, const int64_t sizes[4], pc__run_fn run)
{
    _Alignas(64) char room[PC__OPERANDS][ROOM];
    const pc__loop *loop = t->loop;
    const int last = loop->ndim - 1;
    const int64_t n = t->outer >= 0 ? t->block * sizes[3] : sizes[1] * sizes[2];
    char *from[PC__OPERANDS];
    int64_t strides[PC__OPERANDS], steps[PC__OPERANDS];
    bool one = true;
    for (int k = 0; k < loop->operands; k++) {
        const bool copied = is_copied(t, k);
        from[k] = copied ? room[k] : data[k];
        strides[k] = copied ? loop->bytes[k] : loop->strides[k][last];
        steps[k] = copied ? n * loop->bytes[k] : t->across < 0 ? 0 : loop->strides[k][t->across];
        one = one && steps[k] == n * strides[k];
        if (copied)
            gather(t, k, data[k], sizes, room[k]);
    }
    const int64_t rows = one ? 1 : sizes[0], length = one ? sizes[0] * n : n;
    for (int64_t r = 0; r < rows; r++) {
        run(from, strides, length, loop->context);
        for (int k = 0; k < loop->operands; k++)
            from[k] += steps[k];
    }
}

static void run_tile(const pc__tiles *t, pc__run_fn run, int64_t number)
{
    const pc__loop *loop = t->loop;
    const int last = loop->ndim - 1;
    int64_t sizes[4] = {1, 1, 1, 1}; /* rows, middles, columns, outers */
    char *data[PC__OPERANDS];
    for (int k = 0; k < loop->operands; k++)
        data[k] = loop->data[k];
    for (int d = last; d >= 0; d--) {
        const int64_t step = step_of(t, d), at = number % t->pieces[d] * step;
        number /= t->pieces[d];
        if (d == t->outer)
            sizes[3] = PC__MIN(step, loop->shape[d] - at);
        else if (d == last || d == t->across || d == t->middle)
            sizes[d == last ? 2 : d == t->middle] = PC__MIN(step, loop->shape[d] - at);
        for (int k = 0; k < loop->operands; k++)
            data[k] += at * loop->strides[k][d];
    }
    run_rows(t, data, sizes, run);
}

typedef struct tiling {
    const pc__tiles *tiles;
    pc__run_fn run;
} tiling;

static void run_part(void *context, int64_t part)
{
    const tiling *work = context;
    const pc__tiles *t = work->tiles;
    for (int64_t i = part * t->together; i < PC__MIN((part + 1) * t->together, t->count); i++)
        run_tile(t, work->run, i);
}

void pc__tiles_run(const pc__tiles *t, pc__run_fn run, int threads)
{
    pc__parallel(threads, (t->count + t->together - 1) / t->together, run_part, &(tiling){t, run});
}
