/* planar_weight.c: gradients of weights by planes (planar.h): each is the sum of products of two planes, places side by side. */
#include "cpu/level/planar.h"
#include "base/parallel.h"

enum {
    TAPS = 4, /* of an output's weights at once */
    OUTPUTS = PC__VECTOR_REGISTERS == 32 ? 4 : 2,
    TASKS = 16,                            /* enough not to cut the batch */
    WHOLE = sizeof(real) == sizeof(float), /* layers, with bias and activation */
};

typedef struct planar {
    const pc__grouped *s;
    geometry g;
    planar_side x, y, after; /* `after`: values of the activation behind y, where there is one */
    int64_t c, o, taps;      /* of a group; weights of an output */
    int64_t groups, blocks;  /* that are done together; how many such blocks */
    int64_t images, chunks;  /* of a task; that the batch is cut into */
    int64_t rows;
    int64_t in, out, room, all; /* numbers of a strip of x, of y, of planar_fill, and of all that a thread has */
    int64_t *places;            /* in the planes of x, of each weight of an output: [taps, rounded up to TAPS] */
    real *rooms, *sums;         /* of each thread; [chunks][weights] */
    real *bias;                 /* [chunks][outputs], or NULL */
} planar;

/* to[r][k] += the sum of x[i + places[k]] * y[r][i] */
INLINE void add_products(const real *x, const int64_t *places, const real *y, int64_t y_step, int64_t n, real *to,
                         int64_t to_step, int64_t taps, const int outputs)
{
    vec sum[OUTPUTS][TAPS];
    const real *at[TAPS];
    UNROLL for (int k = 0; k < TAPS; k++) at[k] = x + places[k];
    UNROLL for (int r = 0; r < outputs; r++) UNROLL for (int k = 0; k < TAPS; k++) sum[r][k] = (vec){0};
    for (int64_t i = 0; i < n; i += W) {
        vec in[TAPS];
        UNROLL for (int k = 0; k < TAPS; k++) in[k] = LOAD(at[k] + i);
        UNROLL for (int r = 0; r < outputs; r++)
        {
            const vec by = LOAD(y + r * y_step + i);
            UNROLL for (int k = 0; k < TAPS; k++) sum[r][k] += in[k] * by;
        }
    }
    for (int r = 0; r < outputs; r++) {
        real all[TAPS];
        four_sums(sum[r], all);
        for (int64_t k = 0; k < taps; k++)
            to[r * to_step + k] += all[k];
    }
}

/* The weights of one group, from its planes. */
static void add_group(const planar *p, const real *x, const real *y, int64_t n, real *to)
{
    for (int64_t k = 0; k < p->taps; k += TAPS) {
        const int64_t taps = PC__MIN(p->taps - k, TAPS), step = planar_numbers(&p->y);
        int64_t o = 0;
        for (; o + OUTPUTS <= p->o; o += OUTPUTS)
            add_products(x, p->places + k, y + o * step, step, n, to + o * p->taps + k, p->taps, taps, OUTPUTS);
        for (; o < p->o; o++)
            add_products(x, p->places + k, y + o * step, step, n, to + o * p->taps + k, p->taps, taps, 1);
    }
}

static real plane_sum(const real *y, int64_t n)
{
    vec even = {0}, odd = {0};
    for (int64_t i = 0; i < n; i += W) {
        const vec next = even + LOAD(y + i);
        even = odd, odd = next;
    }
    even += odd;
    return vector_sum(&even);
}

/* A strip of y, as gradients before the activation, of `outputs` outputs from `first` on; numbers past its end are zero. */
static void fill_y(const planar *p, int64_t image, int64_t first, int64_t outputs, int64_t row, int64_t rows, real *y,
                   real *room, real *bias)
{
    const int64_t n = rows * p->x.across, plane = p->y.plane;
    const pc__activation activation = WHOLE ? p->s->activation : PC__ACT_NONE;
    planar_fill(&p->g, &p->y, image, first, outputs, row, rows, y, room);
    if (activation != PC__ACT_NONE)
        planar_fill(&p->g, &p->after, image, first, outputs, row, rows, y + p->out, room);
    for (int64_t o = 0; o < outputs; o++, y += plane) {
        if (activation != PC__ACT_NONE)
            before_activation(activation, y, y + p->out, n);
        memset(y + n, 0, (size_t)PC__MIN(W, plane - n) * sizeof *y); /* the strip before may have had more rows */
        if (WHOLE && bias)
            bias[o] += plane_sum(y, n);
    }
}

static void chunk_task(void *context, int64_t task)
{
    const planar *p = context;
    const pc__grouped *s = p->s;
    const int64_t group = task % p->blocks * p->groups, chunk = task / p->blocks,
                  groups = PC__MIN(p->groups, s->groups - group);
    const int64_t end = PC__MIN((chunk + 1) * p->images, s->n), weights = p->o * p->taps;
    real *to = p->sums + (chunk * s->groups + group) * weights;
    real *bias = p->bias ? p->bias + chunk * s->o + group * p->o : NULL;
    real *x = p->rooms + pc__thread() * p->all, *y = x + p->in, *room = x + p->all - p->room;
    memset(to, 0, (size_t)(groups * weights) * sizeof *to);
    if (WHOLE && bias)
        memset(bias, 0, (size_t)(groups * p->o) * sizeof *bias);
    for (int64_t image = chunk * p->images; image < end; image++)
        for (int64_t row = 0; row < s->oh; row += p->rows) {
            const int64_t rows = PC__MIN(p->rows, s->oh - row), n = rows * p->x.across;
            planar_fill(&p->g, &p->x, image, group * p->c, groups * p->c, row, rows + p->x.down.reach, x, room);
            fill_y(p, image, group * p->o, groups * p->o, row, rows, y, room, bias);
            for (int64_t i = 0; i < groups; i++)
                add_group(p, x + i * p->c * planar_numbers(&p->x), y + i * p->o * p->y.plane, n, to + i * weights);
        }
}

/* Where in a group's planes the weights of an output lie over place 0. */
static __attribute__((cold)) void find_places(const planar *p)
{
    const planar_side *x = &p->x;
    planar_taps h, w;
    for (int64_t i = 0; planar_taps_at(&x->down, 0, i, &h); i++)
        for (int64_t k = 0; planar_taps_at(&x->right, 0, k, &w); k++)
            for (int64_t tap = 0; tap < h.count * w.count; tap++) {
                const int64_t a = tap / w.count, b = tap % w.count,
                              at = (h.first + a * h.step) * p->s->kw + w.first + b * w.step;
                for (int64_t c = 0; c < p->c; c++)
                    p->places[p->s->weights_last ? at * p->c + c : c * p->s->kh * p->s->kw + at] =
                        c * planar_numbers(x) + (h.lot * x->right.lots + w.lot) * x->plane +
                        (h.at + a * h.next) * x->across + w.at + b * w.next;
            }
    for (int64_t k = p->taps; k < round_up(p->taps, TAPS); k++)
        p->places[k] = 0;
}

static __attribute__((cold)) void cut(planar *p)
{
    const pc__grouped *s = p->s;
    const planar_axis *h = &p->x.down, *w = &p->x.right;
    const int64_t each = p->c * h->lots * w->lots + p->o;
    p->x.across = p->y.across = s->ow + w->reach;
    p->groups = PC__MAX(PC__MIN(PLANAR_OUTPUTS / PC__MAX(p->c, p->o), s->groups), 1);
    if (s->x_planes && s->y_planes) /* which gain nothing side by side */
        p->groups = 1;
    p->blocks = (s->groups + p->groups - 1) / p->groups;
    p->rows = planar_rows(h, p->x.across, each * p->groups, 4 * PLANAR_PLACES, PLANAR_PLANES_MOST / 2);
    p->x.plane = (p->rows + h->reach) * p->x.across;
    p->y.plane = round_up(p->rows * p->x.across, W);
    p->in = round_up(p->groups * p->c * planar_numbers(&p->x) + w->reach + W, W);
    p->out = p->groups * p->o * p->y.plane;
    p->room = round_up(PC__MAX(planar_room(&p->x, p->groups * p->c, p->rows + h->reach),
                               planar_room(&p->y, p->groups * p->o, p->rows)),
                       W);
    p->all = p->in + (s->activation != PC__ACT_NONE ? 2 : 1) * p->out + p->room;
    p->chunks = PC__MAX(PC__MIN(TASKS / p->blocks, s->n), 1);
    p->images = (s->n + p->chunks - 1) / p->chunks;
    p->chunks = (s->n + p->images - 1) / p->images;
}

/* to[i] = the sum of all chunks. */
static __attribute__((noinline)) void give_sums(const planar *p, real *sums, int64_t n, void *to)
{
    for (int64_t chunk = 1; chunk < p->chunks; chunk++)
        for (int64_t i = 0; i < n; i++)
            sums[i] += sums[chunk * n + i];
    if (sums != to)
        give_reals(&p->g, to, sums, n);
}

__attribute__((cold)) pc_status PC__R(planes_weights)(const pc__grouped *s, const void *x, const void *y,
                                                      const void *dy, void *dweight, void *dbias)
{
    const pc__conv kind = planar_kind(s);
    planar p = {.s = s, .g = {.s = &kind, .size = s->half ? 2 : (int64_t)sizeof(real)}};
    p.x = (planar_side){.data = x,
                        .planes = s->x_planes || s->c == 1,
                        .channels = s->c,
                        .down = planar_axis_of(s->h, s->oh, s->kh, s->sh, s->ph, s->dh, false),
                        .right = planar_axis_of(s->w, s->ow, s->kw, s->sw, s->pw, s->dw, false)};
    p.y = (planar_side){.data = dy,
                        .planes = s->y_planes || s->o == 1,
                        .channels = s->o,
                        .down = planar_axis_of(s->oh, s->oh, 1, 1, 0, 1, false),
                        .right = planar_axis_of(s->ow, s->ow, 1, 1, 0, 1, false)};
    p.c = s->c / s->groups, p.o = s->o / s->groups, p.taps = p.c * s->kh * s->kw;
    const int64_t weights = s->o * p.taps;
    if (s->n * s->oh * s->ow * weights == 0) {
        memset(dweight, 0, (size_t)(weights * p.g.size));
        if (dbias)
            memset(dbias, 0, (size_t)(s->o * p.g.size));
        return PC_OK;
    }
    cut(&p);
    p.after = p.y, p.after.data = y;
    const int threads = pc__threads(2 * s->n * s->oh * s->ow * weights);
    const int64_t places = round_up(p.taps, TAPS) * (int64_t)sizeof(int64_t), rooms = threads * p.all;
    const int64_t sums = s->half || p.chunks > 1 ? p.chunks * weights : 0, bias = dbias ? p.chunks * s->o : 0;
    char *slab = pc__alloc_aligned((size_t)(places + (rooms + sums + bias) * (int64_t)sizeof(real)), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    p.places = (int64_t *)(void *)slab;
    p.rooms = memset(slab + places, 0, (size_t)rooms * sizeof(real));
    p.sums = sums ? p.rooms + rooms : dweight;
    p.bias = dbias ? p.rooms + rooms + sums : NULL;
    find_places(&p);
    pc__parallel(threads, p.blocks * p.chunks, chunk_task, &p);
    give_sums(&p, p.sums, weights, dweight);
    if (WHOLE && dbias)
        give_sums(&p, p.bias, s->o, dbias);
    pc__free(slab);
    return PC_OK;
}

pc_status PC__R(planes_weight)(const pc__grouped *s, const void *x, const void *dy, void *dweight)
{
    return PC__R(planes_weights)(s, x, NULL, dy, dweight, NULL);
}
