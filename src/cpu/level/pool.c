/* pool.c: maximum and average pooling over channels-last pictures. A task is some rows of y. Vectors of channels stay in
 * registers; where there are fewer channels, loops go over those of neighbouring windows. `rows` is where the picture's rows
 * under the windows begin. */
#include "cpu/level/pool.h"

#include "cpu/level/each.h"

enum { CHANNELS = 4 }; /* vectors of them at once */

/* y[c] = the maximum of one window, place[c] = where it is. */
static void max_window(const pc__pool *s, const real *rows, range h, range w, real *restrict y, int32_t *restrict place)
{
    for (int64_t c = 0; c < s->c; c++)
        y[c] = -INFINITY;
    for (int64_t c = 0; place && c < s->c; c++)
        place[c] = (int32_t)(h.from * s->w + w.from);
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const int32_t here = (int32_t)(i * s->w + j);
            const real *restrict x = rows + ((i - h.from) * s->w + j) * s->c;
            if (!place) {
                for (int64_t c = 0; c < s->c; c++)
                    y[c] = ((x[c] > y[c]) | (x[c] != x[c])) ? x[c] : y[c];
                continue;
            }
            for (int64_t c = 0; c < s->c; c++) {
                const bool more = (x[c] > y[c]) | (x[c] != x[c]);
                y[c] = more ? x[c] : y[c];
                place[c] = more ? here : place[c];
            }
        }
}

/* Averages are of sums down each column of a window, whatever the number of channels: so each channel has the bits that it
 * would have alone. */
static void average_window(const pc__pool *s, const real *rows, range h, range w, real *restrict y)
{
    const real scale = window_scale(s, h, w);
    for (int64_t c = 0; c < s->c; c++) {
        real sum = 0;
        for (int64_t j = w.from; j < w.to; j++) {
            real column = 0;
            for (int64_t i = 0; i < h.to - h.from; i++)
                column += rows[(i * s->w + j) * s->c + c];
            sum += column;
        }
        y[c] = sum * scale;
    }
}

/* The same of vectors of channels, which stay in registers. */
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

static void max_vectors(const pc__pool *s, const real *rows, range h, range w, real *y, int32_t *place)
{
    typedef int32_t places __attribute__((vector_size(W * sizeof(int32_t)), aligned(4), may_alias));
    for (int64_t c = 0; c < s->c; c += W) {
        const int64_t at = PC__MIN(c, s->c - W);
        vec most = SPLAT(-INFINITY);
        lanes best = (lanes){0} + (pc__lane_int)(h.from * s->w + w.from);
        for (int64_t i = h.from; i < h.to; i++)
            for (int64_t j = w.from; j < w.to; j++) {
                const vec x = LOAD(rows + ((i - h.from) * s->w + j) * s->c + at);
                const lanes more = (x > most) | (x != x), here = (lanes){0} + (pc__lane_int)(i * s->w + j);
                most = choose(more, x, most);
                best = (more & here) | (~more & best);
            }
        AT(y + at) = most;
        if (place)
            *(places *)(place + at) = __builtin_convertvector(best, places);
    }
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
    bool roomy;          /* they are a copy that a vector may reach beyond */
} windows;

/* The first place of the first window. */
static const real *corner_of(const windows *w)
{
    return w->rows + (w->first * w->s->sw - w->s->pw + w->left) * w->s->c;
}

/* One place of all windows, side by side: at `from` itself where windows are neighbours, else copied to `room`. */
static const real *taken(const windows *w, const real *from, real *room)
{
    const pc__pool *s = w->s;
    const int64_t size = sizeof(real), step = s->c * size;
    const bool by_channels = s->sw > 1 && s->c < W;
    for (int64_t c = 0; by_channels && c < s->c; c++)
        pc__move((char *)(room + c), step, (const char *)(from + c), s->sw * step, w->count, sizeof(real));
    for (int64_t i = 0; s->sw > 1 && !by_channels && i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++)
            room[i * s->c + c] = from[i * s->sw * s->c + c];
    return s->sw > 1 ? room : from;
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

/* False: the number of channels is not that, or they are doubles, for which these kernels would not pay. */
static bool fixed_windows(const windows *w, real *y, bool average)
{
    if (w->s->c != FIXED || sizeof(real) != sizeof(float))
        return false;
    average ? windows_of(w, y, FIXED, true) : windows_of(w, y, FIXED, false);
    return true;
}

/* to = the greater of both, or what is no number. */
INLINE void keep_greatest(real *restrict to, const real *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = ((x[i] > to[i]) | (x[i] != x[i])) ? x[i] : to[i];
}

/* Where nobody asks for places, rows become one first. */
static void greatest_windows(const windows *w, real *restrict y)
{
    const pc__pool *s = w->s;
    const int64_t n = w->count * s->c, span = ((w->count - 1) * s->sw + s->kw) * s->c;
    real most[SPAN], room[TOGETHER];
    const real *x = corner_of(w);
    memcpy(most, x, (size_t)span * sizeof *most);
    for (int64_t row = w->h.from + 1; row < w->h.to; row++)
        keep_greatest(most, x += w->width * s->c, span);
    memcpy(y, taken(w, most, room), (size_t)n * sizeof *y);
    for (int64_t column = 1; column < s->kw; column++)
        keep_greatest(y, taken(w, most + column * s->c, room), n);
}

/* In whole vectors, where what is behind the windows may be read. */
static void max_windows(const windows *w, real *restrict y, int32_t *restrict place)
{
    const pc__pool *s = w->s;
    const int64_t made = w->count * s->c, n = w->roomy || s->sw > 1 ? round_up(made, W) : made;
    real room[TOGETHER], most[TOGETHER];
    int32_t corner[TOGETHER], where[TOGETHER];
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++)
            corner[i * s->c + c] = (int32_t)((w->first + i) * s->sw - s->pw);
    for (int64_t i = made; i < n; i++)
        corner[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        most[i] = -INFINITY;
        where[i] = (int32_t)(w->h.from * s->w) + PC__MAX(corner[i], 0);
    }
    for (int64_t row = w->h.from; row < w->h.to; row++)
        for (int64_t column = 0; column < s->kw; column++) {
            const real *restrict x = taken(w, corner_of(w) + ((row - w->h.from) * w->width + column) * s->c, room);
            const int32_t here = (int32_t)(row * s->w + column);
            for (int64_t i = 0; i < n; i++) {
                const bool more = (x[i] > most[i]) | (x[i] != x[i]);
                where[i] = more ? corner[i] + here : where[i];
                most[i] = more ? x[i] : most[i];
            }
        }
    memcpy(y, most, (size_t)made * sizeof *y);
    memcpy(place, where, (size_t)made * sizeof *place);
}

/* Rows are added to one first. */
static void average_windows(const windows *w, real *restrict y)
{
    const pc__pool *s = w->s;
    const int64_t span = ((w->count - 1) * s->sw + s->kw) * s->c;
    const real scale = window_scale(s, w->h, (range){0, s->kw, s->kw}), *x = corner_of(w);
    real sums[SPAN];
    memset(sums, 0, (size_t)span * sizeof *sums);
    for (int64_t row = w->h.from; row < w->h.to; row++, x += s->w * s->c)
        for (int64_t i = 0; i < span; i++)
            sums[i] += x[i];
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++) {
            const real *from = sums + i * s->sw * s->c + c;
            real sum = 0;
            for (int64_t column = 0; column < s->kw; column++)
                sum += from[column * s->c];
            y[i * s->c + c] = sum * scale;
        }
}

/* Pixels beside rows of few channels, of which none is greater: then no window is cut. */
static int64_t pixels_right(const pc__pool *s)
{
    return PC__MAX((pc__pool_ow(s) - 1) * s->sw + s->kw - s->pw - s->w, 0);
}

static bool is_padded(const pc__pool *s, bool average)
{
    return !average && s->c < W && (s->pw > 0 || pixels_right(s) > 0);
}

/* Windows of a row of y, one by one, or those together that may be: the first of them, how many. */
static int64_t together(const pc__pool *s, int64_t at, int64_t ow, bool padded)
{
    const int64_t room = s->w + s->pw - s->kw,
                  inner = padded     ? ow
                          : room < 0 ? 0
                                     : room / s->sw + 1;    /* from here on they are cut at the right */
    const int64_t most = (SPAN / s->c - s->kw) / s->sw + 1; /* fit */
    if ((s->c >= W && s->c != FIXED) || (!padded && at * s->sw < s->pw) || at >= inner)
        return 1;
    return PC__MAX(PC__MIN(PC__MIN(inner, ow) - at, PC__MIN(TOGETHER / s->c, most)), 1);
}

/* The rows under a row of y. */
static const real *rows_of(const pooling *p, int64_t at, range h, bool padded, int64_t width, real *room)
{
    const pc__pool *s = p->s;
    const int64_t size = s->w * s->c, left = s->pw * s->c;
    if (!padded)
        return take(p, at, (h.to - h.from) * size, room);
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
    const range h = inside(row % oh, s->sh, s->kh, s->ph, s->h);
    real *room = p->rooms + pc__thread() * p->size,
         *out = s->half ? room + s->kh * width * s->c : (real *)p->to + row * ow * s->c;
    const real *rows = rows_of(p, (row / oh * s->h + h.from) * size, h, padded, width, room);
    for (int64_t j = 0, count; j < ow; j += count) {
        real *y = out + j * s->c;
        int32_t *place = p->argmax ? p->argmax + (row * ow + j) * s->c : NULL;
        count = together(s, j, ow, padded);
        const range w = inside(j, s->sw, s->kw, s->pw, s->w);
        const bool several = count > 1 || padded;
        if (!several && s->c >= W) {
            average ? average_vectors(s, rows, h, w, y) : max_vectors(s, rows, h, w, y, place);
            continue;
        }
        const windows some = {s, rows, h, j, count, padded ? s->pw : 0, width, padded || s->half};
        if (several && !place && fixed_windows(&some, y, average))
            continue;
        if (average && several)
            average_windows(&some, y);
        else if (average)
            average_window(s, rows, h, w, y);
        else if (several && place)
            max_windows(&some, y, place);
        else if (several)
            greatest_windows(&some, y);
        else
            max_window(s, rows, h, w, y, place);
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
                    s->half  ? under + pc__pool_ow(s) * s->c + W
                    : padded ? under + W
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
