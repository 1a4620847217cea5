/* mandelbrot.c: counts of steps under z = z * z + c (ops/mandelbrot.h says what must be kept, and which ways out are
 * allowed). A group of neighbouring points of a row goes together: WAYS vectors, because a step waits three additions
 * and multiplications long for the one before it, and other vectors fill that time. The build takes fused
 * multiply-add away from this file. */
#include "ops/mandelbrot.h"

#include "cpu/level/lessons.h"

#include <math.h>

typedef double vector __attribute__((vector_size(PC__VECTOR_BYTES)));
typedef int64_t mask __attribute__((vector_size(PC__VECTOR_BYTES))); /* lanes of all ones or zeros; or counts */
typedef int64_t quarter_mask __attribute__((vector_size(32)));
typedef int64_t pair_mask __attribute__((vector_size(16)));
typedef int32_t narrow_mask __attribute__((vector_size(PC__VECTOR_BYTES / 2)));

#define LANES ((int)(PC__VECTOR_BYTES / sizeof(double)))
#define WAYS (PC__VECTOR_REGISTERS >= 32 ? 3 : 2)
#define GROUP (WAYS * LANES)

enum {
    LOOK = 4,         /* steps between two looks at whether anybody is left */
    COUNTED = 32,     /* steps that are counted one by one: most that leave do so by then */
    BLOCK = 8,        /* steps at once after that */
    SAFE_TENTHS = 39, /* |c|^2 below a tenth of this: what has left does not come back */
    PIXELS_A_PIECE = 1536
};

typedef struct group {
    vector cr[WAYS], ci, zr[WAYS], zi[WAYS];
    vector was_r[WAYS], was_i[WAYS]; /* an earlier z, to see whether it comes again */
    mask alive[WAYS], count[WAYS];
} group;

static inline bool is_any(const mask *m)
{
    mask joined = m[0];
    for (int w = 1; w < WAYS; w++)
        joined |= m[w];
#if PC__VECTOR_BYTES >= 64 /* halves first: compilers would take lane by lane */
    const quarter_mask four =
        __builtin_shufflevector(joined, joined, 0, 1, 2, 3) | __builtin_shufflevector(joined, joined, 4, 5, 6, 7);
#elif PC__VECTOR_BYTES >= 32
    const quarter_mask four = joined;
#endif
#if PC__VECTOR_BYTES >= 32
    const pair_mask two = __builtin_shufflevector(four, four, 0, 1) | __builtin_shufflevector(four, four, 2, 3);
#else
    const pair_mask two = joined;
#endif
    return (two[0] | two[1]) != 0;
}

/* z = z * z + c, and |z|^2 of the z before. */
static inline vector step(vector cr, vector ci, vector *zr, vector *zi)
{
    const vector rr = *zr * *zr, ii = *zi * *zi, ri = *zr * *zi;
    *zr = rr - ii + cr;
    *zi = ri + ri + ci;
    return rr + ii;
}

static inline void count_step(group *g)
{
    for (int w = 0; w < WAYS; w++) {
        g->alive[w] &= step(g->cr[w], g->ci, &g->zr[w], &g->zi[w]) < 4;
        g->count[w] -= g->alive[w];
    }
}

/* BLOCK steps without looking. False, and nothing has changed, when somebody left on the way. */
static bool skip_steps(group *g)
{
    group at = *g;
    mask left[WAYS];
    for (int k = 0; k < BLOCK; k++)
        for (int w = 0; w < WAYS; w++)
            (void)step(at.cr[w], at.ci, &at.zr[w], &at.zi[w]);
    for (int w = 0; w < WAYS; w++) {
        left[w] = at.alive[w] & ~(at.zr[w] * at.zr[w] + at.zi[w] * at.zi[w] < 4);
        at.count[w] -= at.alive[w] * BLOCK;
    }
    if (is_any(left))
        return false;
    *g = at;
    return true;
}

/* c in the heart or in the disc to the left of it, less their rims. */
static inline mask is_inside(vector cr, vector ci)
{
    const vector x = PC__MANDELBROT_RIM * cr - 0.25, y = PC__MANDELBROT_RIM * ci, q = x * x + y * y;
    return (q * (q + x) < 0.25 * y * y) | ((cr + 1) * (cr + 1) + ci * ci < PC__MANDELBROT_DISC);
}

/* Points that are where they were before stay for ever. */
static void look_for_cycles(group *g, int iterations)
{
    const mask full = (mask){} + iterations;
    for (int w = 0; w < WAYS; w++) {
        const mask stay = g->alive[w] & (g->zr[w] == g->was_r[w]) & (g->zi[w] == g->was_i[w]);
        g->count[w] = (stay & full) | (~stay & g->count[w]);
        g->alive[w] &= ~stay;
    }
}

static bool is_safe(const group *g)
{
    mask wide[WAYS];
    for (int w = 0; w < WAYS; w++)
        wide[w] = ~(g->cr[w] * g->cr[w] + g->ci * g->ci < SAFE_TENTHS / 10.0);
    return !is_any(wide);
}

/* The way of those that are still there after COUNTED steps. */
static void go_on(group *g, int iterations)
{
    const bool safe = is_safe(g);
    int next = COUNTED; /* when to remember z: at powers of two */
    for (int done = COUNTED; is_any(g->alive) && done < iterations;) {
        if (done >= next) {
            for (int w = 0; w < WAYS; w++)
                g->was_r[w] = g->zr[w], g->was_i[w] = g->zi[w];
            next *= 2;
        }
        const int steps = PC__MIN(BLOCK, iterations - done);
        if (steps < BLOCK || !safe || !skip_steps(g))
            for (int k = 0; k < steps; k++)
                count_step(g);
        done += steps;
        look_for_cycles(g, iterations);
    }
}

/* All steps of a group whose c are set. */
static inline void run(group *g, int iterations)
{
    for (int w = 0; w < WAYS; w++) {
        const mask inside = is_inside(g->cr[w], g->ci);
        g->zr[w] = g->cr[w];
        g->zi[w] = g->ci;
        g->alive[w] = ~inside;
        g->count[w] = inside & iterations;
    }
    int left = PC__MIN(iterations, COUNTED);
    for (; is_any(g->alive) && left >= LOOK; left -= LOOK)
        for (int k = 0; k < LOOK; k++)
            count_step(g);
    for (; left > 0 && left < LOOK; left--)
        count_step(g);
    if (iterations > COUNTED && is_any(g->alive)) {
        group at = *g; /* the other stays in registers */
        go_on(&at, iterations);
        *g = at;
    }
}

typedef struct picture {
    const pc__mandelbrot_attributes *a;
    char *data;
    pc_dtype dtype;
    int64_t height, width, pieces; /* pieces of a row */
    int64_t mirror;
} picture;

/* How far out the point has got with a few steps more, as a fraction of a step. */
static float fraction(double cr, double ci, int count)
{
    double zr = cr, zi = ci;
    for (int k = 0; k < count + PC__MANDELBROT_MORE; k++) {
        const double rr = zr * zr, ii = zi * zi, ri = zr * zi;
        zr = rr - ii + cr;
        zi = ri + ri + ci;
    }
    const double steps = count + PC__MANDELBROT_MORE + 1 - log2(0.5 * log2(zr * zr + zi * zi));
    return (float)PC__MAX(steps, 0);
}

static void put(const picture *p, const group *g, int64_t row, int64_t column)
{
    const int64_t at = row * p->width + column;
    const int n = (int)PC__MIN(GROUP, p->width - column);
    int32_t counts[GROUP];
    for (int w = 0; w < WAYS; w++) {
        const narrow_mask four = __builtin_convertvector(g->count[w], narrow_mask);
        memcpy(counts + w * LANES, &four, sizeof four);
    }
    if (p->dtype == PC_I32)
        memcpy((int32_t *)(void *)p->data + at, counts, (size_t)n * sizeof *counts);
    for (int i = 0; p->dtype == PC_U8 && i < n; i++)
        ((uint8_t *)p->data)[at + i] = (uint8_t)counts[i];
    for (int i = 0; p->dtype == PC_F32 && i < n; i++)
        ((float *)(void *)p->data)[at + i] = counts[i] == p->a->iterations
                                                 ? (float)counts[i]
                                                 : fraction(g->cr[i / LANES][i % LANES], g->ci[0], counts[i]);
}

static double ordinate(const picture *p, int64_t row)
{
    return p->a->y_min + (double)row * p->a->dy;
}

/* Columns from..to of a row. */
static void count_row(const picture *p, int64_t row, int64_t from, int64_t to)
{
    vector lanes;
    for (int l = 0; l < LANES; l++)
        lanes[l] = l;
    group g;
    g.ci = (vector){} + ordinate(p, row);
    for (int64_t column = from; column < to; column += GROUP) {
        for (int w = 0; w < WAYS; w++)
            g.cr[w] = p->a->x_min + ((double)(column + w * LANES) + lanes) * p->a->dx;
        run(&g, p->a->iterations);
        put(p, &g, row, column);
    }
}

/* A piece of a row, and of the one that it may be the mirror image of. */
static void piece(void *context, int64_t index)
{
    const picture *p = context;
    const int64_t row = PC__MANDELBROT_ROW(p->mirror, index / p->pieces), other = p->mirror - row;
    const int64_t from = index % p->pieces * PIXELS_A_PIECE, to = PC__MIN(from + PIXELS_A_PIECE, p->width);
    const size_t size = pc_dtype_size(p->dtype);
    count_row(p, row, from, to);
    if (other <= row || other >= p->height)
        return;
    if (ordinate(p, other) == -ordinate(p, row))
        memcpy(p->data + (size_t)(other * p->width + from) * size, p->data + (size_t)(row * p->width + from) * size,
               (size_t)(to - from) * size);
    else
        count_row(p, other, from, to);
}

PC__LESSON_KERNEL(mandelbrot)
{
    const pc_op_view *out = run->out;
    picture p = {.a = run->attributes,
                 .data = out->data,
                 .dtype = out->dtype,
                 .height = out->shape[0],
                 .width = out->shape[1],
                 .pieces = (out->shape[1] + PIXELS_A_PIECE - 1) / PIXELS_A_PIECE};
    p.mirror = pc__mandelbrot_mirror(p.a, p.height);
    const int64_t rows = pc__mandelbrot_rows(p.mirror, p.height);
    pc__parallel(pc__threads(rows * p.width * 100), rows * p.pieces, piece, &p);
    return PC_OK;
}
