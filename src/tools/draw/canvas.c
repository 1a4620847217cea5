/* canvas.c: the canvas and the one loop that paints. The shapes are in shape.c. */
#include "draw/canvas.h"

#include <math.h>

pc_status pc__canvas_new(pc__canvas *canvas, int width, int height)
{
    size_t pixels = (size_t)width * (size_t)height;
    *canvas = (pc__canvas){.width = width, .height = height};
    float *block = pc__calloc(pixels * 8, sizeof(float));
    if (!block)
        return PC_ERR_MEMORY;
    canvas->rgb = block;
    canvas->scratch = block + pixels * 3;
    canvas->mask = block + pixels * 6;
    canvas->grain = block + pixels * 7;
    pc__canvas_frame(canvas, (pc__point){0, 0}, 1, 0);
    return PC_OK;
}

void pc__canvas_free(pc__canvas *canvas)
{
    pc__free(canvas->rgb);
    *canvas = (pc__canvas){0};
}

void pc__canvas_frame(pc__canvas *canvas, pc__point origin, float scale, float angle)
{
    canvas->origin = origin;
    canvas->scale = scale;
    canvas->cosine = cosf(angle);
    canvas->sine = sinf(angle);
}

void pc__canvas_unmask(pc__canvas *canvas)
{
    memset(canvas->mask, 0, (size_t)canvas->width * (size_t)canvas->height * sizeof(float));
}

typedef struct box {
    int left, top, right, bottom; /* right and bottom are outside */
} box;

/* The pixels that the turned rectangle low..high can touch. */
static box pixels_of(const pc__canvas *canvas, pc__point low, pc__point high)
{
    float middle_x = (low.x + high.x) / 2, middle_y = (low.y + high.y) / 2;
    float half_x = (high.x - low.x) / 2 * canvas->scale, half_y = (high.y - low.y) / 2 * canvas->scale;
    float x = canvas->origin.x + canvas->scale * (canvas->cosine * middle_x - canvas->sine * middle_y);
    float y = canvas->origin.y + canvas->scale * (canvas->sine * middle_x + canvas->cosine * middle_y);
    float c = fabsf(canvas->cosine), s = fabsf(canvas->sine);
    float reach_x = c * half_x + s * half_y + 1, reach_y = s * half_x + c * half_y + 1;
    float w = (float)canvas->width, h = (float)canvas->height;
    return (box){(int)fmaxf(0, fminf(w, x - reach_x)), (int)fmaxf(0, fminf(h, y - reach_y)),
                 (int)fmaxf(0, fminf(w, x + reach_x + 1)), (int)fmaxf(0, fminf(h, y + reach_y + 1))};
}

static inline float clamp01(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static pc__rgb colour_at(const pc__canvas *canvas, const pc__paint *paint, float x, float y, size_t pixel)
{
    pc__rgb c = paint->colour;
    if (paint->gradient) {
        float dx = paint->end.x - paint->start.x, dy = paint->end.y - paint->start.y;
        float t = ((x - paint->start.x) * dx + (y - paint->start.y) * dy) / (dx * dx + dy * dy);
        c = pc__mix(c, paint->second, clamp01(t));
    }
    float lit = 1 + canvas->light.x * x + canvas->light.y * y;
    lit = (lit < 0.55f ? 0.55f : lit > 1.4f ? 1.4f : lit) * (1 + paint->fur * canvas->grain[pixel]);
    /* hair also catches light of its own, or black fur would be flat */
    float shine = paint->fur * 0.12f * canvas->grain[pixel];
    return (pc__rgb){c.r * lit + shine, c.g * lit + shine, c.b * lit + shine};
}

void pc__canvas_fill(pc__canvas *canvas, pc__distance distance, const void *shape, pc__point low, pc__point high,
                     const pc__paint *paint)
{
    float margin = paint->soft;
    box area =
        pixels_of(canvas, (pc__point){low.x - margin, low.y - margin}, (pc__point){high.x + margin, high.y + margin});
    float per_unit = 1 / (1 / canvas->scale + paint->soft);
    float step_x = canvas->cosine / canvas->scale, step_y = -canvas->sine / canvas->scale;
    for (int row = area.top; row < area.bottom; row++) {
        float px = (float)area.left + 0.5f - canvas->origin.x, py = (float)row + 0.5f - canvas->origin.y;
        float x0 = (canvas->cosine * px + canvas->sine * py) / canvas->scale;
        float y0 = (-canvas->sine * px + canvas->cosine * py) / canvas->scale;
        for (int column = area.left; column < area.right; column++) {
            size_t pixel = (size_t)row * (size_t)canvas->width + (size_t)column;
            if (paint->clip == PC__CLIP_INSIDE && canvas->mask[pixel] <= 0)
                continue;
            float n = (float)(column - area.left), x = x0 + n * step_x, y = y0 + n * step_y;
            float cover = clamp01(0.5f - distance(shape, x, y) * per_unit);
            if (cover <= 0)
                continue;
            if (paint->soft > 0)
                cover = cover * cover * (3 - 2 * cover);
            if (paint->clip == PC__CLIP_ADD && cover > canvas->mask[pixel])
                canvas->mask[pixel] = cover;
            cover *= paint->alpha * (paint->clip == PC__CLIP_INSIDE ? canvas->mask[pixel] : 1);
            pc__rgb c = colour_at(canvas, paint, x, y, pixel);
            float *out = canvas->rgb + 3 * pixel;
            out[0] += (c.r - out[0]) * cover;
            out[1] += (c.g - out[1]) * cover;
            out[2] += (c.b - out[2]) * cover;
        }
    }
}
