/* pool_keys.c: maxima of 16-bit numbers whose places nobody asks for. Numbers become integers in the same order, of which a
 * vector has twice as many as of float32. Each row of x becomes keys once for all windows over it; rows under a row of
 * windows become one, then its neighbours. A task is some rows of windows, cut to strips of which all of that stays in the
 * caches.
 *
 * Integers part -0 from 0 and have no NaN: of rows with any of both each place of a window is looked at in turn. */
#include "cpu/level/each.h"
#include "cpu/level/pool.h"

typedef int16_t key;

enum {
    LANES = PC__VECTOR_BYTES / (int)sizeof(key),
    STRIP = 4096,   /* keys of a row in a strip, about, */
    BATCH = 8192,   /* under rows of windows that are made together, */
    PART = 1 << 16, /* and of a task */
};

typedef struct keys {
    const pc__pool *s;
    const uint16_t *x, *end;
    uint16_t *y;
    int64_t oh, ow, columns, rows; /* of y; of windows in a strip */
    int64_t strips, parts;         /* across, and down */
    int64_t units, of_task;        /* strips in all */
    int64_t pixels, pitch, batch;  /* of a strip's row, their keys; rows of windows at once */
    int64_t size;                  /* keys of a thread's room */
    key *rooms;
    key least;          /* minus infinity */
    uint16_t nan, nans; /* keys of NaN: the first, and how many follow, beyond the greatest key from the least on */
    uint16_t quiet;     /* the bit that says so of a NaN */
} keys;

/* Windows under a part of the columns, and room of a thread. */
typedef struct strip {
    int64_t image, first, count;      /* of windows in a row */
    int64_t from, left, right, width; /* of its rows: where in x, what is beside the picture and on it, in keys */
    key *x, *most, *out;              /* rows of x; under each row of windows as one; the results */
    int64_t begin, end, odd;          /* rows that are in x, from row -ph on */
} strip;

/* Blocks of a vector, each a loop of known length, have no code for what is left. */
#define EACH_WHOLE(i, n)                                                                                               \
    for (int64_t of_##i = 0; of_##i < (n); of_##i += LANES)                                                            \
        for (int64_t i = of_##i; i < of_##i + LANES; i++)

INLINE key turned(key bits)
{
    return (key)(bits ^ ((bits >> 15) & 0x7fff));
}

INLINE bool is_nan(key k, uint16_t nan, uint16_t nans)
{
    return (uint16_t)((uint16_t)k - nan) <= nans;
}

/* What is made in order is made in whole vectors: what they have too much is written over by what comes next. */
static void pad(const keys *p, key *to, int64_t n)
{
    const key least = p->least;
    EACH_WHOLE(i, n)
    to[i] = least;
}

/* All but the end of x is read in whole vectors, too. */
static void take_row(const keys *p, const strip *t, int64_t row, key *to)
{
    const pc__pool *s = p->s;
    if (row < 0 || row >= s->h) {
        pad(p, to, p->pitch);
        return;
    }
    const uint16_t *x = p->x + (t->image * s->h + row) * s->w * s->c + t->from;
    pad(p, to, t->left);
    to += t->left;
    if (p->end - x < round_up(t->width, LANES))
        x = memcpy(to, x, (size_t)t->width * sizeof *to);
    for (int64_t of = 0; of < t->width; of += LANES)
#pragma GCC ivdep
        for (int64_t i = of; i < of + LANES; i++)
            to[i] = turned((key)x[i]);
    pad(p, to + t->width, t->right);
}

/* Whether there is -0 or NaN among n keys, or in a vector that they end in. */
static bool any_odd(const keys *p, const key *x, int64_t n)
{
    typedef uint16_t vector __attribute__((vector_size(PC__VECTOR_BYTES)));
    typedef uint16_t in_memory __attribute__((vector_size(PC__VECTOR_BYTES), aligned(2), may_alias));
    const vector nan = p->nan - (vector){0}, nans = p->nans - (vector){0}, zero = UINT16_MAX - (vector){0};
    uint64_t any[PC__VECTOR_BYTES / sizeof(uint64_t)], all = 0;
    vector odd = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        const vector k = *(const in_memory *)(const void *)(x + i);
        odd |= (vector)(k == zero) | (vector)(k - nan <= nans);
    }
    memcpy(any, &odd, sizeof any);
    for (int i = 0; i < PC__COUNT(any); i++)
        all |= any[i];
    return all;
}

/* Rows [begin, end), of which some are there from before: whether any is odd. */
static bool take_rows(const keys *p, strip *t, int64_t begin, int64_t end)
{
    const int64_t kept = PC__MAX(t->end - begin, 0);
    if (kept)
        memmove(t->x, t->x + (begin - t->begin) * p->pitch, (size_t)(kept * p->pitch) * sizeof *t->x);
    t->begin = begin, t->end = end;
    for (int64_t row = begin + kept; row < end; row++)
        take_row(p, t, row - p->s->ph, t->x + (row - begin) * p->pitch);
    pad(p, t->x + (end - begin) * p->pitch, 1);
    if (any_odd(p, t->x + kept * p->pitch, (end - begin - kept) * p->pitch))
        t->odd = end;
    return t->odd > begin;
}

INLINE void greatest_of(key *to, const key *a, const key *b, const key *c, int64_t n)
{
    for (int64_t of = 0; of < n; of += LANES)
#pragma GCC ivdep
        for (int64_t i = of; i < of + LANES; i++) {
            const key most = a[i] > b[i] ? a[i] : b[i];
            to[i] = c[i] > most ? c[i] : most;
        }
}

/* to = the greatest of `count` runs of n keys, `step` apart: of `runs` such lots, x_step and n apart. */
static void greatest(key *to, const key *x, int64_t step, int64_t count, int64_t n, int64_t runs, int64_t x_step)
{
    const int64_t second = PC__MIN(1, count - 1) * step, third = PC__MIN(2, count - 1) * step;
    for (int64_t i = 0; i < runs; i++, x += x_step, to += n) {
        greatest_of(to, x, x + second, x + third, n);
        for (int64_t k = 3; k < count; k += 2)
            greatest_of(to, to, x + k * step, x + PC__MIN(k + 1, count - 1) * step, n);
    }
}

/* Rows under rows of windows as one each. */
static void one_each(const keys *p, const strip *t, int64_t rows)
{
    if (p->s->sh == 1)
        greatest(t->most, t->x, p->pitch, p->s->kh, rows * p->pitch, 1, 0);
    else
        greatest(t->most, t->x, p->pitch, p->s->kh, p->pitch, rows, p->s->sh * p->pitch);
}

/* to[i] = from[i] where that is greater, zeros being equal, or NaN. */
static void look_at(const keys *p, key *restrict to, const key *restrict from, int64_t n)
{
    const uint16_t nan = p->nan, nans = p->nans;
    EACH_WHOLE(i, n)
    {
        const key a = to[i], b = from[i];
        const bool more = (b > a) & !((a == -1) & (b == 0)) & !is_nan(a, nan, nans);
        to[i] = more | is_nan(b, nan, nans) ? b : a;
    }
}

/* The same of the places of `runs` runs of windows under row `row`, in their order. */
static void in_turn(const keys *p, const strip *t, int64_t row, int64_t runs, int64_t n, key *to)
{
    for (int64_t i = 0; i < runs; i++, to += n) {
        const key *x = t->x + row * p->s->sh * p->pitch + i * p->s->sw * p->s->c;
        pad(p, to, n);
        for (int64_t k = 0; k < p->s->kh; k++)
            for (int64_t j = 0; j < p->s->kw; j++)
                look_at(p, to, x + k * p->pitch + j * p->s->c, n);
    }
}

INLINE void turn_back(const keys *p, const key *restrict from, uint16_t *restrict to, int64_t n, bool odd)
{
    const uint16_t nan = p->nan, nans = p->nans, quiet = odd ? p->quiet : 0;
    EACH_WHOLE(i, n)
    to[i] = (uint16_t)(turned(from[i]) | (is_nan(from[i], nan, nans) ? quiet : 0));
}

/* Keys to numbers. */
static void give_keys(const keys *p, const key *from, uint16_t *to, int64_t n, bool odd)
{
    const int64_t whole = n / LANES * LANES;
    uint16_t last[LANES];
    turn_back(p, from, to, whole, odd);
    turn_back(p, from + whole, last, 1, odd);
    memcpy(to + whole, last, (size_t)(n - whole) * sizeof *to);
}

/* Windows that touch are one run; of others each is, but of one channel, where the places between are made as well. */
static void make_rows(const keys *p, strip *t, int64_t first, int64_t rows)
{
    const pc__pool *s = p->s;
    const bool odd = take_rows(p, t, first * s->sh, (first + rows - 1) * s->sh + s->kh);
    const bool apart = s->sw > 1 && s->c > 1, some = s->sw > 1 && !apart;
    const int64_t runs = apart ? t->count : 1, n = apart ? s->c : ((t->count - 1) * s->sw + 1) * s->c;
    const int64_t made = t->count * s->c;
    key *between = t->out + p->batch * p->columns * s->c + LANES;
    if (!odd)
        one_each(p, t, rows);
    if (!odd && s->sw == 1)
        greatest(t->out, t->most, s->c, s->kw, made, rows, p->pitch);
    for (int64_t row = 0; (odd || s->sw > 1) && row < rows; row++) {
        key *out = t->out + row * made, *to = some ? between : out;
        if (odd)
            in_turn(p, t, row, runs, n, to);
        else
            greatest(to, t->most + row * p->pitch, s->c, s->kw, n, runs, s->sw * s->c);
        if (some)
            pc__move((char *)out, sizeof *out, (const char *)to, s->sw * (int64_t)sizeof *to, t->count, sizeof *to);
    }
    uint16_t *y = p->y + ((t->image * p->oh + first) * p->ow + t->first) * s->c;
    const int64_t lines = p->strips == 1 ? 1 : rows, line = rows / lines * made;
    for (int64_t i = 0; i < lines; i++)
        give_keys(p, t->out + i * line, y + i * p->ow * s->c, line, odd);
}

static void make_strip(const keys *p, int64_t unit, key *room)
{
    const pc__pool *s = p->s;
    const int64_t part = unit / p->strips % p->parts, first = unit % p->strips * p->columns;
    const int64_t at = first * s->sw - s->pw, from = PC__MAX(at, 0), to = PC__MIN(at + p->pixels, s->w);
    strip t = {.image = unit / p->strips / p->parts, .first = first, .count = PC__MIN(p->columns, p->ow - first)};
    t.from = from * s->c, t.width = (to - from) * s->c;
    t.left = (from - at) * s->c, t.right = (at + p->pixels - to) * s->c;
    t.x = room, t.most = t.x + ((p->batch - 1) * s->sh + s->kh) * p->pitch + LANES;
    t.out = t.most + p->batch * p->pitch + LANES;
    const int64_t end = PC__MIN((part + 1) * p->rows, p->oh);
    for (int64_t row = part * p->rows; row < end; row += p->batch)
        make_rows(p, &t, row, PC__MIN(p->batch, end - row));
}

static void strips(void *context, int64_t task)
{
    const keys *p = context;
    key *room = p->rooms + pc__thread() * p->size;
    for (int64_t unit = task * p->of_task; unit < PC__MIN((task + 1) * p->of_task, p->units); unit++)
        make_strip(p, unit, room);
}

static int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

/* Strips are wide enough that windows share most of what is under them. */
static __attribute__((cold)) void cut(keys *p)
{
    const pc__pool *s = p->s;
    const int64_t fit = PC__MAX(STRIP / (s->sw * s->c), 4 * s->kw / s->sw + 1);
    p->strips = parts_of(p->ow, PC__MIN(fit, p->ow));
    p->columns = parts_of(p->ow, p->strips), p->strips = parts_of(p->ow, p->columns);
    p->pixels = (p->columns - 1) * s->sw + s->kw;
    p->pitch = p->pixels * s->c;
    const int64_t rows = PC__MAX(PART / (p->pitch * s->sh), 4 * s->kh / s->sh + 1);
    p->parts = parts_of(p->oh, PC__MIN(rows, p->oh));
    p->rows = parts_of(p->oh, p->parts), p->parts = parts_of(p->oh, p->rows);
    p->units = s->n * p->parts * p->strips;
    p->of_task = PC__MAX(PART / (p->pitch * p->rows * s->sh), 1);
    p->batch = PC__MIN(PC__MAX(BATCH / (p->pitch * s->sh), 1), p->rows);
    p->size = ((p->batch - 1) * s->sh + s->kh + p->batch + 1) * p->pitch + p->batch * p->columns * s->c + 4 * LANES;
    p->size = round_up(p->size, LANES);
}

__attribute__((cold)) pc_status pc__max_pool2d_keys(const pc__pool *s, const void *x, void *y)
{
    keys p = {.s = s,
              .x = x,
              .end = (const uint16_t *)x + s->n * s->h * s->w * s->c,
              .y = y,
              .oh = pc__pool_oh(s),
              .ow = pc__pool_ow(s)};
    if (s->n * s->c * p.oh * p.ow == 0)
        return PC_OK;
    const key most = s->is_f16 ? 0x7c00 : 0x7f80;
    p.least = (key)(-most - 1), p.nan = (uint16_t)(most + 1), p.nans = (uint16_t)(2 * (0x7fff - most) - 1);
    p.quiet = s->is_f16 ? 0x200 : 0x40;
    cut(&p);
    const int threads = pc__threads(16 * s->n * p.oh * (s->sh * s->w * s->c + p.ow * s->c + LANES));
    if (!(p.rooms = pc__alloc_aligned((size_t)(threads * p.size) * sizeof(key), 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, parts_of(p.units, p.of_task), strips, &p);
    pc__free(p.rooms);
    return PC_OK;
}
