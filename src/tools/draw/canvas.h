/* canvas.h: a small painter: antialiased filled shapes on a float RGB picture, by their distance functions.
 *
 * Shapes are given in drawing units. The frame maps these to pixels by scale, rotation and offset, so that a distance
 * stays a distance: coverage of a pixel = how deep it lies in the shape, in pixels. x goes right, y down. */
#ifndef PC__DRAW_CANVAS_H
#define PC__DRAW_CANVAS_H

#include "base/base.h"

typedef struct pc__point {
    float x, y;
} pc__point;

typedef struct pc__rgb {
    float r, g, b;
} pc__rgb;

typedef struct pc__canvas {
    int width, height;
    float *rgb;     /* height x width x 3, 0 to 1 */
    float *mask;    /* height x width: where clipped paint lands, 0 to 1 */
    float *grain;   /* height x width: the fall of the hair, about -1 to 1 */
    float *scratch; /* height x width x 3, for filters */
    /* the frame: pixel = origin + scale * rotation(unit) */
    pc__point origin;
    float scale, cosine, sine;
    pc__point light; /* brightness per drawing unit in x and y, of all paint but the background's */
} pc__canvas;

typedef enum pc__clip {
    PC__CLIP_NONE,
    PC__CLIP_ADD,   /* paint everywhere, and let clipped paint land here too */
    PC__CLIP_INSIDE /* paint only where PC__CLIP_ADD has painted */
} pc__clip;

/* Paint with alpha 0 shows nothing: start from pc__solid or pc__glaze. */
typedef struct pc__paint {
    pc__rgb colour;
    float alpha;
    float soft; /* width of a blurred edge, in units; 0: sharp */
    float fur;  /* how strongly the hair shows, about 0 to 0.2 */
    pc__clip clip;
    bool gradient; /* from `colour` at `start` to `second` at `end` */
    pc__rgb second;
    pc__point start, end;
} pc__paint;

static inline pc__paint pc__solid(pc__rgb colour)
{
    return (pc__paint){.colour = colour, .alpha = 1};
}

static inline pc__paint pc__glaze(pc__rgb colour, float alpha, float soft)
{
    return (pc__paint){.colour = colour, .alpha = alpha, .soft = soft};
}

static inline pc__rgb pc__mix(pc__rgb a, pc__rgb b, float t)
{
    return (pc__rgb){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline float pc__luma(pc__rgb c)
{
    return 0.3f * c.r + 0.59f * c.g + 0.11f * c.b;
}

pc_status pc__canvas_new(pc__canvas *canvas, int width, int height) PC_MUST_USE;
void pc__canvas_free(pc__canvas *canvas);
void pc__canvas_frame(pc__canvas *canvas, pc__point origin, float scale, float angle);
void pc__canvas_unmask(pc__canvas *canvas);

/* Signed distance from a point to a shape's edge in units, negative inside. */
typedef float (*pc__distance)(const void *shape, float x, float y);

/* Paint where distance <= 0, looking only between `low` and `high` (corners that hold the shape, in units). */
void pc__canvas_fill(pc__canvas *canvas, pc__distance distance, const void *shape, pc__point low, pc__point high,
                     const pc__paint *paint);

/* An ellipse with half axes rx, ry, turned by `angle` radians. */
void pc__fill_ellipse(pc__canvas *canvas, pc__point centre, float rx, float ry, float angle, pc__paint paint);

/* A bent line (quadratic Bezier) whose half width goes from r0 to r1. */
void pc__fill_curve(pc__canvas *canvas, pc__point from, pc__point bend, pc__point to, float r0, float r1,
                    pc__paint paint);

/* A closed outline of lines and curves; filled with its corners rounded, which makes it `round` larger. */
#define PC__PATH_MAX 48
typedef struct pc__path {
    pc__point points[PC__PATH_MAX];
    int count;
    float round;
} pc__path;
void pc__path_line(pc__path *path, pc__point to);
void pc__path_curve(pc__path *path, pc__point bend1, pc__point bend2,
                    pc__point to); /* cubic; starts at the last point */
void pc__fill_path(pc__canvas *canvas, const pc__path *path, pc__paint paint);

/* An outline around a centre, its radius given for each of a ring of angles: heads, tufts, patches. */
#define PC__BLOB_ANGLES 128
typedef struct pc__blob {
    pc__point centre;
    float radius[PC__BLOB_ANGLES]; /* angle 0 points right, then downwards (clockwise on the picture) */
    float largest;
} pc__blob;
void pc__blob_ellipse(pc__blob *blob, pc__point centre, float rx, float ry);
void pc__blob_wave(pc__blob *blob, int waves, float height, float phase);   /* radius *= 1 + height cos(...) */
void pc__blob_bump(pc__blob *blob, float angle, float width, float height); /* a bump at an angle, both in radians */
void pc__fill_blob(pc__canvas *canvas, const pc__blob *blob, pc__paint paint);

#endif
