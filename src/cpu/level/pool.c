/* pool.c: maximum and average pooling over channels-last pictures. A task is some rows of y. Vectors of channels stay in
 * registers; of fewer channels vectors are those of neighbouring windows, or of one and what lies behind it. `rows` is where the
 * picture's rows under the windows begin. */
#include "cpu/level/pool.h"

enum { CHANNELS = 4 }; /* vectors of them at once */

/* Averages are of sums down each column of a window, whatever the number of channels: so each channel has the bits that it
 * would have alone. */
INLINE void average_some(const pc__pool *s, const real *x, int64_t rows, int64_t columns, real scale, real *y,
                         const int vectors)
{
    const int64_t down = s->w * s->c;
    vec sum[CHANNELS];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = (vec){0};
    for (int64_t j = 0; j < columns; j++) {
        const real *from = x + j * s->c;
        vec column[CHANNELS];
        UNROLL for (int v = 0; v < vectors; v++) column[v] = LOAD(from + v * W);
        for (int64_t i = 1; i < rows; i++)
            UNROLL for (int v = 0; v < vectors; v++) column[v] += LOAD(from + i * down + v * W);
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += column[v];
    }
    UNROLL for (int v = 0; v < vectors; v++) AT(y + v * W) = sum[v] * scale;
}

/* The last channels lie over their neighbours. */
static void average_vectors(const pc__pool *s, const real *rows, range h, range w, real *y)
{
    const real scale = window_scale(s, h, w), *x = rows + w.from * s->c;
    int64_t c = 0;
    for (; c + CHANNELS * W <= s->c; c += CHANNELS * W)
        average_some(s, x + c, h.to - h.from, w.to - w.from, scale, y + c, CHANNELS);
    for (; c < s->c; c += W) {
        const int64_t at = PC__MIN(c, s->c - W);
        average_some(s, x + at, h.to - h.from, w.to - w.from, scale, y + at, 1);
    }
}

/* Of less than a vector of channels: what lies behind them is read, too. */
static void average_few(const pc__pool *s, const real *rows, range h, range w, real *y)
{
    real made[W];
    average_some(s, rows + w.from * s->c, h.to - h.from, w.to - w.from, window_scale(s, h, w), made, 1);
    memcpy(y, made, (size_t)s->c * sizeof *y);
}

typedef int32_t places __attribute__((vector_size(W * sizeof(int32_t))));
typedef int32_t places_in_memory __attribute__((vector_size(W * sizeof(int32_t)), aligned(4), may_alias));

/* The maxima of a vector of channels of one window, and where they are. */
INLINE void max_some(const pc__pool *s, const real *rows, range h, range w, real *y, int32_t *place)
{
    vec most = SPLAT(-INFINITY);
    lanes best = (lanes){0} + (pc__lane_int)(h.from * s->w + w.from);
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const vec x = LOAD(rows + ((i - h.from) * s->w + j) * s->c);
            const lanes more = (x > most) | (x != x), here = (lanes){0} + (pc__lane_int)(i * s->w + j);
            most = choose(more, x, most);
            best = (more & here) | (~more & best);
        }
    AT(y) = most;
    if (place)
        *(places_in_memory *)place = __builtin_convertvector(best, places);
}

static void max_vectors(const pc__pool *s, const real *rows, range h, range w, real *y, int32_t *place)
{
    for (int64_t c = 0; c < s->c; c += W) {
        const int64_t at = PC__MIN(c, s->c - W);
        max_some(s, rows + at, h, w, y + at, place ? place + at : NULL);
    }
}

static void max_few(const pc__pool *s, const real *rows, range h, range w, real *y, int32_t *place)
{
    real most[W];
    int32_t best[W];
    max_some(s, rows, h, w, most, best);
    memcpy(y, most, (size_t)s->c * sizeof *y);
    if (place)
        memcpy(place, best, (size_t)s->c * sizeof *place);
}

enum {
    TOGETHER = 256, /* elements of neighbouring windows, */
    SPAN = 1024,    /* and of rows under them */
    FIXED = 8,      /* channels that the compiler keeps in registers */
};

/* Windows [first, first + count) of a row of y, none of which is cut at its sides. */
typedef struct windows {
    const pc__pool *s;
    const real *rows;
    range h; /* which these are */
    int64_t first, count;
    int64_t left, width; /* of rows: pixels in front of the picture's first one, and all */
} windows;

/* The first place of the first window. */
static const real *corner_of(const windows *w)
{
    return w->rows + (w->first * w->s->sw - w->s->pw + w->left) * w->s->c;
}

/* How vectors go over windows: those of neighbours have theirs side by side; others of few channels are gathered, or for
 * averages taken one by one; else each window takes a vector, beyond whose channels is what the next one writes over. */
typedef struct walk {
    int64_t step, stride; /* of results, and of what is under them */
    bool gathers;
} walk;

static walk walk_of(const pc__pool *s)
{
    if (s->sw > 1 && 4 * s->c <= W)
        return (walk){W, 0, true};
    return s->sw > 1 ? (walk){s->c, s->sw * s->c, false} : (walk){W, W, false};
}

/* Where the channels of each window begin, from those of the first; beyond the last one 0. */
static void find_starts(const windows *w, int32_t *starts)
{
    const pc__pool *s = w->s;
    const int64_t n = w->count * s->c;
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++)
            starts[i * s->c + c] = (int32_t)(i * s->sw * s->c + c);
    for (int64_t i = n; i < n + W; i++)
        starts[i] = 0;
}

INLINE vec pixels_at(const real *x, bool gathers, const int32_t *starts)
{
    real all[W];
    if (!gathers)
        return LOAD(x);
    for (int i = 0; i < W; i++)
        all[i] = x[starts[i]];
    return LOAD(all);
}

static inline __attribute__((always_inline)) void add(real *restrict sum, const real *restrict x, const int c)
{
    for (int k = 0; k < c; k++)
        sum[k] += x[k];
}

/* Not unrolled: gcc makes vectors of a loop of comparisons, but branches of single ones. */
static inline __attribute__((always_inline)) void greatest(real *restrict most, const real *restrict x, const int c)
{
#pragma GCC unroll 1
    for (int k = 0; k < c; k++)
        most[k] = ((x[k] > most[k]) | (x[k] != x[k])) ? x[k] : most[k];
}

/* Channels whose number the compiler knows stay in registers for all places of a window. */
static inline __attribute__((always_inline)) void windows_of(const windows *w, real *restrict y, const int c,
                                                             const bool average)
{
    const pc__pool *s = w->s;
    const real scale = average ? window_scale(s, w->h, (range){0, s->kw, s->kw}) : 1;
    for (int64_t i = 0; i < w->count; i++) {
        const real *restrict x = corner_of(w) + i * s->sw * c;
        real got[FIXED], down[FIXED];
        for (int k = 0; k < c; k++)
            got[k] = average ? 0 : -INFINITY;
        for (int64_t column = 0; column < s->kw; column++, x += c) {
            for (int k = 0; k < c; k++)
                down[k] = 0;
            for (int64_t row = 0; row < w->h.to - w->h.from; row++)
                average ? add(down, x + row * w->width * c, c) : greatest(got, x + row * w->width * c, c);
            if (average)
                add(got, down, c);
        }
        for (int k = 0; k < c; k++)
            y[i * c + k] = average ? got[k] * scale : got[k];
    }
}

static void fixed_windows(const windows *w, real *y, bool average)
{
    average ? windows_of(w, y, FIXED, true) : windows_of(w, y, FIXED, false);
}

INLINE vec greater(vec x, vec most)
{
    return choose((x > most) | (x != x), x, most);
}

/* The columns of windows over a line that rows have become. */
INLINE void join_columns(const windows *w, const real *line, real *restrict y, const bool average)
{
    const pc__pool *s = w->s;
    const walk by = walk_of(s);
    const int64_t n = w->count * s->c;
    const real scale = average ? window_scale(s, w->h, (range){0, s->kw, s->kw}) : 1;
    real made[TOGETHER + W];
    int32_t starts[TOGETHER + W];
    if (by.gathers)
        find_starts(w, starts);
    for (int64_t at = 0; at < n; at += by.step, line += by.stride) {
        vec got = average ? (vec){0} : pixels_at(line, by.gathers, starts + at);
        for (int64_t column = !average; column < s->kw; column++) {
            const vec next = pixels_at(line + column * s->c, by.gathers, starts + at);
            got = average ? got + next : greater(next, got);
        }
        AT(made + at) = average ? got * scale : got;
    }
    memcpy(y, made, (size_t)n * sizeof *y);
}

/* Averages of few channels where windows are no neighbours, each by itself. */
static void average_apart(const windows *w, const real *line, real *restrict y)
{
    const pc__pool *s = w->s;
    const real scale = window_scale(s, w->h, (range){0, s->kw, s->kw});
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++) {
            const real *from = line + i * s->sw * s->c + c;
            real sum = 0;
            for (int64_t column = 0; column < s->kw; column++)
                sum += from[column * s->c];
            y[i * s->c + c] = sum * scale;
        }
}

/* Where nobody asks for places, rows become one first. */
INLINE void join_windows(const windows *w, real *restrict y, const bool average)
{
    const pc__pool *s = w->s;
    const int64_t span = ((w->count - 1) * s->sw + s->kw) * s->c;
    const real *x = corner_of(w);
    real line[SPAN + W];
    for (int64_t i = 0; i < span; i += W) {
        vec all = average ? (vec){0} : (vec)LOAD(x + i);
        for (int64_t row = !average; row < w->h.to - w->h.from; row++) {
            const vec next = LOAD(x + row * w->width * s->c + i);
            all = average ? all + next : greater(next, all);
        }
        AT(line + i) = all;
    }
    if (average && walk_of(s).gathers)
        average_apart(w, line, y);
    else
        join_columns(w, line, y, average);
}

static void average_windows(const windows *w, real *y)
{
    join_windows(w, y, true);
}

static void greatest_windows(const windows *w, real *y)
{
    join_windows(w, y, false);
}

static void max_windows(const windows *w, real *restrict y, int32_t *restrict place)
{
    const pc__pool *s = w->s;
    const walk by = walk_of(s);
    const int64_t made = w->count * s->c;
    const real *x = corner_of(w);
    real most[TOGETHER + W];
    int32_t best[TOGETHER + W], starts[TOGETHER + W];
    pc__lane_int corners[TOGETHER + W]; /* columns where windows begin */
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++)
            corners[i * s->c + c] = (pc__lane_int)((w->first + i) * s->sw - s->pw);
    for (int64_t i = made; i < made + W; i++)
        corners[i] = 0;
    if (by.gathers)
        find_starts(w, starts);
    for (int64_t at = 0; at < made; at += by.step, x += by.stride) {
        const lanes corner = *(const lanes_in_memory *)(corners + at);
        vec largest = SPLAT(-INFINITY);
        lanes found = (lanes){0} + (pc__lane_int)(w->h.from * s->w) + (corner & (corner > 0));
        for (int64_t row = w->h.from; row < w->h.to; row++)
            for (int64_t column = 0; column < s->kw; column++) {
                const vec next = pixels_at(x + ((row - w->h.from) * w->width + column) * s->c, by.gathers, starts + at);
                const lanes more = (next > largest) | (next != next);
                largest = choose(more, next, largest);
                found = (more & (corner + (pc__lane_int)(row * s->w + column))) | (~more & found);
            }
        AT(most + at) = largest;
        *(places_in_memory *)(best + at) = __builtin_convertvector(found, places);
    }
    memcpy(y, most, (size_t)made * sizeof *y);
    memcpy(place, best, (size_t)made * sizeof *place);
}

/* Pixels beside rows of few channels, of which none is greater: then no window is cut. */
static int64_t pixels_right(const pc__pool *s)
{
    return PC__MAX((pc__pool_ow(s) - 1) * s->sw + s->kw - s->pw - s->w, 0);
}

static bool is_padded(const pc__pool *s, bool average)
{
    return !average && s->c < W && s->kw * s->c <= SPAN && (s->pw > 0 || pixels_right(s) > 0);
}

/* Windows of a row of y, one by one, or those together that may be: the first of them, how many. `fixed`: by fixed_windows. */
static int64_t together(const pc__pool *s, int64_t at, int64_t ow, bool padded, bool fixed)
{
    const int64_t room = s->w + s->pw - s->kw,
                  inner = padded     ? ow
                          : room < 0 ? 0
                                     : room / s->sw + 1;    /* from here on they are cut at the right */
    const int64_t most = (SPAN / s->c - s->kw) / s->sw + 1; /* fit */
    if ((s->c >= W && !fixed) || (!padded && at * s->sw < s->pw) || at >= inner)
        return 1;
    return PC__MAX(PC__MIN(PC__MIN(inner, ow) - at, PC__MIN(TOGETHER / s->c, most)), 1);
}

/* The rows under a row of y, which a vector may reach beyond where it holds more than the channels. */
static const real *rows_of(const pooling *p, int64_t at, range h, bool padded, int64_t width, real *room)
{
    const pc__pool *s = p->s;
    const int64_t size = s->w * s->c, left = s->pw * s->c, n = (h.to - h.from) * size;
    if (!padded) {
        const real *from = take(p, at, n, room);
        const bool last = s->c < W && at + n + W > s->n * s->h * size;
        return from != room && last ? memcpy(room, from, (size_t)n * sizeof *room) : from;
    }
    for (int64_t i = 0; i < (h.to - h.from); i++) {
        real *row = room + i * width * s->c, *to = row + left;
        const real *from = take(p, at + i * size, size, to);
        if (from != to)
            memcpy(to, from, (size_t)size * sizeof *to);
        for (int64_t k = 0; k < left; k++)
            row[k] = -INFINITY;
        for (int64_t k = left + size; k < width * s->c; k++)
            row[k] = -INFINITY;
    }
    return room;
}

static void pool_row(const pooling *p, int64_t row, bool average)
{
    const pc__pool *s = p->s;
    const bool padded = is_padded(s, average);
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s), size = s->w * s->c;
    const int64_t width = padded ? s->pw + s->w + pixels_right(s) : s->w;
    const bool fixed = s->c == FIXED && sizeof(real) == sizeof(float) && !p->argmax; /* doubles would take as long */
    const range h = inside(row % oh, s->sh, s->kh, s->ph, s->h);
    real *room = p->rooms + pc__thread() * p->size,
         *out = s->half ? room + s->kh * width * s->c : (real *)p->to + row * ow * s->c;
    const real *rows = rows_of(p, (row / oh * s->h + h.from) * size, h, padded, width, room);
    for (int64_t j = 0, count; j < ow; j += count) {
        real *y = out + j * s->c;
        int32_t *place = p->argmax ? p->argmax + (row * ow + j) * s->c : NULL;
        count = together(s, j, ow, padded, fixed);
        const range w = inside(j, s->sw, s->kw, s->pw, s->w);
        const bool several = count > 1 || padded;
        if (!several && s->c >= W) {
            average ? average_vectors(s, rows, h, w, y) : max_vectors(s, rows, h, w, y, place);
            continue;
        }
        const windows some = {s, rows, h, j, count, padded ? s->pw : 0, width};
        if (several && fixed)
            fixed_windows(&some, y, average);
        else if (several && average)
            average_windows(&some, y);
        else if (several && place)
            max_windows(&some, y, place);
        else if (several)
            greatest_windows(&some, y);
        else if (average)
            average_few(s, rows, h, w, y);
        else
            max_few(s, rows, h, w, y, place);
    }
    if (s->half)
        give(p, row * ow * s->c, ow * s->c, out);
}

static void some_rows(const pooling *p, int64_t task, bool average)
{
    const int64_t end = PC__MIN((task + 1) * p->together, p->s->n * pc__pool_oh(p->s));
    for (int64_t row = task * p->together; row < end; row++)
        pool_row(p, row, average);
}

static void max_rows(void *context, int64_t task)
{
    some_rows(context, task, false);
}

static void average_rows(void *context, int64_t task)
{
    some_rows(context, task, true);
}

static pc_status all_rows(pooling *p, bool average)
{
    enum { PART = 8192 }; /* elements under the windows of a task */
    const pc__pool *s = p->s;
    const bool padded = is_padded(s, average);
    const int64_t under = s->kh * (s->w + (padded ? s->pw + pixels_right(s) : 0)) * s->c;
    p->together = PC__MAX(PART / PC__MAX(s->kh * s->w * s->c, 1), 1);
    const int64_t tasks = (s->n * pc__pool_oh(s) + p->together - 1) / p->together;
    return pool_run(p,
                    s->half    ? under + pc__pool_ow(s) * s->c + W
                    : s->c < W ? under + W
                               : 0,
                    tasks, average ? average_rows : max_rows);
}

pc_status PC__R(max_pool2d)(const pc__pool *s, const void *x, void *y, int32_t *argmax)
{
#ifndef PC__DOUBLE
    if (s->half && !argmax)
        return pc__max_pool2d_keys(s, x, y);
#endif
    return all_rows(&(pooling){.s = s, .from = x, .to = y, .argmax = argmax}, false);
}

pc_status PC__R(avg_pool2d)(const pc__pool *s, const void *x, void *y)
{
    return all_rows(&(pooling){.s = s, .from = x, .to = y}, true);
}
