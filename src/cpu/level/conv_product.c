/* conv_product.c: convolutions as products of the windows of all places with the weights as they lie:
 *
 *     y = windows weight^T        dweight = dy^T windows        dx = the windows dy weight, added up where they overlap
 *
 * For places so few that to pack the weights would take as long as to multiply; for pictures so small that a row of places fills no
 * tile; for weights of bfloat16, of which a product makes pairs; and for dx under a stride, where no convolution leads back. Where a
 * kernel is one tap, the pictures are the windows. */
#include "cpu/level/conv.h"
#include "cpu/level/pairs.h"

enum {
    PLACES_MOST = 64, /* more pay for packed weights */
    OUTPUTS = 4,      /* at least so many for each place */
    COLUMNS_MOST = 2, /* of y; more fill a tile */
    DOTS_OUTPUTS = 5, /* of one tap: a vector of inputs is multiplied for each, */
    DOTS_HALVES = 3,  /* of 16 bits, */
    DOTS_INPUTS = 64, /* which are so many at least */
    DOTS_MANY = 2,    /* and so many vectors for each output, as the product asks (gemm.c) */
    DOTS_PLACES = 9,  /* of a picture, whose planes would be a vector or less */
    PAIRS_OUTPUTS = 32,
    PAIRS_INPUTS = 24,
    SUMS_PLACES = 400,
    SUMS_LEAST = 1 << 17,
    OUTPUTS_LEAST = 24,     /* each number of a window that is copied is multiplied with so many */
    WINDOWS_MOST = 4 << 20, /* bytes at once, */
    PICTURE_MOST = 4,       /* but up to so many times that of one picture */
};

static int64_t places_of(const pc__conv *s)
{
    return s->n * pc__conv_yh(s) * pc__conv_yw(s);
}

static bool one_tap(const pc__conv *s)
{
    return s->kh * s->kw == 1 && s->sh == 1 && s->sw == 1 && s->ph == 0 && s->pw == 0;
}

/* The pictures are the windows, in the order of the weights: of one tap, or of one place that has all of a picture under it. */
bool PC__R(conv2d_windows_lie)(const pc__conv *s)
{
    const bool whole = s->kh == s->h && s->kw == s->w && s->ph == 0 && s->pw == 0;
    return (one_tap(s) && !s->x_planes) || (whole && (s->c == 1 || s->x_planes != s->weights_last));
}

/* So few outputs that a window is multiplied with each of them along its own length. */
static bool has_dots(const pc__conv *s)
{
    const int64_t window = s->kh * s->kw * s->c,
                  windows = places_of(s) * window * (s->half ? 2 : (int64_t)sizeof(real));
    if (s->o > (s->half ? DOTS_HALVES : DOTS_OUTPUTS) || window < DOTS_INPUTS)
        return false;
    if (!one_tap(s))
        return pc__conv_yh(s) * pc__conv_yw(s) <= DOTS_PLACES &&
               (windows <= WINDOWS_MOST || PC__R(conv2d_windows_lie)(s));
    return 2 * s->o <= W || s->c >= DOTS_MANY * W * s->o;
}

bool PC__R(conv2d_is_product)(const pc__conv *s)
{
    return s->pool <= 1 && (has_dots(s) || (places_of(s) <= PLACES_MOST && s->o >= OUTPUTS * places_of(s)));
}

/* 16-bit gradients before an activation would have to be rounded once more. */
static bool multiplies(const pc__conv *s)
{
    const int64_t picture = pc__conv_yh(s) * pc__conv_yw(s) * s->kh * s->kw * s->c * (int64_t)sizeof(real);
    return s->pool <= 1 && s->o >= OUTPUTS_LEAST && picture <= PICTURE_MOST * WINDOWS_MOST &&
           (s->activation == PC__ACT_NONE || !s->half);
}

/* Pairs of bfloat16, of which places lie side by side in a product alone; and sums so many that chunks of few places have too many. */
bool PC__R(conv2d_weights_are_product)(const pc__conv *s)
{
    const bool pairs = s->half && !s->is_f16 && s->o >= PAIRS_OUTPUTS && s->c >= PAIRS_INPUTS && pc__has_pairs();
    const bool many = places_of(s) <= SUMS_PLACES && s->o * s->kh * s->kw * s->c >= SUMS_LEAST;
    return multiplies(s) && (pc__conv_yw(s) <= COLUMNS_MOST || pairs || many);
}

bool PC__R(conv2d_input_is_product)(const pc__conv *s)
{
    return multiplies(s) && (pc__conv_yw(s) <= COLUMNS_MOST || s->sh > 1 || s->sw > 1 || places_of(s) <= PLACES_MOST);
}

/* `wide`: 16-bit factors have a product of reals. */
static pc_status multiply(const pc__conv *s, const pc__gemm *product, bool wide)
{
#ifndef PC__DOUBLE
    if (s->half)
        return PC__K(gemm_half)(product, s->is_f16, wide);
#endif
    (void)s, (void)wide;
    return PC__R(gemm)(product);
}

pc_status PC__R(conv2d_product)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y)
{
    const geometry g = geometry_of(s);
    pc__gemm product = {.m = places_of(s),
                        .n = s->o,
                        .k = g.out,
                        .a = x,
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
    if (PC__R(conv2d_windows_lie)(s))
        return multiply(s, &product, false);
    char *windows = pc__alloc_aligned((size_t)(product.m * g.out * g.size), 64);
    if (!windows)
        return PC_ERR_MEMORY;
    product.a = windows;
    pc_status status = PC__R(take_windows)(&g, x, windows);
    if (status == PC_OK)
        status = multiply(s, &product, false);
    pc__free(windows);
    return status;
}

/* Some pictures, whose windows have room at once. */
typedef struct part {
    geometry g;
    const void *x, *dy;
    void *dx, *windows;
} part;

/* dweight (+)= dy^T windows; `wide`: of reals, whatever the factors are. */
static pc_status add_weights(const part *p, bool add, void *dweight, bool wide)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    const pc__gemm product = {.m = s->o,
                              .n = g->out,
                              .k = places_of(s),
                              .a = p->dy,
                              .a_rs = 1,
                              .a_cs = s->o,
                              .b = one_tap(s) ? p->x : p->windows,
                              .b_rs = g->out,
                              .b_cs = 1,
                              .c = dweight,
                              .c_rs = g->out,
                              .c_cs = 1,
                              .accumulate = add};
    if (!one_tap(s))
        PC__TRY(PC__R(take_windows)(g, p->x, p->windows));
    return multiply(s, &product, wide);
}

static pc_status input(const part *p, const void *weight)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    const pc__gemm product = {.m = places_of(s),
                              .n = g->out,
                              .k = s->o,
                              .a = p->dy,
                              .a_rs = s->o,
                              .a_cs = 1,
                              .b = weight,
                              .b_rs = g->out,
                              .b_cs = 1,
                              .c = one_tap(s) ? p->dx : p->windows,
                              .c_rs = g->out,
                              .c_cs = 1};
    PC__TRY(multiply(s, &product, !one_tap(s)));
    return one_tap(s) ? PC_OK : PC__R(add_windows)(g, p->windows, p->dx);
}

/* Pictures [first, first + n.n) of the call. */
static part part_of(const geometry *g, pc__conv *some, int64_t first, const void *x, const void *dy, void *dx)
{
    const pc__conv *s = g->s;
    const int64_t picture = s->h * s->w * s->c;
    part p = {.g = *g, .x = element(g, x, first * picture), .dx = (void *)element(g, dx, first * picture)};
    p.dy = element(g, dy, first * g->yh * g->yw * s->o);
    p.g.s = some;
    return p;
}

pc_status PC__R(conv2d_backward_product)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                         const void *dy, void *dx, void *dweight)
{
    const geometry g = geometry_of(s);
    const bool cut = s->activation != PC__ACT_NONE;
    const int64_t picture = g.yh * g.yw * g.out * (int64_t)sizeof(real), count = places_of(s) * s->o;
    pc__conv some = *s;
    some.n = one_tap(s) ? s->n : PC__MIN(PC__MAX(WINDOWS_MOST / PC__MAX(picture, 1), 1), s->n);
    const int64_t step = PC__MAX(some.n, 1), windows = one_tap(s) ? 0 : round_up(step * picture, 64);
    const int64_t weights = s->o * g.out;
    const bool wide = s->half && dweight && step < s->n; /* sums of several products are rounded once */
    const int64_t behind = (cut ? count : 0) + (wide ? weights : 0);
    char *room = pc__alloc_aligned((size_t)(windows + behind * (int64_t)sizeof(real) + 1), 64);
    if (!room)
        return PC_ERR_MEMORY;
    real *after = (real *)(void *)(room + windows);
    if (cut) {
        copy_all(&g, dy, s->activation, y, count, after);
        dy = after, after += count;
    }
    pc_status status = PC_OK;
    for (int64_t i = 0; i < PC__MAX(s->n, 1) && status == PC_OK; i += step) {
        some.n = PC__MIN(step, s->n - i);
        part p = part_of(&g, &some, i, x, dy, dx);
        p.windows = room;
        if (dweight)
            status = add_weights(&p, i > 0, wide ? after : dweight, wide);
        if (status == PC_OK && dx)
            status = input(&p, weight);
    }
    if (wide)
        give_reals(&g, dweight, after, weights);
    pc__free(room);
    return status;
}
