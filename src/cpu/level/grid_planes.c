/* grid_planes.c: pictures read at places of one's own, channel by channel: what is the same for all channels is made once for a table
 * of places, and vectors over places go through the channels. The gradient at x is added up in each channel by itself, places in
 * order. */
#include "cpu/level/grid_table.h"
#include "cpu/level/grid_gather.h"

/* Around each place of a table two neighbours in a row of x, in two rows. The two are both in x: of a place on the edge one of them
 * is for nothing. */
typedef struct corners {
    pc__lane_int at[2][GRID_TABLE];                  /* by row: where the first of the two is in a channel, */
    pc__lane_int there[2][2][GRID_TABLE];            /* by row and column: whether it is for something, -1 or 0 */
    real down[2][GRID_TABLE], across[2][GRID_TABLE]; /* weights of rows and of columns, */
    real turn[2][GRID_TABLE];                        /* and what those of columns change by */
    int64_t count, step;                             /* from the first to the second; 0 where a row has only one */
} corners;

typedef struct work {
    const pc__grid_call *g;
    int64_t tables, group, groups; /* of a picture's places; channels of a task */
} work;

/* Where channel number `channel` of picture n begins, of planes of `size` places. */
INLINE int64_t begin_of(const pc__grid_call *g, int64_t n, int64_t channel, int64_t size)
{
    const int64_t plane = channel / g->inner;
    return (n * g->planes + plane) * size * g->inner + (channel - plane * g->inner);
}

/* Neighbours `base` and `base` + 1 stand for `low` and `low` + 1, or for one of these: then the other one of the two is not in x. */
static void make_columns(corners *restrict c, real *restrict bases, const grid_axis *restrict x, real w, bool nearest)
{
    const pc__lane_int both = nearest ? 0 : -1, wide = w > 1 ? -1 : 0;
    const int64_t count = c->count;
    EACH_PLACE(j, count)
    {
        const real low = x->low[j], base = within(low, w > 1 ? w - 1 : 1), before = 1 - x->part[j], behind = x->part[j];
        const pc__lane_int same = base == low ? -1 : 0;
        const pc__lane_int first = base == low + 1 ? -1 : 0, last = base + 1 == low ? -1 : 0;
        bases[j] = base;
        c->there[0][0][j] = same | (first & both);
        c->there[0][1][j] = ((same & both) | last) & wide;
        c->across[0][j] = first ? behind : before;
        c->across[1][j] = last ? before : behind;
        c->turn[0][j] = first ? (real)1 : (real)-1;
        c->turn[1][j] = last ? (real)-1 : (real)1;
    }
}

static void make_rows(corners *restrict c, const real *restrict bases, const grid_axis *restrict y,
                      const pc__grid_call *g)
{
    const real h = (real)g->h;
    const int64_t count = c->count;
    const pc__lane_int both = g->spec.nearest ? 0 : -1, w = (pc__lane_int)g->w, inner = (pc__lane_int)g->inner;
    EACH_PLACE(j, count)
    {
        const real low = y->low[j], top = within(low, h), bottom = within(low + 1, h);
        const pc__lane_int first = top == low ? -1 : 0, second = bottom == low + 1 ? both : 0;
        const pc__lane_int left = c->there[0][0][j], right = c->there[0][1][j], base = (pc__lane_int)bases[j];
        c->at[0][j] = ((pc__lane_int)top * w + base) * inner;
        c->at[1][j] = ((pc__lane_int)bottom * w + base) * inner;
        c->there[0][0][j] = left & first;
        c->there[0][1][j] = right & first;
        c->there[1][0][j] = left & second;
        c->there[1][1][j] = right & second;
        c->down[0][j] = 1 - y->part[j];
        c->down[1][j] = y->part[j];
    }
}

static void make_corners(corners *c, grid_table *t, const pc__grid_call *g, int64_t n, int64_t first)
{
    real bases[GRID_TABLE];
    grid_table_fill(t, g, n, first);
    c->count = t->count;
    c->step = g->w > 1 ? g->inner : 0;
    make_columns(c, bases, &t->axis[1], (real)g->w, g->spec.nearest);
    make_rows(c, bases, &t->axis[0], g);
}

INLINE vec weights(const real *all, int64_t j)
{
    return LOAD(all + j);
}

INLINE lanes numbers(const pc__lane_int *all, int64_t j)
{
    return *(const lanes_in_memory *)(all + j);
}

/* The two neighbours of a row; what is not there is 0, and not what stands elsewhere by a weight of 0. */
INLINE void two_of(const real *x, const corners *c, int row, int64_t j, vec *first, vec *second, const bool adjacent)
{
    const lanes at = numbers(c->at[row], j);
    if (adjacent) {
        gather_pairs(x, at, first, second);
    } else {
        *first = gather(x, at);
        *second = gather(x + c->step, at);
    }
    *first = where(numbers(c->there[row][0], j), *first);
    *second = where(numbers(c->there[row][1], j), *second);
}

/* Some places of a channel, which are `inner` apart. */
static __attribute__((noinline)) void pick(real *to, const real *from, int64_t n, int64_t inner)
{
    _Pragma("GCC unroll 1") for (int64_t i = 0; i < W; i++) to[i] = i < n ? from[i * inner] : 0;
}

static __attribute__((noinline)) void put(real *to, const real *from, int64_t n, int64_t inner)
{
    const int64_t end = PC__MIN(n, W);
    _Pragma("GCC unroll 1") for (int64_t i = 0; i < end; i++) to[i * inner] = from[i];
}

/* A vector over places j, j + 1, ... of those there are. */
INLINE vec load_places(const real *from, int64_t j, int64_t count, int64_t inner)
{
    if (inner == 1 && count - j >= W)
        return LOAD(from + j);
    real all[W];
    pick(all, from + j * inner, count - j, inner);
    return LOAD(all);
}

INLINE void store_places(vec x, real *to, int64_t j, int64_t count, int64_t inner)
{
    if (inner == 1 && count - j >= W) {
        AT(to + j) = x;
        return;
    }
    real all[W];
    AT(all) = x;
    put(to + j * inner, all, count - j, inner);
}

INLINE void read_four(real *y, const real *x, const corners *c, int64_t inner, const bool adjacent)
{
    for (int64_t j = 0; j < c->count; j += W) {
        vec value = {0};
        UNROLL for (int row = 0; row < 2; row++)
        {
            vec first, second;
            two_of(x, c, row, j, &first, &second, adjacent);
            value += (first * weights(c->across[0], j) + second * weights(c->across[1], j)) * weights(c->down[row], j);
        }
        store_places(value, y, j, c->count, inner);
    }
}

static void read_nearest(real *y, const real *x, const corners *c, int64_t inner)
{
    for (int64_t j = 0; j < c->count; j += W) {
        const vec first = where(numbers(c->there[0][0], j), gather(x, numbers(c->at[0], j)));
        const vec second = where(numbers(c->there[0][1], j), gather(x + c->step, numbers(c->at[0], j)));
        store_places(first + second, y, j, c->count, inner);
    }
}

/* Task: some places of some channels of a picture. */
static void read_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t group = task % w->groups, of_table = task / w->groups, n = of_table / w->tables;
    const int64_t first = of_table % w->tables * GRID_TABLE;
    const int64_t end = PC__MIN((group + 1) * w->group, g->planes * g->inner);
    grid_table t;
    corners c;
    make_corners(&c, &t, g, n, first);
    for (int64_t channel = group * w->group; channel < end; channel++) {
        const real *x = (const real *)g->x + begin_of(g, n, channel, g->h * g->w);
        real *y = (real *)g->y + begin_of(g, n, channel, g->places) + first * g->inner;
        if (g->spec.nearest)
            read_nearest(y, x, &c, g->inner);
        else if (c.step == 1)
            read_four(y, x, &c, 1, true);
        else
            read_four(y, x, &c, g->inner, false);
    }
}

/* dx += dy, one place after the other. */
static void add_channel(real *restrict dx, const real *dy, const corners *restrict c, int64_t inner, bool nearest)
{
    real part[4][GRID_TABLE];
    for (int64_t j = 0; j < c->count; j += W) {
        const vec gradient = load_places(dy, j, c->count, inner);
        UNROLL for (int k = 0; k < 4; k++)
        {
            const vec by = weights(c->down[k / 2], j) * weights(c->across[k % 2], j);
            AT(part[k] + j) = where(numbers(c->there[k / 2][k % 2], j), gradient * by);
        }
    }
    const int64_t step = c->step;
    _Pragma("GCC unroll 1") for (int64_t j = 0; j < c->count; j++)
    {
        real *top = dx + c->at[0][j], *bottom = dx + c->at[1][j];
        top[0] += part[0][j];
        top[step] += part[1][j];
        if (nearest)
            continue;
        bottom[0] += part[2][j];
        bottom[step] += part[3][j];
    }
}

/* Zeros in channels `first` to `end` - 1 of a picture. */
static void clear(const pc__grid_call *g, int64_t n, int64_t first, int64_t end)
{
    const int64_t size = g->h * g->w;
    for (int64_t channel = first; channel < end; channel++) {
        real *dx = (real *)g->dx + begin_of(g, n, channel, size);
        if (g->inner == 1)
            memset(dx, 0, (size_t)size * sizeof *dx);
        else
            for (int64_t i = 0; i < size; i++)
                dx[i * g->inner] = 0;
    }
}

/* Task: some channels of a picture. */
static void add_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t n = task / w->groups, begin = task % w->groups * w->group;
    const int64_t end = PC__MIN(begin + w->group, g->planes * g->inner);
    clear(g, n, begin, end);
    for (int64_t first = 0; first < g->places; first += GRID_TABLE) {
        grid_table t;
        corners c;
        make_corners(&c, &t, g, n, first);
        for (int64_t channel = begin; channel < end; channel++)
            add_channel((real *)g->dx + begin_of(g, n, channel, g->h * g->w),
                        (const real *)g->dy + begin_of(g, n, channel, g->places) + first * g->inner, &c, g->inner,
                        g->spec.nearest);
    }
}

/* What a channel adds to the gradients at the two numbers of each place. */
INLINE void add_slopes(real *across, real *down, const real *x, const real *dy, const corners *c, int64_t inner,
                       const bool adjacent)
{
    for (int64_t j = 0; j < c->count; j += W) {
        const lanes any = numbers(c->there[0][0], j) | numbers(c->there[0][1], j) | numbers(c->there[1][0], j) |
                          numbers(c->there[1][1], j); /* of none the gradient is 0 whatever arrives */
        const vec gradient = where(any, load_places(dy, j, c->count, inner));
        vec line[2], turn[2];
        UNROLL for (int row = 0; row < 2; row++)
        {
            vec first, second;
            two_of(x, c, row, j, &first, &second, adjacent);
            line[row] = first * weights(c->across[0], j) + second * weights(c->across[1], j);
            turn[row] = first * weights(c->turn[0], j) + second * weights(c->turn[1], j);
        }
        AT(across + j) += gradient * (turn[0] * weights(c->down[0], j) + turn[1] * weights(c->down[1], j));
        AT(down + j) += gradient * (line[1] - line[0]);
    }
}

/* Task: some places of a picture. */
static void slope_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t n = task / w->tables, first = task % w->tables * GRID_TABLE;
    real across[GRID_TABLE] = {0}, down[GRID_TABLE] = {0};
    grid_table t;
    corners c;
    make_corners(&c, &t, g, n, first);
    for (int64_t channel = 0; channel < g->planes * g->inner; channel++) {
        const real *x = (const real *)g->x + begin_of(g, n, channel, g->h * g->w);
        const real *dy = (const real *)g->dy + begin_of(g, n, channel, g->places) + first * g->inner;
        c.step == 1 ? add_slopes(across, down, x, dy, &c, 1, true)
                    : add_slopes(across, down, x, dy, &c, g->inner, false);
    }
    real *to = (real *)g->dgrid + 2 * (n * g->places + first);
    _Pragma("GCC unroll 1") for (int64_t j = 0; j < t.count; j++)
    {
        to[2 * j] = across[j] * t.axis[1].slope[j];
        to[2 * j + 1] = down[j] * t.axis[0].slope[j];
    }
}

pc_status PC__R(grid_planes)(const pc__grid_call *g)
{
    enum { STEP = 16 }; /* channels for which making corners anew is little, and of a line of the cache */
    const int threads = pc__threads(grid_work(g));
    work w = {.g = g, .tables = (g->places + GRID_TABLE - 1) / GRID_TABLE};
    w.group = grid_group(g->dx ? g->n : g->n * w.tables, g->planes * g->inner, STEP, threads);
    w.groups = (g->planes * g->inner + w.group - 1) / w.group;
    if (g->y)
        pc__parallel(threads, g->n * w.tables * w.groups, read_some, &w);
    if (g->dx)
        pc__parallel(threads, g->n * w.groups, add_some, &w);
    if (g->dgrid)
        pc__parallel(threads, g->n * w.tables, slope_some, &w);
    return PC_OK;
}
