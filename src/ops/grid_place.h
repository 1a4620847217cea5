/* grid_place.h: where a number of a grid lies along an axis of a picture, and the two whole places that it is between. Plain C that
 * kernels include too; who includes it says what `real` is, float or double, what FLOOR and ROUND are, halves to the even one,
 * and how functions are inlined (INLINE). All is computed in `real`, as in PyTorch, so that the same places are on a half or a whole
 * one, but where a device rounds a product and its sum together: the gradient there may be that of the other side. Without
 * branches: loops become vector code. */
#ifndef PC__OP_GRID_PLACE_H
#define PC__OP_GRID_PLACE_H

#include "ops/grid_sample.h"

/* In places of the picture, and what it moves by for a change of the grid's number. */
typedef struct place {
    real at, slope;
} place;

/* Between whole places `low` and `low` + 1, which may be the picture's or not, and what the second has of the two. */
typedef struct sides {
    real low, part;
} sides;

/* -1 and 1 are the middles of the first and the last place, or the edges. */
INLINE place placed(real number, real size, int corners)
{
    const place p = {corners ? (number + 1) * ((size - 1) / 2) : ((number + 1) * size - 1) / 2,
                     (corners ? size - 1 : size) / 2};
    return p;
}

/* Between two mirrors, there and back again; NaN where there is nothing between them, of what is no number. */
INLINE place reflected(place p, real size, int corners)
{
    const real low = corners ? (real)0 : (real)-0.5, span = corners ? size - 1 : size;
    const real off = p.at - low, far = off < 0 ? -off : off;
    const real turns = FLOOR(far / span), rest = far - turns * span, half = turns / 2;
    const int back = half != FLOOR(half);
    const real found = (back ? span - rest : rest) + low;
    p.slope = (off < 0) != back ? -p.slope : p.slope;
    p.at = span > 0 ? found : p.at - p.at; /* 0 or NaN, which a product with 0 need not keep where zeros have no sign */
    p.slope = span > 0 ? p.slope : 0;
    return p;
}

/* The nearest place of the picture, which a change of the number does not move. */
INLINE place bordered(place p, real size)
{
    const int inside = p.at > 0 && p.at < size - 1;
    p.slope = inside ? p.slope : 0;
    p.at = p.at < 0 ? 0 : p.at;
    p.at = p.at > size - 1 ? size - 1 : p.at;
    return p;
}

INLINE place place_of(real number, real size, int padding, int corners)
{
    place p = placed(number, size, corners);
    if (padding == PC__GRID_REFLECTION)
        p = reflected(p, size, corners);
    return padding == PC__GRID_ZEROS ? p : bordered(p, size);
}

/* `part` is a number always. */
INLINE sides sides_of(real at)
{
    sides s;
    s.low = FLOOR(at);
    s.part = at - s.low;
    s.part = s.part >= 0 ? s.part : 0;
    return s;
}

/* The first is the nearest one, and has all; the second counts for nothing. */
INLINE sides nearest_of(real at)
{
    const sides s = {ROUND(at), 0};
    return s;
}

/* The place of the picture next to a whole one, which is that one where the picture has it; never NaN. */
INLINE real within(real whole, real size)
{
    const real most = size - 1, above = whole > 0 ? whole : 0;
    return above < most ? above : most;
}

#endif
