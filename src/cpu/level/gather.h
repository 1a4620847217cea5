/* gather.h: weighted sums of short runs of memory: to[row][i] += sum over items: weight * from[offset + row][i].
 * It is what the gradient of a pooled convolution comes to: most of the gradient is zero, and only the places that won
 * their window (and were not cut by a ReLU) are worth a multiplication. */
#ifndef PC__GATHER_H
#define PC__GATHER_H

#include "cpu/level/compute.h"
#include "cpu/level/real.h"

typedef struct item {
    real weight;
    pc__lane_int offset;
} item;

/* `rows` rows of `vectors` vectors; the rows are to_row and from_row elements apart. */
typedef struct gather {
    const item *items;
    int64_t count;
    const real *from;
    int64_t from_row;
    real *to;
    int64_t to_row;
} gather;

#define GATHER_VECTORS 8
#define GATHER_ROWS 5
#if defined(__aarch64__)
#define GATHER_SUMS 16
#elif PC__VECTOR_REGISTERS == 32
#define GATHER_SUMS 24
#else
#define GATHER_SUMS 12
#endif

typedef void gather_function(const gather *g);

/* By rows and vectors: gather.c. */
#define gather_functions PC__R(gather_functions)
extern gather_function *const gather_functions[GATHER_ROWS + 1][GATHER_VECTORS + 1];

/* How any number of rows and vectors is cut into pieces that fit the registers; worked out once for many sums. */
typedef struct gather_shape {
    int64_t rows, vectors, step, width; /* all, and of a piece */
    gather_function *whole;             /* when one piece does it */
} gather_shape;

static inline gather_shape gather_shape_of(int64_t rows, int64_t vectors)
{
    gather_shape shape = {.rows = rows, .vectors = vectors};
    if (!rows || !vectors)
        return shape;
    const int64_t pieces = (vectors + GATHER_VECTORS - 1) / GATHER_VECTORS;
    shape.width = (vectors + pieces - 1) / pieces;
    shape.step = PC__MIN(GATHER_SUMS / shape.width, GATHER_ROWS);
    if (rows <= shape.step && vectors <= shape.width)
        shape.whole = gather_functions[rows][vectors];
    return shape;
}

static inline void gather_all(gather g, const gather_shape *shape)
{
    if (shape->whole) {
        shape->whole(&g);
        return;
    }
    for (int64_t v = 0; v < shape->vectors; v += shape->width)
        for (int64_t r = 0; r < shape->rows; r += shape->step) {
            gather piece = g;
            piece.from += r * g.from_row + v * W;
            piece.to += r * g.to_row + v * W;
            gather_functions[PC__MIN(shape->step, shape->rows - r)][PC__MIN(shape->width, shape->vectors - v)](&piece);
        }
}

#endif
