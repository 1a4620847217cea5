/* tiles.c: loops whose innermost dimension does not suit an operand, by tiles of two dimensions that stay in the
 * first-level cache. Two cases: an input runs along another dimension in memory, so its part of the tile is transposed
 * and then read by rows; or the innermost dimension is short, so all of the tile becomes one run. */
#include "cpu/level/tiles.h"

#include "cpu/level/turn.h"

enum {
    ROW_MOST = 2048,    /* elements of a tile's rows */
    ACROSS_BYTES = 128, /* two cache lines of the dimension that a transposed input runs along */
    ROOM = 16384,       /* bytes of an input's part of a tile */
    SHORT = 48,         /* an innermost dimension below this makes runs that cost more than their elements */
    FLAT = 1024,        /* elements of a tile that is one run */
    PART = 16384,       /* elements that a core takes at a time */
};

static bool runs_along(const pc__loop *loop, int k, int d)
{
    return loop->strides[k][d] == loop->bytes[k];
}

/* The dimension that an input of the loop runs along where it does not along the last one; -1 without such inputs. */
static int other_dimension(const pc__loop *loop)
{
    const int last = loop->ndim - 1;
    for (int k = 1; k < loop->operands; k++)
        for (int d = 0; d < last; d++)
            if (runs_along(loop, k, d) && loop->strides[k][last] != 0 && !runs_along(loop, k, last))
                return d;
    return -1;
}

/* One stride leads through both dimensions. */
static bool is_flat(const pc__loop *loop, int k, int outer, int inner)
{
    return loop->strides[k][outer] == loop->strides[k][inner] * loop->shape[inner];
}

static int64_t widest(const pc__loop *loop)
{
    int64_t bytes = 1;
    for (int k = 1; k < loop->operands; k++)
        bytes = PC__MAX(bytes, loop->bytes[k]);
    return bytes;
}

bool pc__tiles_make(pc__tiles *t, const pc__loop *loop)
{
    const int last = loop->ndim - 1;
    if (last < 1)
        return false;
    *t = (pc__tiles){.loop = loop, .flat = loop->shape[last] < SHORT && is_flat(loop, 0, last - 1, last)};
    t->across = t->flat ? last - 1 : other_dimension(loop);
    if (t->across < 0)
        return false;
    const int64_t all = loop->shape[t->across], bytes = widest(loop);
    t->rows = PC__MIN(all, t->flat ? PC__MAX(FLAT / loop->shape[last], 1) : ACROSS_BYTES / bytes);
    t->columns = PC__MIN(loop->shape[last], t->flat ? SHORT : PC__MIN(ROOM / bytes / t->rows, ROW_MOST));
    t->count = 1;
    for (int d = 0; d <= last; d++) {
        const int64_t step = d == last ? t->columns : d == t->across ? t->rows : 1;
        t->pieces[d] = (loop->shape[d] + step - 1) / step;
        t->count *= t->pieces[d];
    }
    t->together = PC__MAX(PART / (t->rows * t->columns), 1);
    return true;
}

/* The part of a tile that an operand has, as rows of `columns` elements side by side. */
static void gather(const pc__tiles *t, int k, const char *from, int64_t rows, int64_t columns, char *to)
{
    const pc__loop *loop = t->loop;
    const int64_t down = loop->strides[k][t->across], along = loop->strides[k][loop->ndim - 1], bytes = loop->bytes[k];
    const int64_t row = columns * bytes;
    if (down == bytes) {
        pc__turn(to, row, from, along, columns, rows, (size_t)bytes);
        return;
    }
    for (int64_t r = 0; r < (down ? rows : 1); r++)
        pc__turn(to + r * row, row, from + r * down, along, columns, 1, (size_t)bytes);
    for (int64_t done = 1, more; !down && done < rows; done += more) {
        more = PC__MIN(done, rows - done);
        memcpy(to + done * row, to, (size_t)(more * row));
    }
}

/* All of a tile as one run. */
static void run_flat(const pc__tiles *t, char *const *data, int64_t rows, pc__run_fn run)
{
    _Alignas(64) char room[PC__OPERANDS][FLAT * 8];
    const pc__loop *loop = t->loop;
    const int last = loop->ndim - 1;
    char *from[PC__OPERANDS];
    int64_t strides[PC__OPERANDS];
    for (int k = 0; k < loop->operands; k++) {
        const bool direct = is_flat(loop, k, t->across, last);
        from[k] = direct ? data[k] : room[k];
        strides[k] = direct ? loop->strides[k][last] : loop->bytes[k];
        if (!direct)
            gather(t, k, data[k], rows, t->columns, room[k]);
    }
    run(from, strides, rows * t->columns, loop->context);
}

/* A tile row by row, transposed inputs from their dense copies. */
static void run_rows(const pc__tiles *t, char *const *data, int64_t rows, int64_t columns, pc__run_fn run)
{
    _Alignas(64) char room[PC__OPERANDS][ROOM];
    const pc__loop *loop = t->loop;
    const int last = loop->ndim - 1;
    char *from[PC__OPERANDS];
    int64_t strides[PC__OPERANDS], steps[PC__OPERANDS];
    for (int k = 0; k < loop->operands; k++) {
        const bool turned = k > 0 && runs_along(loop, k, t->across) && loop->strides[k][last] != 0;
        from[k] = turned ? room[k] : data[k];
        strides[k] = turned ? loop->bytes[k] : loop->strides[k][last];
        steps[k] = turned ? columns * loop->bytes[k] : loop->strides[k][t->across];
        if (turned)
            gather(t, k, data[k], rows, columns, room[k]);
    }
    for (int64_t r = 0; r < rows; r++) {
        run(from, strides, columns, loop->context);
        for (int k = 0; k < loop->operands; k++)
            from[k] += steps[k];
    }
}

static void run_tile(const pc__tiles *t, pc__run_fn run, int64_t number)
{
    const pc__loop *loop = t->loop;
    const int last = loop->ndim - 1;
    char *data[PC__OPERANDS];
    int64_t rows = 0, columns = 0;
    for (int k = 0; k < loop->operands; k++)
        data[k] = loop->data[k];
    for (int d = last; d >= 0; d--) {
        const int64_t step = d == last ? t->columns : d == t->across ? t->rows : 1;
        const int64_t at = number % t->pieces[d] * step;
        number /= t->pieces[d];
        if (d == last)
            columns = PC__MIN(t->columns, loop->shape[d] - at);
        if (d == t->across)
            rows = PC__MIN(t->rows, loop->shape[d] - at);
        for (int k = 0; k < loop->operands; k++)
            data[k] += at * loop->strides[k][d];
    }
    if (t->flat)
        run_flat(t, data, rows, run);
    else
        run_rows(t, data, rows, columns, run);
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
