/* planar.c: how pictures become planes (planar.h). */
#include "cpu/level/planar.h"
#include "cpu/level/turn.h"

static int64_t divided_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

bool planar_taps_of(const planar_axis *a, int64_t r, int64_t i, planar_taps *t)
{
    const int64_t divisor = common_divisor(a->stride, a->dilation), step = a->stride / divisor;
    const int64_t next = a->dilation / divisor, most = PC__MIN(step, a->kernel);
    if (!a->back) {
        const int64_t at = i * a->dilation;
        *t = (planar_taps){i, step, 0, at % a->stride, at / a->stride, next};
    } else {
        int64_t k = 0;
        while (k < most && (r + a->padding - k * a->dilation) % a->stride)
            k++;
        *t = (planar_taps){k, step, 0, 0, (r + a->padding - k * a->dilation) / a->stride - a->start, -next};
    }
    if (t->first >= most || (a->back && i > 0))
        return false;
    t->count = (a->kernel - t->first + step - 1) / step;
    return true;
}

planar_axis planar_axis_of(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           bool back)
{
    planar_axis a = {.kernel = kernel,
                     .stride = stride,
                     .padding = padding,
                     .dilation = dilation,
                     .back = back,
                     .size = back ? out : size,
                     .out = back ? size : out,
                     .lots = back ? 1 : stride,
                     .out_lots = back ? stride : 1};
    const int64_t last = (kernel - 1) * dilation;
    a.start = back ? -divided_down(last - padding, stride) : -padding;
    a.reach = back ? (padding + stride - 1) / stride - a.start : last / stride;
    a.made = (a.out + a.out_lots - 1) / a.out_lots;
    for (int i = 0; i < PLANAR_KNOWN; i++)
        if (!planar_taps_of(&a, back ? i % stride : 0, back ? 0 : i, &a.known[i]))
            a.known[i].count = 0;
    return a;
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

void planar_copy(const real *from, int64_t from_step, real *to, int64_t to_step, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, from += from_step, to += to_step) {
        int64_t i = 0;
        for (; i + W <= n; i += W)
            AT(to + i) = LOAD(from + i);
        if (i < n && n >= W)
            AT(to + n - W) = LOAD(from + n - W);
        else if (i < n)
            copy_few(from, to, n);
    }
}

/* rows x n numbers of one channel, every step-th of each row. */
static void take_rows(const real *from, int64_t from_row, int64_t step, real *to, int64_t to_row, int64_t rows,
                      int64_t n)
{
    if (step == 1)
        planar_copy(from, from_row, to, to_row, rows, n);
    else if (step == 2)
        for (; rows > 0; rows--, from += from_row, to += to_row)
            for (int64_t i = 0; i < n; i++)
                to[i] = from[2 * i];
    else
        for (; rows > 0; rows--, from += from_row, to += to_row)
            for (int64_t i = 0; i < n; i++)
                to[i] = from[i * step];
}

/* Of a row of pixels every step-th one, to a plane of each of its channels. */
static void take_pixels(const geometry *g, const char *from, int64_t step, int64_t channels, int64_t n, real *to,
                        int64_t next, real *room)
{
    const int64_t size = g->size;
    if (!g->s->half) {
        pc__turn((char *)to, next * size, from, step * size, n, channels, (size_t)size);
        return;
    }
    pc__turn((char *)room, n * size, from, step * size, n, channels, (size_t)size);
    for (int64_t c = 0; c < channels; c++)
        take_reals(g, to + c * next, (char *)room + c * n * size, n);
}

/* Places [from, end) of lot q that lie on the picture, of `count` from place `first` on. */
static void find_there(const planar_axis *a, int64_t q, int64_t first, int64_t count, int64_t *from, int64_t *end)
{
    const int64_t at = a->start + q + first * a->lots, more = a->lots - 1;
    *from = at < 0 ? PC__MIN(a->lots == 1 ? -at : (more - at) / a->lots, count) : 0;
    *end = at < a->size ? PC__MIN(a->lots == 1 ? a->size - at : (a->size - at + more) / a->lots, count) : 0;
    *end = PC__MAX(*from, *end);
}

/* The lots of rows q and columns k. */
static void fill_lot(const geometry *g, const planar_side *s, int64_t image, int64_t first, int64_t channels,
                     int64_t row, int64_t rows, int64_t q, int64_t k, real *to, real *room)
{
    const planar_axis *down = &s->down, *right = &s->right;
    const int64_t next = planar_numbers(s), pixel = s->planes ? 1 : s->channels, together = s->planes ? 1 : channels;
    int64_t top, bottom, from, end;
    find_there(down, q, row, rows, &top, &bottom);
    find_there(right, k, 0, s->across, &from, &end);
    for (int64_t c = 0; c < channels; c += together, to += together * next) {
        for (int64_t i = 0; i < together; i++) {
            if (top)
                memset(to + i * next, 0, (size_t)(top * s->across) * sizeof *to);
            if (bottom < rows)
                memset(to + i * next + bottom * s->across, 0, (size_t)((rows - bottom) * s->across) * sizeof *to);
        }
        if (from >= end || top >= bottom)
            continue;
        const int64_t h = down->start + q + (row + top) * down->lots, w = right->start + k + from * right->lots;
        const int64_t at = s->planes ? ((image * s->channels + first + c) * down->size + h) * right->size + w
                                     : ((image * down->size + h) * right->size + w) * pixel + first;
        const char *in = (const char *)s->data + at * g->size;
        real *place = to + top * s->across + from;
        const int64_t apart = down->lots * right->size;
        if (s->planes && g->s->half)
            take_reals(g, room, in, (bottom - top - 1) * apart + (end - from - 1) * right->lots + 1);
        if (s->planes)
            take_rows(g->s->half ? room : (const real *)(const void *)in, apart, right->lots, place, s->across,
                      bottom - top, end - from);
        for (int64_t u = top; u < bottom && !s->planes; u++, in += apart * pixel * g->size, place += s->across)
            take_pixels(g, in, right->lots * pixel, channels, end - from, place, next, room);
    }
}

void planar_fill(const geometry *g, const planar_side *s, int64_t image, int64_t first, int64_t channels, int64_t row,
                 int64_t rows, real *to, real *room)
{
    planar_taps h = {.lot = 0}, w = {.lot = 0};
    for (int64_t i = 0; s->down.lots > 1 ? planar_taps_at(&s->down, 0, i, &h) : i < 1; i++)
        for (int64_t k = 0; s->right.lots > 1 ? planar_taps_at(&s->right, 0, k, &w) : k < 1; k++)
            fill_lot(g, s, image, first, channels, row, rows, h.lot, w.lot,
                     to + (h.lot * s->right.lots + w.lot) * s->plane, room);
}
