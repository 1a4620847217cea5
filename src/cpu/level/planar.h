/* planar.h: convolutions with neighbouring places in a vector, where few channels in a group would leave most of one empty.
 * What is read becomes planes, strip by strip: of each channel, and with a stride of each remainder of rows and columns, rows
 * one behind the other. So neighbours in the result are neighbours there under each tap, over the ends of rows too: what is
 * computed there is dropped. Taps may lie apart, and the gradient at the pictures is made the same way, with a lot of results
 * for each remainder of the stride. Weights are read as they lie, pictures in either order. */
#ifndef PC__PLANAR_H
#define PC__PLANAR_H

#include "cpu/level/conv.h"
#include "cpu/level/convolve.h"

enum {
    PLANAR_OUTPUTS = 24,           /* that are finished together */
    PLANAR_PLACES = 512,           /* of a strip, about */
    PLANAR_PLANES_MOST = 1 << 16,  /* numbers of a strip's planes, if rows are short enough */
    PLANAR_PLANES_CLOSE = 1 << 13, /* that stay in the first-level cache */
};

/* Some taps, first + i * step, of which each reads lot `lot`, at place at + i * next for place 0 that is made. */
typedef struct planar_taps {
    int64_t first, step, count, lot, at, next;
} planar_taps;

enum { PLANAR_KNOWN = 4 };

/* Rows, or columns. Place u of lot q of what is read is start + q + u * lots; place m of lot r of what is made r + m * out_lots. */
typedef struct planar_axis {
    int64_t kernel, stride, padding, dilation;
    bool back;
    int64_t size, out; /* of what is read, and made */
    int64_t lots, out_lots, start;
    int64_t made, reach;             /* places of a lot that are made, at most, and such that are read beyond as many */
    planar_taps known[PLANAR_KNOWN]; /* planar_taps_of by r, or without `back` by i; none: count is 0 */
} planar_axis;

#define planar_axis_of PC__R(planar_axis_of)
#define planar_taps_of PC__R(planar_taps_of)
planar_axis planar_axis_of(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           bool back);

/* Class i of the taps that lot r of what is made has; false beyond the last one. */
bool planar_taps_of(const planar_axis *a, int64_t r, int64_t i, planar_taps *t);

static inline bool planar_taps_at(const planar_axis *a, int64_t r, int64_t i, planar_taps *t)
{
    const int64_t at = a->back ? r : i;
    if (at >= PLANAR_KNOWN || (a->back && i > 0))
        return planar_taps_of(a, r, i, t);
    *t = a->known[at];
    return t->count > 0;
}

/* A picture, and how a strip of it lies: [channel][lot of rows][lot of columns][plane]. */
typedef struct planar_side {
    const void *data;
    bool planes; /* in C order, else channels last */
    int64_t channels;
    planar_axis down, right;
    int64_t across, plane; /* numbers of a row, of a plane */
} planar_side;

/* Numbers of each channel of a strip. */
static inline int64_t planar_numbers(const planar_side *s)
{
    return s->down.lots * s->right.lots * s->plane;
}

/* `rows` rows of channels from `first` on, from row `row` of each lot on. `to` was zero at first, and what is beside rows stays
 * so; `room` is planar_room long. */
#define planar_fill PC__R(planar_fill)
void planar_fill(const geometry *g, const planar_side *s, int64_t image, int64_t first, int64_t channels, int64_t row,
                 int64_t rows, real *to, real *room);

/* Numbers of a row of these channels, or of 16 bits in C order all rows of one. */
static inline int64_t planar_room(const planar_side *s, int64_t channels, int64_t rows)
{
    return s->right.size * PC__MAX(channels, s->planes ? rows * s->down.lots : 1);
}

/* to[row][0..n) = from[row][0..n), rows apart; n may be small. */
#define planar_copy PC__R(planar_copy)
void planar_copy(const real *from, int64_t from_step, real *to, int64_t to_step, int64_t rows, int64_t n);

/* planar_weight.c: gradients of weights; in float also of the bias, unless NULL, and from dy behind an activation whose values
 * y are. */
pc_status PC__R(planes_weights)(const pc__grouped *s, const void *x, const void *y, const void *dy, void *dweight,
                                void *dbias);

/* The kernels' own sizes and types. */
static inline pc__conv planar_kind(const pc__grouped *s)
{
    return (pc__conv){.half = s->half, .is_f16 = s->is_f16};
}

/* Strips of at most so many places, whose planes of `each` numbers at each place fit. */
static inline int64_t planar_rows(const planar_axis *down, int64_t across, int64_t each, int64_t places, int64_t most)
{
    const int64_t rows = PC__MIN(places / PC__MAX(across, 1), most / PC__MAX(each * across, 1) - down->reach);
    return PC__MIN(PC__MAX(rows, down->reach + 1), PC__MAX(down->made, 1));
}

#endif
