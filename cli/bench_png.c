/* bench_png.c: a plot as a PNG: lines and dots by how much of a pixel they cover, words by the pen of
 * bench_letters.c. */
#include <math.h>
#include <string.h>

#include <paracord/image.h>

#include "bench_plot.h"

enum { SCALE = 2, CURVE = 8, POINTS = 12 }; /* pixels to a unit; pieces of a curve; most points of a stroke */

/* So much of a pixel in the ink's colour. */
static void blend(pc_image *image, int x, int y, bench_ink ink, double part)
{
    if (x < 0 || y < 0 || x >= image->width || y >= image->height || part <= 0)
        return;
    uint8_t *pixel = image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
    for (int k = 0; k < 3; k++) {
        const int colour = (int)(bench_colours[ink].light >> (16 - 8 * k) & 255);
        pixel[k] = (uint8_t)lround(pixel[k] + fmin(part, 1) * (colour - pixel[k]));
    }
}

/* A line with round ends, in units of the plot. */
static void line(pc_image *image, double x0, double y0, double x1, double y1, double width, bench_ink ink)
{
    x0 *= SCALE, y0 *= SCALE, x1 *= SCALE, y1 *= SCALE;
    const double half = width * SCALE / 2, dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
    const int left = (int)floor(fmin(x0, x1) - half - 1), right = (int)ceil(fmax(x0, x1) + half + 1);
    const int top = (int)floor(fmin(y0, y1) - half - 1), bottom = (int)ceil(fmax(y0, y1) + half + 1);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            const double px = x + 0.5 - x0, py = y + 0.5 - y0;
            const double along = square > 0 ? fmin(fmax((px * dx + py * dy) / square, 0), 1) : 0;
            blend(image, x, y, ink, half + 0.5 - hypot(px - along * dx, py - along * dy));
        }
}

static void dotted(pc_image *image, const bench_line *l)
{
    const double length = hypot(l->x1 - l->x0, l->y1 - l->y0);
    for (double at = 0; at < length; at += 5) {
        const double x = l->x0 + at / length * (l->x1 - l->x0), y = l->y0 + at / length * (l->y1 - l->y0);
        line(image, x, y, x, y, l->width, l->ink);
    }
}

/* --- words --- */

typedef struct pen {
    pc_image *image;
    const bench_words *words;
    double at, unit, right_x, right_y; /* along the base line; a unit of letters; the base line's direction */
} pen;

typedef struct point {
    double x, y;
} point;

static void draw(const pen *p, point from, point to)
{
    const double y0 = (from.y - 10) * p->unit, y1 = (to.y - 10) * p->unit; /* below the base line */
    const double x0 = p->at + from.x * p->unit * 0.88, x1 = p->at + to.x * p->unit * 0.88;
    line(p->image, p->words->x + x0 * p->right_x + y0 * p->right_y, p->words->y - x0 * p->right_y + y0 * p->right_x,
         p->words->x + x1 * p->right_x + y1 * p->right_y, p->words->y - x1 * p->right_y + y1 * p->right_x,
         p->words->size * (p->words->bold ? 0.13 : 0.09), p->words->ink);
}

static point between(point a, point b)
{
    return (point){(a.x + b.x) / 2, (a.y + b.y) / 2};
}

/* A parabola from a to c, drawn towards b. */
static void curve(const pen *p, point a, point b, point c)
{
    point last = a;
    for (int i = 1; i <= CURVE; i++) {
        const double t = (double)i / CURVE, s = 1 - t;
        const point next = {s * s * a.x + 2 * s * t * b.x + t * t * c.x, s * s * a.y + 2 * s * t * b.y + t * t * c.y};
        draw(p, last, next);
        last = next;
    }
}

static void stroke(const pen *p, char kind, const point *points, int n)
{
    const bool closed = kind == '@';
    if (kind != '~' && !closed) {
        for (int i = 0; i + 1 < n; i++)
            draw(p, points[i], points[i + 1]);
        return;
    }
    for (int i = closed ? 0 : 1; i < (closed ? n : n - 1); i++) {
        const point before = points[(i + n - 1) % n], here = points[i], after = points[(i + 1) % n];
        curve(p, !closed && i == 1 ? before : between(before, here), here,
              !closed && i == n - 2 ? after : between(here, after));
    }
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void letter(const pen *p, const char *strokes)
{
    while (*strokes) {
        point points[POINTS];
        int n = 0;
        const char kind = *strokes == '~' || *strokes == '@' ? *strokes++ : 0;
        for (; *strokes && *strokes != ' ' && n < POINTS; strokes += 2)
            points[n++] = (point){digit(strokes[0]), digit(strokes[1])};
        stroke(p, kind, points, n);
        strokes += *strokes == ' ';
    }
}

static double step(const pen *p, char c)
{
    int width;
    bench_letter(c, &width);
    return (width * 0.88 + 2.6) * p->unit;
}

static void words(pc_image *image, const bench_words *w)
{
    const double turn = w->tilt * acos(-1) / 180;
    pen p = {image, w, .unit = w->size * 0.072, .right_x = cos(turn), .right_y = sin(turn)};
    double length = 0;
    int width;
    for (const char *c = w->text; *c; c++)
        length += step(&p, *c);
    p.at = w->align == ALIGN_LEFT ? 0 : w->align == ALIGN_MIDDLE ? -length / 2 : -length;
    for (const char *c = w->text; *c; c++) {
        letter(&p, bench_letter(*c, &width));
        p.at += step(&p, *c);
    }
}

bool bench_write_png(const void *plot, FILE *out)
{
    const bench_plot *p = plot;
    pc_image image;
    uint8_t *bytes;
    size_t n;
    if (pc_image_new(p->width * SCALE, p->height * SCALE, 3, &image) != PC_OK)
        return false;
    memset(image.pixels, 255, (size_t)image.width * (size_t)image.height * 3);
    for (int i = 0; i < p->line_count; i++) {
        const bench_line *l = &p->lines[i];
        if (l->dotted)
            dotted(&image, l);
        else
            line(&image, l->x0, l->y0, l->x1, l->y1, l->width, l->ink);
    }
    for (int i = 0; i < p->dot_count; i++) {
        const bench_dot *d = &p->dots[i];
        line(&image, d->x, d->y, d->x, d->y, 2 * d->radius + 1.5, INK_PAPER);
        line(&image, d->x, d->y, d->x, d->y, 2 * d->radius - 1.5, d->ink);
    }
    for (int i = 0; i < p->word_count; i++)
        words(&image, &p->words[i]);
    const bool fine = pc_image_encode_png(&image, &bytes, &n) == PC_OK;
    pc_image_free(&image);
    if (!fine)
        return false;
    fwrite(bytes, 1, n, out);
    pc_image_bytes_free(bytes);
    return true;
}
