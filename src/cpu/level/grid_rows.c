/* grid_rows.c: pictures read at places of one's own, by rows of neighbouring channels: each place adds up those of the four whole
 * places around it. The gradient at x is added up by groups of channels, places in order. */
#include "cpu/level/grid_table.h"

/* What goes by a vector goes by smaller ones behind the last of these, and then one by one. */
#if PC__VECTOR_BYTES == 64
#define BY_PIECES(STEP) STEP(64) STEP(32) STEP(16) STEP(sizeof(real))
#elif PC__VECTOR_BYTES == 32
#define BY_PIECES(STEP) STEP(32) STEP(16) STEP(sizeof(real))
#else
#define BY_PIECES(STEP) STEP(16) STEP(sizeof(real))
#endif

/* The rows around each place of a table, those of y first: where in a plane, or -1, and their weights. */
typedef struct around {
    int64_t at[4][GRID_TABLE];
    real weight[4][GRID_TABLE];
} around;

typedef struct work {
    const pc__grid_call *g;
    int64_t tables, group, groups; /* of a picture's places; channels of a task */
    real *zeros, *rooms;           /* to be read where there is nothing, and of each thread to be written */
} work;

static void make_around(around *restrict a, grid_table *restrict t, const pc__grid_call *g, int64_t n, int64_t first)
{
    grid_table_fill(t, g, n, first);
    const grid_axis *y = &t->axis[0], *x = &t->axis[1];
    const real h = (real)g->h, w = (real)g->w;
    const int kinds = g->spec.nearest ? 1 : 4;
    _Pragma("GCC unroll 1") for (int k = 0; k < 4; k++)
    {
        const bool down = k / 2, right = k % 2, counts = k < kinds;
        int64_t *restrict at = a->at[k];
        real *restrict weight = a->weight[k];
        EACH_PLACE(j, t->count)
        {
            const real by_y = down ? y->part[j] : 1 - y->part[j], by_x = right ? x->part[j] : 1 - x->part[j];
            const real row = y->low[j] + (real)down, column = x->low[j] + (real)right;
            const real near_row = within(row, h), near_column = within(column, w);
            const int64_t number = ((int64_t)near_row * g->w + (int64_t)near_column) * g->inner;
            at[j] = (near_row == row) & (near_column == column) & counts ? number : -1;
            weight[j] = by_y * by_x;
        }
    }
}

/* y = the sum of four rows. */
static void read_row(real *restrict y, const real *const *row, const real *weight, int64_t n)
{
    const real *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3];
    const real w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];
    int64_t c = 0;
#define STEP(bytes)                                                                                                    \
    {                                                                                                                  \
        typedef real part __attribute__((vector_size(bytes), aligned(sizeof(real)), may_alias));                       \
        for (; c + (int64_t)((bytes) / sizeof(real)) <= n; c += (bytes) / sizeof(real))                                \
            *(part *)(y + c) = *(const part *)(r0 + c) * w0 + *(const part *)(r1 + c) * w1 +                           \
                               *(const part *)(r2 + c) * w2 + *(const part *)(r3 + c) * w3;                            \
    }
    BY_PIECES(STEP)
#undef STEP
}

/* Each row += y; they are four different ones, or not to be read. */
static void add_rows(real *const *row, const real *restrict y, const real *weight, int64_t n)
{
    int64_t c = 0;
#define STEP(bytes)                                                                                                    \
    {                                                                                                                  \
        typedef real part __attribute__((vector_size(bytes), aligned(sizeof(real)), may_alias));                       \
        for (; c + (int64_t)((bytes) / sizeof(real)) <= n; c += (bytes) / sizeof(real)) {                              \
            const part all = *(const part *)(y + c);                                                                   \
            UNROLL for (int k = 0; k < 4; k++) * (part *)(row[k] + c) += all * weight[k];                              \
        }                                                                                                              \
    }
    BY_PIECES(STEP)
#undef STEP
}

/* product[k] += the product of row k and y. */
static void multiply_rows(real *product, const real *const *row, const real *restrict y, int64_t n)
{
    vec sum[4] = {{0}};
    real rest[4] = {0};
    int64_t c = 0;
    for (; c + W <= n; c += W)
        UNROLL for (int k = 0; k < 4; k++) sum[k] += LOAD(row[k] + c) * LOAD(y + c);
    _Pragma("GCC unroll 1") for (; c < n; c++) UNROLL for (int k = 0; k < 4; k++) rest[k] += row[k][c] * y[c];
    real all[4];
    four_sums(sum, all);
    for (int k = 0; k < 4; k++)
        product[k] += all[k] + rest[k];
}

/* Task: some places of a plane. */
static void read_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t plane = task / w->tables, first = task % w->tables * GRID_TABLE;
    const real *x = (const real *)g->x + plane * g->h * g->w * g->inner;
    real *y = (real *)g->y + (plane * g->places + first) * g->inner;
    grid_table t;
    around a;
    make_around(&a, &t, g, plane / g->planes, first);
    for (int64_t j = 0; j < t.count; j++) {
        const real *row[4];
        real weight[4];
        UNROLL for (int k = 0; k < 4; k++)
        {
            row[k] = a.at[k][j] < 0 ? w->zeros : x + a.at[k][j];
            weight[k] = a.weight[k][j];
        }
        read_row(y + j * g->inner, row, weight, g->inner);
    }
}

/* Task: some channels of a plane. */
static void add_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t plane = task / w->groups, begin = task % w->groups * w->group;
    const int64_t channels = PC__MIN(w->group, g->inner - begin), size = g->h * g->w;
    real *dx = (real *)g->dx + plane * size * g->inner + begin, *room = w->rooms + pc__thread() * w->group;
    const real *dy = (const real *)g->dy + plane * g->places * g->inner + begin;
    for (int64_t i = 0; i < size; i++)
        memset(dx + i * g->inner, 0, (size_t)channels * sizeof *dx);
    for (int64_t first = 0; first < g->places; first += GRID_TABLE) {
        grid_table t;
        around a;
        make_around(&a, &t, g, plane / g->planes, first);
        for (int64_t j = 0; j < t.count; j++) {
            real *row[4], weight[4];
            UNROLL for (int k = 0; k < 4; k++)
            {
                row[k] = a.at[k][j] < 0 ? room : dx + a.at[k][j];
                weight[k] = a.weight[k][j];
            }
            add_rows(row, dy + (first + j) * g->inner, weight, channels);
        }
    }
}

/* Task: some places of a picture. */
static void slope_some(void *context, int64_t task)
{
    const work *w = context;
    const pc__grid_call *g = w->g;
    const int64_t n = task / w->tables, first = task % w->tables * GRID_TABLE, size = g->h * g->w * g->inner;
    real *to = (real *)g->dgrid + 2 * (n * g->places + first);
    grid_table t;
    around a;
    make_around(&a, &t, g, n, first);
    for (int64_t j = 0; j < t.count; j++) {
        real p[4] = {0};
        for (int64_t plane = n * g->planes; plane < (n + 1) * g->planes; plane++) {
            const real *row[4];
            UNROLL for (int k = 0; k < 4; k++) row[k] =
                a.at[k][j] < 0 ? w->zeros : (const real *)g->x + plane * size + a.at[k][j];
            multiply_rows(p, row, (const real *)g->dy + (plane * g->places + first + j) * g->inner, g->inner);
        }
        UNROLL for (int k = 0; k < 4; k++) p[k] = a.at[k][j] < 0 ? 0 : p[k];
        const real down = t.axis[0].part[j], right = t.axis[1].part[j];
        to[2 * j] = ((p[1] - p[0]) * (1 - down) + (p[3] - p[2]) * down) * t.axis[1].slope[j];
        to[2 * j + 1] = ((p[2] - p[0]) * (1 - right) + (p[3] - p[1]) * right) * t.axis[0].slope[j];
    }
}

pc_status PC__R(grid_rows)(const pc__grid_call *g)
{
    enum { STEP = 16 }; /* channels: of a line of the cache no two tasks have a part */
    const int threads = pc__threads(grid_work(g));
    work w = {.g = g, .tables = (g->places + GRID_TABLE - 1) / GRID_TABLE};
    w.group = grid_group(PC__MAX(g->n * g->planes, 1), g->inner, STEP, threads);
    w.groups = (g->inner + w.group - 1) / w.group;
    const size_t numbers = (size_t)(round_up(g->inner, STEP) + threads * w.group);
    w.zeros = pc__alloc_aligned(numbers * sizeof(real), 64);
    if (!w.zeros)
        return PC_ERR_MEMORY;
    memset(w.zeros, 0, numbers * sizeof(real));
    w.rooms = w.zeros + round_up(g->inner, STEP);
    if (g->y)
        pc__parallel(threads, g->n * g->planes * w.tables, read_some, &w);
    if (g->dx)
        pc__parallel(threads, g->n * g->planes * w.groups, add_some, &w);
    if (g->dgrid)
        pc__parallel(threads, g->n * w.tables, slope_some, &w);
    pc__free(w.zeros);
    return PC_OK;
}
