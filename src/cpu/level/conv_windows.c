/* conv_windows.c: the windows of a convolution as the rows of a matrix, in the order of the weights, copied out of pictures and added
 * back to them. */
#include "cpu/level/conv.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

typedef struct windows {
    const geometry *g;
    const char *x;
    char *dx, *windows;
    char *rooms; /* of each thread: `room` bytes */
    int64_t room;
} windows;

/* Taps [*from, *end) of a window that begins at row (or column) `at` lie on the picture. */
static void inside(int64_t at, int64_t size, int64_t kernel, int64_t *from, int64_t *end)
{
    *from = PC__MIN(PC__MAX(-at, 0), kernel);
    *end = PC__MAX(PC__MIN(size - at, kernel), *from);
}

/* Windows are turned from [kh][kw][c] to [c][kh][kw]. */
static bool turns(const pc__conv *s)
{
    return !s->weights_last && s->kh * s->kw > 1;
}

/* The window of one place, [kh][kw][c]; zeros beyond the image. */
static void take_window(const geometry *g, const char *image, int64_t y, int64_t x, char *to)
{
    const pc__conv *s = g->s;
    const int64_t top = y * s->sh - s->ph, left = x * s->sw - s->pw, pixel = s->c * g->size, row = g->run * g->size;
    int64_t from, end;
    inside(left, s->w, s->kw, &from, &end);
    for (int64_t r = 0; r < s->kh; r++, to += row) {
        if (top + r < 0 || top + r >= s->h || from == end) {
            memset(to, 0, (size_t)row);
            continue;
        }
        memset(to, 0, (size_t)(from * pixel));
        memcpy(to + from * pixel, image + ((top + r) * s->w + left + from) * pixel, (size_t)((end - from) * pixel));
        memset(to + end * pixel, 0, (size_t)(row - end * pixel));
    }
}

static void take_task(void *context, int64_t i)
{
    const windows *w = context;
    const geometry *g = w->g;
    const pc__conv *s = g->s;
    const int64_t area = g->yh * g->yw, taps = s->kh * s->kw;
    char *to = w->windows + i * g->out * g->size, *own = w->rooms + pc__thread() * w->room;
    take_window(g, w->x + i / area * s->h * s->w * s->c * g->size, i % area / g->yw, i % g->yw, turns(s) ? own : to);
    if (turns(s))
        pc__turn(to, taps * g->size, own, s->c * g->size, taps, s->c, (size_t)g->size);
}

/* The pixels of an image under a window [kh][kw][c] += it. */
static void add_window(const geometry *g, const real *window, int64_t y, int64_t x, real *image)
{
    const pc__conv *s = g->s;
    const int64_t top = y * s->sh - s->ph, left = x * s->sw - s->pw;
    int64_t from, end;
    inside(left, s->w, s->kw, &from, &end);
    for (int64_t r = 0; r < s->kh; r++, window += g->run) {
        if (top + r < 0 || top + r >= s->h)
            continue;
        real *to = image + ((top + r) * s->w + left + from) * s->c;
        for (int64_t i = 0; i < (end - from) * s->c; i++)
            to[i] += window[from * s->c + i];
    }
}

static void add_task(void *context, int64_t n)
{
    const windows *w = context;
    const geometry *g = w->g;
    const pc__conv *s = g->s;
    const int64_t area = g->yh * g->yw, taps = s->kh * s->kw, count = s->h * s->w * s->c, size = sizeof(real);
    real *own = (real *)(w->rooms + pc__thread() * w->room), *turned = s->half ? own + count : own;
    char *to = w->dx + n * count * g->size;
    real *image = s->half ? own : (real *)to;
    memset(image, 0, (size_t)(count * size));
    for (int64_t i = 0; i < area; i++) {
        const real *window = (const real *)w->windows + (n * area + i) * g->out;
        if (turns(s))
            pc__turn((char *)turned, s->c * size, (const char *)window, taps * size, s->c, taps, sizeof(real));
        add_window(g, turns(s) ? turned : window, i / g->yw, i % g->yw, image);
    }
    if (s->half)
        give_reals(g, to, image, count);
}

/* `picture`: each thread has room for one. */
static pc_status run(windows *w, int64_t tasks, pc__part_fn part, bool picture)
{
    const geometry *g = w->g;
    const pc__conv *s = g->s;
    const int most = pc__threads(8 * s->n * g->yh * g->yw * g->out * (int64_t)sizeof(real));
    const int64_t threads = PC__MIN(most, tasks);
    const int64_t numbers = (turns(s) ? g->out : 0) + (picture ? s->h * s->w * s->c : 0);
    w->room = round_up(numbers * (int64_t)sizeof(real), 64);
    w->rooms = pc__alloc_aligned((size_t)(threads * w->room + 1), 64);
    if (!w->rooms)
        return PC_ERR_MEMORY;
    pc__parallel((int)threads, tasks, part, w);
    pc__free(w->rooms);
    return PC_OK;
}

pc_status PC__R(take_windows)(const geometry *g, const void *x, void *to)
{
    return run(&(windows){.g = g, .x = x, .windows = to}, g->s->n * g->yh * g->yw, take_task, false);
}

pc_status PC__R(add_windows)(const geometry *g, const real *from, void *dx)
{
    return run(&(windows){.g = g, .dx = dx, .windows = (char *)from}, g->s->n, add_task, g->s->half);
}
