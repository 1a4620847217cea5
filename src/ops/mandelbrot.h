/* mandelbrot.h: attributes of the op, and the arithmetic that every backend keeps to.
 *
 * Pixel (row, column) is c = (x_min + column * dx) + (y_min + row * dy) i, with dx and dy divided first. From z = c on,
 * the count is how many z have re * re + im * im < 4 before the first that has not; then z becomes
 * (re * re - im * im) + re(c) and (re * im + re * im) + im(c). Every operation is rounded on its own, as IEEE 754 says
 * and as z * z + c is in languages that have complex numbers: nothing is fused, so counts are equal everywhere.
 * (2 re im is exact beside re * im: there a fused multiply-add gives the same bits.)
 *
 * What backends may do to be fast, without changing a count:
 *  - Look at several steps at once: where |c|^2 < 3.9, |z| >= 2 gives |z'| >= |z|^2 - |c| > 2 with room for the
 * rounding, so what has left does not come back (infinities and NaN do not either).
 *  - Stop where z has exactly the bits that it had before: it goes round for ever.
 *  - Take the count of a row from the row whose im(c) has the other sign and the same bits: a step keeps to that, and
 *    |z| does not see it.
 *  - Not begin where c is in the heart of the set, or in the disc to the left of it, by a small margin:
 * PC__MANDELBROT_RIM times c in the heart, |c + 1|^2 below PC__MANDELBROT_DISC. There z comes into a disc that goes
 * into itself within 6,500 steps. Until then rounding cannot take it away: every step brings points nearer to each
 * other in the hyperbolic metric of the set's inside, and z stays 2e-6 or more from the rim, so that 6,500 errors of
 * 1e-15 each come to less than 1e-5 of that distance. */
#ifndef PC__OP_MANDELBROT_H
#define PC__OP_MANDELBROT_H

#include <stdint.h>

typedef struct pc__mandelbrot_attributes {
    double x_min, y_min, dx, dy;
    int iterations;
} pc__mandelbrot_attributes;

#define PC__MANDELBROT_RIM 1.002
#define PC__MANDELBROT_DISC (0.2495 * 0.2495)

/* Rows `row` and this minus `row` may be mirror images: whether their im(c) are, is to be looked at. -1: none can be.
 */
static inline int64_t pc__mandelbrot_mirror(const pc__mandelbrot_attributes *a, int64_t height)
{
    const double sum = -2 * a->y_min / a->dy + 0.5;
    return sum >= 1 && sum < 2 * (double)height - 2 ? (int64_t)sum : -1;
}

/* The rows to count are numbered from 0: those up to the middle of the mirror images, and those behind the last one.
 * How many there are; and row number `i` of them. */
static inline int64_t pc__mandelbrot_rows(int64_t mirror, int64_t height)
{
    return (mirror < height ? height - 1 - mirror : 0) + (mirror >> 1) + 1;
}

#define PC__MANDELBROT_ROW(mirror, i) ((i) <= ((mirror) >> 1) ? (i) : (i) + (mirror) - ((mirror) >> 1))

/* For counts in fractions: that many more z, the further out the better, and then count + 1 - log2(log2 |z|). */
#define PC__MANDELBROT_MORE 4

#endif
