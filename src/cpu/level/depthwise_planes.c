/* depthwise_planes.c: convolutions of each channel alone with a stride of 1, of pictures that lie in C order: neighbouring
 * columns in vectors. Rows of a plane are copied with their padding, one behind the other, so that vectors run over the ends
 * of rows; what they make between two rows is dropped. The gradient of the input is the same with the kernel turned around. */
#include "cpu/level/depthwise.h"

#include "base/parallel.h"

enum {
    VECTORS = 4, /* sums at once */
    ROOM = 6144, /* numbers of a strip, so that it and its sums stay in the first-level cache */
};

/* How strips of rows lie. */
typedef struct strips {
    int64_t pitch;   /* from one row to the next: columns of y and what windows reach beyond */
    int64_t rows;    /* of y in a strip */
    int64_t reach;   /* rows of x more than of y */
    int64_t in, out; /* numbers of a strip of x and of y, and vectors more that are read or written beyond */
} strips;

static strips strips_of(const pc__grouped *s)
{
    strips t = {.pitch = s->ow + (s->kw - 1) * s->dw, .reach = (s->kh - 1) * s->dh};
    t.rows = PC__MAX(PC__MIN(ROOM / PC__MAX(t.pitch, 1) - t.reach, s->oh), 1);
    t.in = round_up((t.rows + t.reach) * t.pitch + (s->kw - 1) * s->dw + VECTORS * W, W);
    t.out = round_up(t.rows * t.pitch + VECTORS * W, W);
    return t;
}

/* Fewer numbers than a vector has, by two copies of a fixed size that lie over each other. */
static inline void copy_few(const real *from, real *to, int64_t count)
{
#define BY(size)                                                                                                       \
    if (n >= size) {                                                                                                   \
        memcpy(to, from, size);                                                                                        \
        memcpy((char *)to + n - size, (const char *)from + n - size, size);                                            \
        return;                                                                                                        \
    }
    const size_t n = (size_t)count * sizeof *to;
    BY(32)
    BY(16)
    BY(8)
    memcpy(to, from, n);
#undef BY
}

/* `count` numbers of rows that lie `from_step` and `to_step` apart. */
static void copy_rows(const real *from, int64_t from_step, real *to, int64_t to_step, int64_t rows, int64_t count)
{
    for (; rows > 0; rows--, from += from_step, to += to_step) {
        int64_t i = 0;
        for (; i + W <= count; i += W)
            AT(to + i) = LOAD(from + i);
        if (i < count && count >= W)
            AT(to + count - W) = LOAD(from + count - W);
        else if (i < count)
            copy_few(from, to, count);
    }
}

/* `rows` rows under row `row` of y, with their padding. Rooms are zero at first, and the padding beside rows stays so. */
static void take_rows(const pc__grouped *s, const strips *t, const real *plane, int64_t row, int64_t rows, real *to)
{
    const int64_t from = PC__MIN(PC__MAX(s->pw, 0), t->pitch), end = PC__MAX(PC__MIN(s->w + s->pw, t->pitch), from);
    const int64_t all = rows + t->reach, top = row - s->ph;
    const int64_t first = PC__MIN(PC__MAX(-top, 0), all), last = PC__MAX(PC__MIN(s->h - top, all), first);
    memset(to, 0, (size_t)(first * t->pitch) * sizeof *to);
    copy_rows(plane + (top + first) * s->w + from - s->pw, s->w, to + first * t->pitch + from, t->pitch, last - first,
              end - from);
    memset(to + last * t->pitch, 0, (size_t)((all - last) * t->pitch) * sizeof *to);
}

typedef struct planes {
    const pc__grouped *s;
    strips t;
    const real *x, *weight, *bias; /* weight[c][kh][kw]; bias may be NULL */
    real *y;
    bool turned; /* the last tap first */
    real *rooms; /* of each thread t.in + t.out numbers */
} planes;

/* `vectors` of y from x on. `step`: from one tap's weight to the next, 1 or -1. */
INLINE void sums_run(const planes *p, const real *x, const real *weight, int64_t step, real bias, real *y,
                     const int vectors)
{
    const pc__grouped *s = p->s;
    vec sum[VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = SPLAT(bias);
    for (int64_t r = 0; r < s->kh; r++) {
        const real *at = x + r * s->dh * p->t.pitch;
        for (int64_t k = 0; k < s->kw; k++, at += s->dw, weight += step) {
            const vec by = SPLAT(*weight);
            UNROLL for (int v = 0; v < vectors; v++) sum[v] += LOAD(at + v * W) * by;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) AT(y + v * W) = sum[v];
}

static void plane_run(void *context, int64_t task)
{
    const planes *p = context;
    const pc__grouped *s = p->s;
    const int64_t channel = task % s->c, taps = s->kh * s->kw, step = p->turned ? -1 : 1;
    const real *weight = p->weight + channel * taps + (p->turned ? taps - 1 : 0), bias = p->bias ? p->bias[channel] : 0;
    real *in = p->rooms + pc__thread() * (p->t.in + p->t.out), *out = in + p->t.in;
    real *to = p->y + task * s->oh * s->ow;
    for (int64_t row = 0; row < s->oh; row += p->t.rows) {
        const int64_t rows = PC__MIN(p->t.rows, s->oh - row), n = (rows - 1) * p->t.pitch + s->ow;
        take_rows(s, &p->t, p->x + task * s->h * s->w, row, rows, in);
        int64_t i = 0;
        for (; i + (VECTORS - 1) * W < n; i += VECTORS * W)
            sums_run(p, in + i, weight, step, bias, out + i, VECTORS);
        if (i + 2 * W < n)
            sums_run(p, in + i, weight, step, bias, out + i, 3);
        else if (i + W < n)
            sums_run(p, in + i, weight, step, bias, out + i, 2);
        else if (i < n)
            sums_run(p, in + i, weight, step, bias, out + i, 1);
        copy_rows(out, p->t.pitch, to + row * s->ow, s->ow, rows, s->ow);
    }
}

/* Rooms of zeros for so many threads. */
static real *rooms_for(const strips *t, int threads)
{
    const size_t size = (size_t)(threads * (t->in + t->out)) * sizeof(real);
    real *rooms = pc__alloc_aligned(size, 64);
    return rooms ? memset(rooms, 0, size) : NULL;
}

static pc_status run(planes *p)
{
    const pc__grouped *s = p->s;
    const int threads = pc__threads(2 * s->n * s->c * s->oh * s->ow * s->kh * s->kw);
    p->t = strips_of(s);
    p->rooms = rooms_for(&p->t, threads);
    if (!p->rooms)
        return PC_ERR_MEMORY;
    pc__parallel(threads, s->n * s->c, plane_run, p);
    pc__free(p->rooms);
    return PC_OK;
}

pc_status PC__R(planes)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y)
{
    return run(&(planes){.s = s, .x = x, .weight = weight, .bias = bias, .y = y});
}

pc_status PC__R(planes_input)(const pc__grouped *s, const void *weight, const void *dy, void *dx)
{
    const pc__grouped t = PC__R(depthwise_turned)(s);
    return run(&(planes){.s = &t, .x = dy, .weight = weight, .y = dx, .turned = true});
}

/* --- of the weights --- */

typedef struct weights {
    const pc__grouped *s;
    strips t;
    const real *x, *dy;
    real *to, *rooms;
} weights;

/* to[k] += the sum of x[i + k * apart] * dy[i] for `taps` k. */
INLINE void add_taps(const real *x, int64_t apart, const real *dy, int64_t n, real *to, const int taps)
{
    vec sum[VECTORS] = {{0}};
    for (int64_t i = 0; i < n; i += W) {
        const vec by = LOAD(dy + i);
        UNROLL for (int k = 0; k < taps; k++) sum[k] += LOAD(x + i + k * apart) * by;
    }
    UNROLL for (int k = 0; k < taps; k++)
    {
        real all = 0;
        for (int lane = 0; lane < W; lane++)
            all += sum[k][lane];
        to[k] += all;
    }
}

static void channel_run(void *context, int64_t channel)
{
    const weights *a = context;
    const pc__grouped *s = a->s;
    real *to = a->to + channel * s->kh * s->kw, *in = a->rooms + pc__thread() * (a->t.in + a->t.out),
         *out = in + a->t.in;
    memset(to, 0, (size_t)(s->kh * s->kw) * sizeof *to);
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t row = 0; row < s->oh; row += a->t.rows) {
            const int64_t plane = n * s->c + channel, rows = PC__MIN(a->t.rows, s->oh - row), all = rows * a->t.pitch;
            take_rows(s, &a->t, a->x + plane * s->h * s->w, row, rows, in);
            copy_rows(a->dy + (plane * s->oh + row) * s->ow, s->ow, out, a->t.pitch, rows, s->ow);
            memset(out + all, 0, (size_t)W * sizeof *out); /* the strip before may have had more rows */
            for (int64_t r = 0; r < s->kh; r++) {
                const real *x = in + r * s->dh * a->t.pitch;
                int64_t k = 0;
                for (; k + VECTORS <= s->kw; k += VECTORS)
                    add_taps(x + k * s->dw, s->dw, out, all, to + r * s->kw + k, VECTORS);
                for (; k < s->kw; k++)
                    add_taps(x + k * s->dw, s->dw, out, all, to + r * s->kw + k, 1);
            }
        }
}

pc_status PC__R(planes_weight)(const pc__grouped *s, const void *x, const void *dy, void *dweight)
{
    weights a = {.s = s, .t = strips_of(s), .x = x, .dy = dy, .to = dweight};
    const int threads = pc__threads(2 * s->n * s->c * s->oh * s->ow * s->kh * s->kw);
    a.rooms = rooms_for(&a.t, threads);
    if (!a.rooms)
        return PC_ERR_MEMORY;
    pc__parallel(threads, s->c, channel_run, &a);
    pc__free(a.rooms);
    return PC_OK;
}
