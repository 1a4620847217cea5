/* conv_product.c: forward convolution of few places: a product of their windows, which are copied out of the pictures, and
 * of the weights as they lie, which to pack would take as long as to multiply. */
#include "cpu/level/conv.h"
#include "cpu/level/turn.h"

enum {
    PLACES_MOST = 64, /* more pay for packed weights */
    OUTPUTS = 4,      /* at least so many for each place */
};

bool PC__R(conv2d_is_product)(const pc__conv *s)
{
    const int64_t places = s->n * pc__conv_yh(s) * pc__conv_yw(s);
    return s->pool <= 1 && places <= PLACES_MOST && s->o >= OUTPUTS * places;
}

/* The window of one place, [kh][kw][c]; zeros beyond the image. */
static void take_window(const geometry *g, const char *image, int64_t y, int64_t x, char *to)
{
    const pc__conv *s = g->s;
    const int64_t top = y * s->sh - s->ph, left = x * s->sw - s->pw, pixel = s->c * g->size, row = g->run * g->size;
    const int64_t from = PC__MIN(PC__MAX(-left, 0), s->kw), end = PC__MAX(PC__MIN(s->w - left, s->kw), from);
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

/* Windows of all places in the order of the weights, the room of one behind them. */
static void take_windows(const geometry *g, const void *x, char *to)
{
    const pc__conv *s = g->s;
    const int64_t area = g->yh * g->yw, places = s->n * area, window = g->out * g->size;
    char *room = to + places * window;
    for (int64_t i = 0; i < places; i++, to += window) {
        const char *image = element(g, x, i / area * s->h * s->w * s->c);
        take_window(g, image, i % area / g->yw, i % g->yw, s->weights_last ? to : room);
        if (!s->weights_last)
            pc__turn(to, s->kh * s->kw * g->size, room, s->c * g->size, s->kh * s->kw, s->c, (size_t)g->size);
    }
}

pc_status PC__R(conv2d_product)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y)
{
    const geometry g = geometry_of(s);
    pc__gemm product = {.m = s->n * g.yh * g.yw,
                        .n = s->o,
                        .k = g.out,
                        .a_rs = g.out,
                        .a_cs = 1,
                        .b = weight,
                        .b_rs = 1,
                        .b_cs = g.out,
                        .c = y,
                        .c_rs = s->o,
                        .c_cs = 1,
                        .bias = bias,
                        .activation = s->activation};
    char *windows = pc__alloc_aligned((size_t)((product.m + 1) * g.out * g.size), 64);
    if (!windows)
        return PC_ERR_MEMORY;
    take_windows(&g, x, windows);
    product.a = windows;
#ifdef PC__DOUBLE
    const pc_status status = PC__R(gemm)(&product);
#else
    const pc_status status = s->half ? PC__K(gemm_half)(&product, s->is_f16, false) : PC__R(gemm)(&product);
#endif
    pc__free(windows);
    return status;
}
