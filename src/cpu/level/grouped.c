/* grouped.c: convolutions with taps apart or channels in groups, by the kernels for those without, one group after another.
 * Windows whose taps lie d apart see every d-th row alone: rows are taken apart by what is left of them modulo d, each lot is
 * a picture of its own whose windows have no gaps, and all these pictures are one batch. */
#include "cpu/level/convolve.h"
#include "cpu/level/real.h"
#include "base/parallel.h"

#include <stdatomic.h>

/* One dimension: row r + lots * m of y is row m of lot r. Its tap k is at row m * stride + k of the lot, which is
 * row dilation * (m * stride + k) + r * step - padding of x. */
typedef struct axis {
    int64_t lots, stride; /* of a lot */
    int64_t made, rows;   /* rows of y and of x in a lot; some are beyond those of the whole */
    int64_t dilation, step, padding, x_rows, y_rows;
    int64_t beside; /* padding of each lot, where all of them have the same: kernels leave out what lies there */
} axis;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static axis axis_of(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
{
    const int64_t divisor = common_divisor(stride, dilation);
    axis a = {.lots = dilation / divisor,
              .stride = stride / divisor,
              .dilation = dilation,
              .step = stride,
              .padding = padding,
              .x_rows = size,
              .y_rows = out};
    a.lots = PC__MAX(PC__MIN(a.lots, out), 1);
    a.made = (out + a.lots - 1) / a.lots;
    a.rows = a.made > 0 ? (a.made - 1) * a.stride + kernel : 0;
    if (out > 0 && padding % dilation == 0 && (stride == 1 || a.lots == 1)) {
        a.beside = padding / dilation, a.padding = 0;
        a.rows = (size + dilation - 1) / dilation;
    }
    return a;
}

/* Where row `i` of lot r lies in the whole picture; -1: beyond it. */
static int64_t x_row(const axis *a, int64_t r, int64_t i)
{
    const int64_t at = a->dilation * i + r * a->step - a->padding;
    return at >= 0 && at < a->x_rows ? at : -1;
}

static int64_t y_row(const axis *a, int64_t r, int64_t m)
{
    const int64_t at = r + a->lots * m;
    return at < a->y_rows ? at : -1;
}

/* The channels of one group of pictures, in lots: whole[n][h][w][all] and lots[n][lots][lots][rows][columns][some]. */
typedef struct pictures {
    const axis *down, *right;
    int64_t (*place)(const axis *a, int64_t r, int64_t i);
    int64_t height, width, all, first, some; /* of the whole; its channels, the group's first one, how many */
    int64_t rows, columns;                   /* of a lot */
    int64_t size;                            /* bytes of an element */
    char *whole, *lots;
    bool back; /* from lots to the whole */
} pictures;

/* One row of a lot. */
static void move_row(void *context, int64_t task)
{
    const pictures *p = context;
    const int64_t row = task % p->rows, lot = task / p->rows, across = lot % p->right->lots,
                  down = lot / p->right->lots % p->down->lots, image = lot / p->right->lots / p->down->lots;
    const int64_t some = p->some * p->size, at = p->place(p->down, down, row);
    char *part = p->lots + task * p->columns * some;
    char *whole = p->whole + ((image * p->height + at) * p->width * p->all + p->first) * p->size;
    for (int64_t i = 0; i < p->columns; i++, part += some) {
        const int64_t column = at < 0 ? -1 : p->place(p->right, across, i);
        if (p->back && column >= 0)
            memcpy(whole + column * p->all * p->size, part, (size_t)some);
        else if (!p->back && column >= 0)
            memcpy(part, whole + column * p->all * p->size, (size_t)some);
        else if (!p->back)
            memset(part, 0, (size_t)some);
    }
}

/* The whole call, and x and y in lots, of one group at a time. */
typedef struct grouped {
    const pc__grouped *s;
    axis down, right;
    pc__conv part;        /* of a group */
    int64_t size, weight; /* bytes of an element, and of a group's weights */
    char *x, *y;          /* lots */
    /* The operands, and what is made. */
    const void *from, *weights, *bias, *gradient;
    void *to;
} grouped;

static grouped grouped_of(const pc__grouped *s)
{
    grouped g = {.s = s,
                 .down = axis_of(s->h, s->oh, s->kh, s->sh, s->ph, s->dh),
                 .right = axis_of(s->w, s->ow, s->kw, s->sw, s->pw, s->dw),
                 .size = s->half ? 2 : (int64_t)sizeof(real)};
    g.part = (pc__conv){.n = s->n * g.down.lots * g.right.lots,
                        .h = g.down.rows,
                        .w = g.right.rows,
                        .c = s->c / s->groups,
                        .o = s->o / s->groups,
                        .kh = s->kh,
                        .kw = s->kw,
                        .sh = g.down.stride,
                        .sw = g.right.stride,
                        .ph = g.down.beside,
                        .pw = g.right.beside,
                        .half = s->half,
                        .is_f16 = s->is_f16};
    g.weight = g.part.o * g.part.c * s->kh * s->kw * g.size;
    return g;
}

static void move(const grouped *g, pictures *p)
{
    p->down = &g->down, p->right = &g->right, p->size = g->size;
    const int64_t tasks = g->part.n * p->rows;
    pc__parallel(pc__threads(tasks * p->columns * p->some * g->size), tasks, move_row, p);
}

static void move_x(const grouped *g, void *whole, int64_t group, bool back)
{
    const pc__grouped *s = g->s;
    move(g, &(pictures){.place = x_row,
                        .height = s->h,
                        .width = s->w,
                        .all = s->c,
                        .first = group * g->part.c,
                        .some = g->part.c,
                        .rows = g->part.h,
                        .columns = g->part.w,
                        .whole = whole,
                        .lots = g->x,
                        .back = back});
}

static void move_y(const grouped *g, void *whole, int64_t group, bool back)
{
    const pc__grouped *s = g->s;
    move(g, &(pictures){.place = y_row,
                        .height = s->oh,
                        .width = s->ow,
                        .all = s->o,
                        .first = group * g->part.o,
                        .some = g->part.o,
                        .rows = g->down.made,
                        .columns = g->right.made,
                        .whole = whole,
                        .lots = g->y,
                        .back = back});
}

/* Without taps apart and groups all is one call. */
static bool is_plain(const pc__grouped *s)
{
    return s->groups == 1 && s->dh == 1 && s->dw == 1;
}

static pc__conv plain(const pc__grouped *s)
{
    return (pc__conv){.n = s->n,
                      .h = s->h,
                      .w = s->w,
                      .c = s->c,
                      .o = s->o,
                      .kh = s->kh,
                      .kw = s->kw,
                      .sh = s->sh,
                      .sw = s->sw,
                      .ph = s->ph,
                      .pw = s->pw,
                      .half = s->half,
                      .is_f16 = s->is_f16};
}

/* What is done of a group, in lots that are its alone. */
typedef pc_status (*group_fn)(const grouped *g, int64_t group);

/* Groups on some threads, or on one, from which each may go to all: there are lots for each of these. */
typedef struct groups {
    const grouped *g;
    group_fn one;
    int64_t group, x, y; /* the group; bytes of lots */
    char *slab;
    _Atomic int *status;
} groups;

static void run_group(void *context, int64_t part)
{
    const groups *all = context;
    (void)part;
    const pc_status status = all->one(all->g, all->group);
    if (status != PC_OK)
        atomic_store(all->status, (int)status);
}

/* Of a thread's number what is called knows nothing: within a call of its own that is 0. */
static void group_task(void *context, int64_t group)
{
    const groups *all = context;
    grouped own = *all->g;
    if (atomic_load(all->status) != PC_OK)
        return;
    own.x = all->slab + pc__thread() * (all->x + all->y), own.y = own.x + all->x;
    groups one = *all;
    one.g = &own, one.group = group;
    pc__parallel(1, 1, run_group, &one);
}

/* Groups of little work share the threads, as to share that of one takes longer; else all threads do one after the other. */
static pc_status each_group(const grouped *g, group_fn one)
{
    enum { LITTLE = 20000000 };
    const pc__conv *p = &g->part;
    const int64_t work = 2 * p->n * g->down.made * g->right.made * p->o * p->c * p->kh * p->kw;
    const int most = pc__threads(work * g->s->groups);
    const int threads = work <= LITTLE && g->s->groups >= most ? most : 1;
    _Atomic int status = PC_OK;
    groups all = {.g = g,
                  .one = one,
                  .x = round_up(p->n * p->h * p->w * p->c * g->size, 64),
                  .y = round_up(p->n * g->down.made * g->right.made * p->o * g->size, 64),
                  .status = &status};
    if (!(all.slab = pc__alloc_aligned((size_t)(threads * (all.x + all.y)) + 1, 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, g->s->groups, group_task, &all);
    pc__free(all.slab);
    if (threads > 1 && status == PC_ERR_MEMORY) /* said on another thread */
        return pc__fail(PC_ERR_MEMORY, "out of memory in a convolution of groups");
    return (pc_status)status;
}

static pc_status forward_group(const grouped *g, int64_t i)
{
    const char *added = g->bias ? (const char *)g->bias + i * g->part.o * g->size : NULL;
    move_x(g, (void *)g->from, i, false);
    PC__TRY(PC__R(conv2d)(&g->part, g->x, (const char *)g->weights + i * g->weight, added, g->y, NULL));
    move_y(g, g->to, i, true);
    return PC_OK;
}

pc_status PC__R(grouped)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y)
{
    const pc__conv whole = plain(s);
    if (is_plain(s))
        return PC__R(conv2d)(&whole, x, weight, bias, y, NULL);
    grouped g = grouped_of(s);
    g.from = x, g.weights = weight, g.bias = bias, g.to = y;
    return each_group(&g, forward_group);
}

static pc_status input_group(const grouped *g, int64_t i)
{
    move_y(g, (void *)g->gradient, i, false);
    PC__TRY(PC__R(conv2d_backward)(&g->part, NULL, (const char *)g->weights + i * g->weight, NULL, NULL, g->y, g->x,
                                   NULL, NULL));
    move_x(g, g->to, i, true);
    return PC_OK;
}

pc_status PC__R(grouped_input)(const pc__grouped *s, const void *weight, const void *dy, void *dx)
{
    const pc__conv whole = plain(s);
    if (is_plain(s))
        return PC__R(conv2d_backward)(&whole, NULL, weight, NULL, NULL, dy, dx, NULL, NULL);
    grouped g = grouped_of(s);
    g.weights = weight, g.gradient = dy, g.to = dx;
    memset(dx, 0, (size_t)(s->n * s->h * s->w * s->c * g.size)); /* some of it is under no tap */
    return each_group(&g, input_group);
}

static pc_status weight_group(const grouped *g, int64_t i)
{
    move_x(g, (void *)g->from, i, false);
    move_y(g, (void *)g->gradient, i, false);
    return PC__R(conv2d_backward)(&g->part, g->x, NULL, NULL, NULL, g->y, NULL, (char *)g->to + i * g->weight, NULL);
}

pc_status PC__R(grouped_weight)(const pc__grouped *s, const void *x, const void *dy, void *dweight)
{
    const pc__conv whole = plain(s);
    if (is_plain(s))
        return PC__R(conv2d_backward)(&whole, x, NULL, NULL, NULL, dy, NULL, dweight, NULL);
    grouped g = grouped_of(s);
    g.from = x, g.gradient = dy, g.to = dweight;
    return each_group(&g, weight_group);
}
