/* shape.c: the shapes and their distance functions. */
#include "draw/canvas.h"

#include <math.h>

#define PI 3.14159265f

typedef struct ellipse {
    pc__point centre;
    float rx, ry, cosine, sine;
} ellipse;

/* To first order: the implicit function over the length of its gradient; good near the edge, where it counts. */
static float ellipse_distance(const void *shape, float x, float y)
{
    const ellipse *e = shape;
    float dx = x - e->centre.x, dy = y - e->centre.y;
    float u = (e->cosine * dx + e->sine * dy) / e->rx, v = (-e->sine * dx + e->cosine * dy) / e->ry;
    float f = sqrtf(u * u + v * v);
    if (f < 1e-6f)
        return -fminf(e->rx, e->ry);
    float gu = u / e->rx, gv = v / e->ry;
    return f * (f - 1) / sqrtf(gu * gu + gv * gv);
}

void pc__fill_ellipse(pc__canvas *canvas, pc__point centre, float rx, float ry, float angle, pc__paint paint)
{
    ellipse e = {centre, rx, ry, cosf(angle), sinf(angle)};
    float reach_x = fabsf(e.cosine) * rx + fabsf(e.sine) * ry, reach_y = fabsf(e.sine) * rx + fabsf(e.cosine) * ry;
    pc__canvas_fill(canvas, ellipse_distance, &e, (pc__point){centre.x - reach_x, centre.y - reach_y},
                    (pc__point){centre.x + reach_x, centre.y + reach_y}, &paint);
}

#define CURVE_POINTS 9

typedef struct curve {
    pc__point points[CURVE_POINTS];
    float radius[CURVE_POINTS];
} curve;

static float curve_distance(const void *shape, float x, float y)
{
    const curve *c = shape;
    float nearest = 1e9f;
    for (int i = 0; i + 1 < CURVE_POINTS; i++) {
        float ex = c->points[i + 1].x - c->points[i].x, ey = c->points[i + 1].y - c->points[i].y;
        float dx = x - c->points[i].x, dy = y - c->points[i].y;
        float t = fmaxf(0, fminf(1, (dx * ex + dy * ey) / (ex * ex + ey * ey + 1e-12f)));
        dx -= t * ex, dy -= t * ey;
        float d = sqrtf(dx * dx + dy * dy) - (c->radius[i] + (c->radius[i + 1] - c->radius[i]) * t);
        nearest = fminf(nearest, d);
    }
    return nearest;
}

void pc__fill_curve(pc__canvas *canvas, pc__point from, pc__point bend, pc__point to, float r0, float r1,
                    pc__paint paint)
{
    curve c;
    float r = fmaxf(r0, r1);
    for (int i = 0; i < CURVE_POINTS; i++) {
        float t = (float)i / (CURVE_POINTS - 1), a = (1 - t) * (1 - t), b = 2 * t * (1 - t), d = t * t;
        c.points[i] = (pc__point){a * from.x + b * bend.x + d * to.x, a * from.y + b * bend.y + d * to.y};
        c.radius[i] = r0 + (r1 - r0) * t;
    }
    pc__point low = {fminf(fminf(from.x, bend.x), to.x) - r, fminf(fminf(from.y, bend.y), to.y) - r};
    pc__point high = {fmaxf(fmaxf(from.x, bend.x), to.x) + r, fmaxf(fmaxf(from.y, bend.y), to.y) + r};
    pc__canvas_fill(canvas, curve_distance, &c, low, high, &paint);
}

void pc__path_line(pc__path *path, pc__point to)
{
    if (path->count < PC__PATH_MAX)
        path->points[path->count++] = to;
}

void pc__path_curve(pc__path *path, pc__point bend1, pc__point bend2, pc__point to)
{
    pc__point from = path->count ? path->points[path->count - 1] : to;
    for (int i = 1; i <= 7; i++) {
        float t = (float)i / 7, s = 1 - t;
        float a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t;
        pc__path_line(path, (pc__point){a * from.x + b * bend1.x + c * bend2.x + d * to.x,
                                        a * from.y + b * bend1.y + c * bend2.y + d * to.y});
    }
}

static float path_distance(const void *shape, float x, float y)
{
    const pc__path *path = shape;
    float nearest = 1e9f;
    bool inside = false;
    pc__point a = path->points[path->count - 1];
    for (int i = 0; i < path->count; i++) {
        pc__point b = path->points[i];
        float ex = b.x - a.x, ey = b.y - a.y, dx = x - a.x, dy = y - a.y;
        float t = fmaxf(0, fminf(1, (dx * ex + dy * ey) / (ex * ex + ey * ey + 1e-12f)));
        float nx = dx - t * ex, ny = dy - t * ey;
        nearest = fminf(nearest, nx * nx + ny * ny);
        if ((a.y > y) != (b.y > y) && dx < ex * (y - a.y) / ey)
            inside = !inside;
        a = b;
    }
    nearest = sqrtf(nearest);
    return (inside ? -nearest : nearest) - path->round;
}

void pc__fill_path(pc__canvas *canvas, const pc__path *path, pc__paint paint)
{
    if (path->count < 3)
        return;
    pc__point low = path->points[0], high = low;
    for (int i = 1; i < path->count; i++) {
        low = (pc__point){fminf(low.x, path->points[i].x), fminf(low.y, path->points[i].y)};
        high = (pc__point){fmaxf(high.x, path->points[i].x), fmaxf(high.y, path->points[i].y)};
    }
    pc__canvas_fill(canvas, path_distance, path, (pc__point){low.x - path->round, low.y - path->round},
                    (pc__point){high.x + path->round, high.y + path->round}, &paint);
}

void pc__blob_ellipse(pc__blob *blob, pc__point centre, float rx, float ry)
{
    blob->centre = centre;
    for (int i = 0; i < PC__BLOB_ANGLES; i++) {
        float angle = 2 * PI * (float)i / PC__BLOB_ANGLES, u = cosf(angle) / rx, v = sinf(angle) / ry;
        blob->radius[i] = 1 / sqrtf(u * u + v * v);
    }
}

void pc__blob_wave(pc__blob *blob, int waves, float height, float phase)
{
    for (int i = 0; i < PC__BLOB_ANGLES; i++)
        blob->radius[i] *= 1 + height * cosf((float)waves * 2 * PI * (float)i / PC__BLOB_ANGLES + phase);
}

void pc__blob_bump(pc__blob *blob, float angle, float width, float height)
{
    for (int i = 0; i < PC__BLOB_ANGLES; i++) {
        float away = remainderf(2 * PI * (float)i / PC__BLOB_ANGLES - angle, 2 * PI) / width;
        blob->radius[i] += height * expf(-away * away);
    }
}

static float blob_distance(const void *shape, float x, float y)
{
    const pc__blob *blob = shape;
    float dx = x - blob->centre.x, dy = y - blob->centre.y, away = sqrtf(dx * dx + dy * dy);
    if (away > blob->largest * 1.2f)
        return away - blob->largest;
    float turn = atan2f(dy, dx) / (2 * PI);
    float at = (turn < 0 ? turn + 1 : turn) * PC__BLOB_ANGLES;
    int i = (int)at;
    float t = at - (float)i, r0 = blob->radius[i % PC__BLOB_ANGLES], r1 = blob->radius[(i + 1) % PC__BLOB_ANGLES];
    return away - (r0 + (r1 - r0) * t);
}

void pc__fill_blob(pc__canvas *canvas, const pc__blob *blob, pc__paint paint)
{
    pc__blob ready = *blob;
    ready.largest = 0;
    for (int i = 0; i < PC__BLOB_ANGLES; i++)
        ready.largest = fmaxf(ready.largest, ready.radius[i]);
    float r = ready.largest;
    pc__canvas_fill(canvas, blob_distance, &ready, (pc__point){ready.centre.x - r, ready.centre.y - r},
                    (pc__point){ready.centre.x + r, ready.centre.y + r}, &paint);
}
