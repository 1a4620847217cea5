/* conv_crop.c: convolutions of pictures so small that some taps lie on padding at every place: 8 of 9 for a 3 x 3 kernel over one
 * padded pixel, which is where deep networks end. Those taps give nothing and get nothing, so the kernels work on the others. */
#include "cpu/level/conv.h"
#include "cpu/level/each.h"
#include "base/parallel.h"

/* Rows (or columns) [first, first + kept) of the kernel are on the picture somewhere. */
typedef struct taps {
    int64_t first, kept;
} taps;

/* Padding stays the same on both sides, so taps are only dropped where the places are as many as before. */
static taps taps_on(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t padding)
{
    const taps all = {0, kernel};
    taps t = {.first = PC__MAX(padding - (out - 1) * stride, 0)};
    t.kept = PC__MIN(kernel, size + padding) - t.first;
    const int64_t beside = size + 2 * (padding - t.first) - t.kept;
    return out > 0 && t.kept > 0 && beside >= 0 && beside / stride + 1 == out ? t : all;
}

/* Weights of the kernel that is left, or their gradient, from and to those of the whole one. */
typedef struct crop {
    const pc__conv *s;
    taps down, right;
    int64_t size; /* bytes of an element */
    char *whole, *part;
    bool back; /* from the part to the whole, zero elsewhere */
} crop;

/* Kernels of one output: those of its channels side by side, tap by tap, or one of all channels where they come last. */
static void crop_output(void *context, int64_t o)
{
    const crop *c = context;
    const pc__conv *s = c->s;
    const int64_t pixel = (s->weights_last ? s->c : 1) * c->size, kernels = s->weights_last ? 1 : s->c;
    const int64_t whole_kernel = s->kh * s->kw * pixel, part_kernel = c->down.kept * c->right.kept * pixel;
    char *whole = c->whole + o * kernels * whole_kernel, *part = c->part + o * kernels * part_kernel;
    if (c->back)
        memset(whole, 0, (size_t)(kernels * whole_kernel));
    for (int64_t tap = 0; tap < c->down.kept * c->right.kept; tap++, part += pixel) {
        const int64_t row = c->down.first + tap / c->right.kept, column = c->right.first + tap % c->right.kept;
        char *at = whole + (row * s->kw + column) * pixel;
        const int64_t n = s->c, whole_step = s->weights_last ? c->size : whole_kernel,
                      part_step = s->weights_last ? c->size : part_kernel;
        pc__move(c->back ? at : part, c->back ? whole_step : part_step, c->back ? part : at,
                 c->back ? part_step : whole_step, n, (size_t)c->size);
    }
}

static void move_all(const crop *c)
{
    const int64_t moved = c->s->o * c->s->c * c->s->kh * c->s->kw * c->size;
    pc__parallel(pc__threads(4 * moved), c->s->o, crop_output, (void *)c);
}

/* False where no tap can go. Else *inner is the convolution that is left. */
static bool crops(const pc__conv *s, crop *c, pc__conv *inner)
{
    *c = (crop){.s = s, .size = s->half ? 2 : (int64_t)sizeof(real)};
    c->down = taps_on(s->h, pc__conv_oh(s), s->kh, s->sh, s->ph);
    c->right = taps_on(s->w, pc__conv_ow(s), s->kw, s->sw, s->pw);
    *inner = *s;
    inner->kh = c->down.kept, inner->kw = c->right.kept;
    inner->ph -= c->down.first, inner->pw -= c->right.first;
    return s->c > 0 && (inner->kh < s->kh || inner->kw < s->kw);
}

static char *room_for(const pc__conv *inner, int64_t size)
{
    return pc__alloc_aligned((size_t)(inner->o * inner->c * inner->kh * inner->kw * size), 64);
}

pc_status PC__R(conv2d)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                        uint8_t *argmax)
{
    crop c;
    pc__conv inner;
    if (!crops(s, &c, &inner))
        return PC__R(conv2d_ordered)(s, x, weight, bias, y, argmax);
    c.whole = (char *)weight, c.part = room_for(&inner, c.size);
    if (!c.part)
        return PC_ERR_MEMORY;
    move_all(&c);
    const pc_status status = PC__R(conv2d_ordered)(&inner, x, c.part, bias, y, argmax);
    pc__free(c.part);
    return status;
}

/* dx comes from the weights that are left before the same room takes their gradient. */
pc_status PC__R(conv2d_backward)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias)
{
    crop c;
    pc__conv inner;
    if (!crops(s, &c, &inner))
        return PC__R(conv2d_backward_ordered)(s, x, weight, y, argmax, dy, dx, dweight, dbias);
    c.part = room_for(&inner, c.size);
    if (!c.part)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    if (dx) {
        c.whole = (char *)weight;
        move_all(&c);
        status = PC__R(conv2d_backward_ordered)(&inner, NULL, c.part, y, argmax, dy, dx, NULL, NULL);
    }
    if (status == PC_OK && (dweight || dbias))
        status = PC__R(conv2d_backward_ordered)(&inner, x, NULL, y, argmax, dy, NULL, dweight ? c.part : NULL, dbias);
    if (status == PC_OK && dweight) {
        c.whole = dweight, c.back = true;
        move_all(&c);
    }
    pc__free(c.part);
    return status;
}
