/* resample_copies.c: pictures of another size whose places are each one place of the picture: copies, of any dtype. */
#include "cpu/level/resample.h"

#include "base/parallel.h"
#include "cpu/level/pick.h"

typedef struct copying {
    const pc__resampling *s;
    size_t place; /* bytes of a place, with its channels */
    int64_t together;
} copying;

/* A row that comes from where the one above does is a copy of that. */
static void copy_rows(void *context, int64_t task)
{
    const copying *c = context;
    const pc__resampling *s = c->s;
    const size_t in = (size_t)s->w * c->place, out = (size_t)s->columns.n * c->place;
    const int64_t begin = task * c->together, end = PC__MIN(begin + c->together, s->outer * s->rows.n);
    int64_t above = -1;
    for (int64_t row = begin; row < end; row++) {
        const int64_t source = row / s->rows.n * s->h + s->rows.first[row % s->rows.n];
        char *to = (char *)s->to + (size_t)row * out;
        if (source == above)
            memcpy(to, to - out, out);
        else
            pc__pick_rows(to, (const char *)s->from + (size_t)source * in, s->columns.first, s->columns.n, c->place);
        above = source;
    }
}

void pc__resample_copies(const pc__resampling *s, size_t bytes)
{
    enum { PART = 1 << 16 };
    const size_t place = (size_t)s->inner * bytes;
    const int64_t row = s->columns.n * (int64_t)place, rows = s->outer * s->rows.n;
    const copying c = {.s = s, .place = place, .together = PC__MAX(PART / row, 1)};
    pc__parallel(pc__threads(rows * (row + 4 * s->columns.n)), (rows + c.together - 1) / c.together, copy_rows,
                 (void *)&c);
}
