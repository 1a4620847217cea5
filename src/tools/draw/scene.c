/* scene.c: the grain of the hair, backgrounds, light, blur and noise. Nothing here knows the kind of face. */
#include "draw/face.h"

#include <math.h>

/* Noise smeared along the vertical: short strokes of hair. */
void pc__scene_grain(pc__canvas *canvas, pc__dice *dice)
{
    int w = canvas->width, h = canvas->height, smear = PC__MAX(2, h / 30);
    uint64_t first = dice->counter;
    size_t pixels = (size_t)w * (size_t)h;
    dice->counter += (pixels + 15) / 16;
    for (size_t i = 0; i < pixels; i += 16) {
        uint32_t words[4];
        pc_philox(dice->seed, dice->stream, first + i / 16, words);
        for (size_t j = 0; j < 16 && i + j < pixels; j++)
            canvas->scratch[i + j] = (float)(words[j / 4] >> (8 * (j % 4)) & 255) / 127.5f - 1;
    }
    float gain = 1.4f / sqrtf((float)smear);
    for (int x = 0; x < w; x++) {
        float sum = 0;
        for (int y = 0; y < h + smear; y++) {
            sum += y < h ? canvas->scratch[(size_t)y * (size_t)w + (size_t)x] : 0;
            sum -= y >= smear ? canvas->scratch[(size_t)(y - smear) * (size_t)w + (size_t)x] : 0;
            int to = y - smear / 2;
            if (to >= 0 && to < h)
                canvas->grain[(size_t)to * (size_t)w + (size_t)x] = sum * gain;
        }
    }
}

static pc__rgb any_colour(pc__dice *dice)
{
    float hue = pc__roll(dice, 0, 6), strength = pc__roll(dice, 0, 0.6f), value = pc__roll(dice, 0.2f, 0.95f);
    float wave[3];
    for (int i = 0; i < 3; i++) {
        float away = fabsf(remainderf(hue - 2 * (float)i, 6)); /* 0 at this primary, 3 opposite */
        wave[i] = value * (1 - strength * fmaxf(0, fminf(1, away - 1)));
    }
    return (pc__rgb){wave[0], wave[1], wave[2]};
}

static float everywhere(const void *shape, float x, float y)
{
    (void)shape, (void)x, (void)y;
    return -1e6f;
}

/* Fill the whole picture, from `a` to `b` along an angle. The background's frame has the picture within -1 to 1. */
static void cover(pc__canvas *canvas, pc__rgb a, pc__rgb b, float angle)
{
    pc__paint paint = pc__solid(a);
    paint.gradient = true;
    paint.second = b;
    paint.end = (pc__point){cosf(angle), sinf(angle)};
    paint.start = (pc__point){-paint.end.x, -paint.end.y};
    pc__canvas_fill(canvas, everywhere, NULL, (pc__point){-4, -4}, (pc__point){4, 4}, &paint);
}

static void plain(pc__canvas *canvas, pc__dice *dice)
{
    pc__rgb a = any_colour(dice);
    cover(canvas, a, pc__mix(a, (pc__rgb){0, 0, 0}, 0.15f), 1.2f);
}

static void gradient(pc__canvas *canvas, pc__dice *dice)
{
    pc__rgb a = any_colour(dice), b = any_colour(dice);
    cover(canvas, a, b, pc__roll(dice, 0, 6.28f));
}

static void blobs(pc__canvas *canvas, pc__dice *dice)
{
    plain(canvas, dice);
    int n = 4 + pc__pick(dice, 8);
    for (int i = 0; i < n; i++) {
        float x = pc__roll(dice, -1.2f, 1.2f), y = pc__roll(dice, -1.2f, 1.2f);
        float rx = pc__roll(dice, 0.1f, 0.5f), ry = rx * pc__roll(dice, 0.6f, 1.4f), soft = pc__roll(dice, 0, 0.3f);
        float alpha = pc__roll(dice, 0.3f, 1);
        pc__fill_ellipse(canvas, (pc__point){x, y}, rx, ry, x * 3, pc__glaze(any_colour(dice), alpha, soft));
    }
}

static void stripes(pc__canvas *canvas, pc__dice *dice)
{
    plain(canvas, dice);
    pc__rgb a = any_colour(dice);
    float angle = pc__roll(dice, 0, 3.14f), gap = pc__roll(dice, 0.2f, 0.6f), thick = gap * pc__roll(dice, 0.1f, 0.3f);
    float soft = pc__roll(dice, 0, 0.05f), c = cosf(angle), s = sinf(angle);
    int ways = 1 + pc__pick(dice, 2); /* 2: a plaid */
    for (int way = 0; way < ways; way++) {
        for (float at = -1.6f; at < 1.6f; at += gap) {
            pc__point from = {at * c - 2 * s, at * s + 2 * c}, to = {at * c + 2 * s, at * s - 2 * c};
            pc__path line = {.round = thick};
            pc__path_line(&line, from);
            pc__path_line(&line, (pc__point){to.x + 0.01f, to.y});
            pc__path_line(&line, to);
            pc__fill_path(canvas, &line, pc__glaze(a, 0.7f, soft));
        }
        float kept = c;
        c = -s, s = kept;
    }
}

static void meadow(pc__canvas *canvas, pc__dice *dice)
{
    float horizon = pc__roll(dice, -0.4f, 0.5f), day = pc__roll(dice, 0, 1);
    pc__rgb high = pc__mix((pc__rgb){.30f, .52f, .82f}, (pc__rgb){.75f, .55f, .50f}, day * day);
    cover(canvas, high, (pc__rgb){.86f, .90f, .93f}, 1.5708f);
    float hill = pc__roll(dice, -1, 1), rise = pc__roll(dice, 0.1f, 0.4f);
    pc__rgb far = {.35f, .50f, .38f};
    pc__rgb near = pc__mix((pc__rgb){.30f, .52f, .18f}, (pc__rgb){.62f, .58f, .28f}, pc__roll(dice, 0, 1));
    pc__fill_ellipse(canvas, (pc__point){hill, horizon + 0.5f}, 1.3f, 0.5f + rise, 0, pc__solid(far));
    pc__fill_ellipse(canvas, (pc__point){0, horizon + 4}, 6, 4, 0, pc__solid(near));
    for (int i = 0; i < 70; i++) {
        float x = pc__roll(dice, -1.3f, 1.3f), y = pc__roll(dice, horizon + 0.1f, 1.4f),
              lean = pc__roll(dice, -0.1f, 0.1f);
        float tall = 0.12f + 0.16f * (y - horizon), shade = pc__roll(dice, -0.45f, 0.45f);
        pc__rgb blade = pc__mix(near, shade < 0 ? (pc__rgb){0, .1f, 0} : (pc__rgb){.9f, 1, .5f}, fabsf(shade));
        pc__fill_curve(canvas, (pc__point){x, y}, (pc__point){x, y - tall * 0.6f}, (pc__point){x + lean, y - tall},
                       0.018f, 0.004f, pc__solid(blade));
    }
}

static void room(pc__canvas *canvas, pc__dice *dice)
{
    pc__rgb wall = any_colour(dice);
    pc__rgb wood = pc__mix(any_colour(dice), (pc__rgb){.5f, .36f, .24f}, 0.6f);
    float edge = pc__roll(dice, 0.1f, 0.8f), slope = pc__roll(dice, -0.15f, 0.15f);
    cover(canvas, pc__mix(wall, (pc__rgb){1, 1, 1}, 0.2f), wall, pc__roll(dice, 0, 6.28f));
    if (pc__chance(dice, 0.7f)) { /* a window or a picture on the wall */
        float x = pc__roll(dice, -1, 1), y = pc__roll(dice, -1, -0.2f), w = pc__roll(dice, 0.2f, 0.4f);
        float h = pc__roll(dice, 0.2f, 0.4f);
        pc__path frame = {.round = 0.03f};
        pc__path_line(&frame, (pc__point){x - w, y - h});
        pc__path_line(&frame, (pc__point){x + w, y - h});
        pc__path_line(&frame, (pc__point){x + w, y + h});
        pc__path_line(&frame, (pc__point){x - w, y + h});
        pc__fill_path(canvas, &frame, pc__solid(pc__mix(any_colour(dice), (pc__rgb){.3f, .2f, .15f}, 0.5f)));
        frame.round = -0.02f;
        pc__fill_path(canvas, &frame, pc__solid(pc__mix(any_colour(dice), (pc__rgb){.8f, .9f, 1}, 0.4f)));
    }
    pc__path ground = {.count = 0};
    pc__path_line(&ground, (pc__point){-2, edge - slope});
    pc__path_line(&ground, (pc__point){2, edge + slope});
    pc__path_line(&ground, (pc__point){2, 3});
    pc__path_line(&ground, (pc__point){-2, 3});
    pc__paint boards = pc__solid(wood);
    boards.gradient = true;
    boards.second = pc__mix(wood, (pc__rgb){0, 0, 0}, 0.35f);
    boards.start = (pc__point){0, edge};
    boards.end = (pc__point){0, 1.4f};
    pc__fill_path(canvas, &ground, boards);
}

void pc__scene_background(pc__canvas *canvas, pc__dice *dice)
{
    static void (*const kinds[])(pc__canvas *, pc__dice *) = {plain, gradient, blobs, stripes, meadow, room};
    float w = (float)canvas->width, h = (float)canvas->height;
    pc__canvas_frame(canvas, (pc__point){w / 2, h / 2}, fmaxf(w, h) / 2, 0);
    canvas->light = (pc__point){0, 0};
    kinds[pc__pick(dice, PC__COUNT(kinds))](canvas, dice);
}

/* Brightness falling off in one direction, contrast, and the colour of the light. */
void pc__scene_light(pc__canvas *canvas, pc__dice *dice)
{
    float angle = pc__roll(dice, 0, 6.28f), fall = pc__roll(dice, 0, 0.3f), bright = pc__roll(dice, 0.8f, 1.2f);
    float contrast = pc__roll(dice, 0.8f, 1.15f), warm = pc__roll(dice, -0.12f, 0.12f);
    float gain[3] = {bright * (1 + warm), bright, bright * (1 - warm)};
    float dx = 2 * fall * cosf(angle) / (float)canvas->width, dy = 2 * fall * sinf(angle) / (float)canvas->height;
    float *out = canvas->rgb;
    for (int y = 0; y < canvas->height; y++)
        for (int x = 0; x < canvas->width; x++, out += 3) {
            float here = 1 + dx * ((float)x - (float)canvas->width / 2) + dy * ((float)y - (float)canvas->height / 2);
            for (int k = 0; k < 3; k++)
                out[k] = 0.5f + contrast * (gain[k] * here * out[k] - 0.5f);
        }
}

/* One pass of (k, 1 - 2k, k) along rows or columns: `step` floats between neighbours, edges repeated. */
static void smooth_line(float *line, float *copy, int n, size_t step, float k)
{
    for (int i = 0; i < n; i++)
        copy[i] = line[(size_t)i * step];
    for (int i = 0; i < n; i++) {
        float before = copy[i > 0 ? i - 1 : 0], after = copy[i + 1 < n ? i + 1 : n - 1];
        line[(size_t)i * step] = copy[i] + k * (before + after - 2 * copy[i]);
    }
}

void pc__scene_blur(pc__canvas *canvas, pc__dice *dice)
{
    /* out of focus by up to about one pixel in 150; most pictures are sharp */
    float sigma = pc__roll(dice, 0, 1);
    sigma = 1.1f * sigma * sigma * (float)PC__MAX(canvas->width, canvas->height) / 150;
    int passes = 1 + (int)(2 * sigma * sigma);
    float k = sigma * sigma / (2 * (float)passes);
    size_t row = (size_t)canvas->width * 3;
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < canvas->height; y++)
            for (size_t c = 0; c < 3; c++)
                smooth_line(canvas->rgb + (size_t)y * row + c, canvas->scratch, canvas->width, 3, k);
        for (size_t x = 0; x < row; x++)
            smooth_line(canvas->rgb + x, canvas->scratch, canvas->height, row, k);
    }
}

void pc__scene_develop(const pc__canvas *canvas, pc__dice *dice, uint8_t *pixels)
{
    float noise = pc__roll(dice, 0, 1), colour = pc__roll(dice, 0.2f, 0.7f);
    noise *= noise * 0.07f;
    size_t n = (size_t)canvas->width * (size_t)canvas->height;
    for (size_t i = 0; i < n; i++) {
        uint32_t words[4];
        pc_philox(dice->seed, dice->stream, dice->counter + i, words);
        float grey = 0;
        for (int k = 0; k < 4; k++) /* the sum of four uniform numbers is close to a normal one */
            grey += (float)(words[3] >> (8 * k) & 255) - 127.5f;
        for (size_t k = 0; k < 3; k++) {
            float own = (float)(words[k] >> 16) / 256 + (float)(words[k] & 0xffff) / 256 - 256;
            float value = canvas->rgb[3 * i + k] + noise * (grey + colour * own) / 147;
            pixels[3 * i + k] = (uint8_t)(value <= 0 ? 0 : value >= 1 ? 255 : value * 255 + 0.5f);
        }
    }
    dice->counter += n;
}
