/* resample.c: pictures of another size: rows are added up first, as they lie, then neighbours in that sum. */
#include "cpu/level/resample.h"

#include "base/parallel.h"
#include "cpu/level/real.h"

/* Numbers of a line that are made of one or two. */
typedef struct pairs {
    int32_t *first, *second; /* the same: of one */
    real *one, *other;       /* weights */
} pairs;

typedef struct work {
    const pc__resampling *s;
    real *rooms; /* a row of what it comes from, for each thread */
    int64_t together;
    pairs columns; /* NULL: made of more, or of channels that are worth a loop */
} work;

/* The sum of the rows under row i of the result, or the one row there is. */
static const real *sum_rows(const pc__resampling *s, int64_t plane, int64_t i, real *restrict room)
{
    const int64_t size = s->w * s->inner, begin = s->rows.at[i], count = s->rows.at[i + 1] - begin;
    const real *x = (const real *)s->from + (plane * s->h + s->rows.first[i]) * size;
    const double *weight = s->rows.weight + begin;
    if (count == 1 && weight[0] == 1)
        return x;
    if (count == 2) {
        const real one = (real)weight[0], other = (real)weight[1];
        for (int64_t k = 0; k < size; k++)
            room[k] = one * x[k] + other * x[size + k];
        return room;
    }
    memset(room, 0, (size_t)size * sizeof *room);
    for (int64_t r = 0; r < count; r++, x += size) {
        const real by = (real)weight[r];
        for (int64_t k = 0; k < size; k++)
            room[k] += by * x[k];
    }
    return room;
}

/* Of single numbers. */
static void sum_line(const pc__places *p, const real *restrict x, real *restrict y)
{
    for (int64_t j = 0; j < p->n; j++) {
        const int64_t begin = p->at[j], count = p->at[j + 1] - begin;
        const double *weight = p->weight + begin;
        const real *from = x + p->first[j];
        real sum = 0;
        for (int64_t k = 0; k < count; k++)
            sum += (real)weight[k] * from[k];
        y[j] = sum;
    }
}

static bool are_pairs(const pc__resampling *s)
{
    enum { FEW = 8 };
    if (s->inner > FEW || s->w > INT32_MAX / FEW)
        return false;
    for (int64_t j = 0; j < s->columns.n; j++)
        if ((uint64_t)(s->columns.at[j + 1] - s->columns.at[j] - 1) > 1)
            return false;
    return true;
}

/* In memory for 2 numbers and 2 int32 of each number of the result. */
static pairs pairs_of(const pc__places *p, int64_t inner, void *memory)
{
    pairs all = {.one = memory};
    all.other = all.one + p->n * inner;
    all.first = (int32_t *)(void *)(all.other + p->n * inner);
    all.second = all.first + p->n * inner;
    for (int64_t j = 0; j < p->n; j++) {
        const int64_t begin = p->at[j], count = p->at[j + 1] - begin;
        for (int64_t k = j * inner; k < (j + 1) * inner; k++) {
            all.one[k] = (real)p->weight[begin];
            all.other[k] = count == 2 ? (real)p->weight[begin + 1] : 0;
            all.first[k] = (int32_t)(p->first[j] * inner + k % inner);
            all.second[k] = all.first[k] + (int32_t)((count - 1) * inner);
        }
    }
    return all;
}

static void sum_pairs(const pairs *p, int64_t n, const real *restrict x, real *restrict y)
{
    for (int64_t j = 0; j < n; j++) {
        const real one = p->one[j] * x[p->first[j]], both = one + p->other[j] * x[p->second[j]];
        y[j] = p->first[j] == p->second[j] ? one : both; /* 0 times infinity is NaN */
    }
}

static void sum_columns(const pc__resampling *s, const real *restrict x, real *restrict y)
{
    for (int64_t j = 0; j < s->columns.n; j++, y += s->inner) {
        const int64_t begin = s->columns.at[j], end = s->columns.at[j + 1];
        const real *from = x + s->columns.first[j] * s->inner;
        for (int64_t c = 0; c < s->inner; c++)
            y[c] = 0;
        for (int64_t k = begin; k < end; k++, from += s->inner) {
            const real by = (real)s->columns.weight[k];
            for (int64_t c = 0; c < s->inner; c++)
                y[c] += by * from[c];
        }
    }
}

static void some_rows(void *context, int64_t task)
{
    const work *w = context;
    const pc__resampling *s = w->s;
    real *room = w->rooms + pc__thread() * round_up(s->w * s->inner, W);
    const int64_t end = PC__MIN((task + 1) * w->together, s->outer * s->rows.n);
    for (int64_t row = task * w->together; row < end; row++) {
        const real *x = sum_rows(s, row / s->rows.n, row % s->rows.n, room);
        real *y = (real *)s->to + row * s->columns.n * s->inner;
        if (w->columns.first)
            sum_pairs(&w->columns, s->columns.n * s->inner, x, y);
        else
            s->inner == 1 ? sum_line(&s->columns, x, y) : sum_columns(s, x, y);
    }
}

pc_status PC__R(resample)(const pc__resampling *s)
{
    enum { PART = 8192 };
    const int64_t rows = s->outer * s->rows.n, size = (s->w + s->columns.n) * s->inner;
    const int threads = pc__threads(rows * size * 6);
    work w = {.s = s, .together = PC__MAX(PART / PC__MAX(size, 1), 1)};
    if (rows == 0 || s->columns.n * s->inner == 0)
        return PC_OK;
    const size_t room = (size_t)(threads * round_up(s->w * s->inner, W)) * sizeof(real);
    const bool paired = are_pairs(s);
    w.rooms = pc__alloc_aligned(
        room + (paired ? (size_t)(s->columns.n * s->inner) * 2 * (sizeof(real) + sizeof(int32_t)) : 0), 64);
    if (!w.rooms)
        return PC_ERR_MEMORY;
    if (paired)
        w.columns = pairs_of(&s->columns, s->inner, (char *)w.rooms + room);
    pc__parallel(threads, (rows + w.together - 1) / w.together, some_rows, &w);
    pc__free(w.rooms);
    return PC_OK;
}
