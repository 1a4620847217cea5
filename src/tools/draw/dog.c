/* dog.c: hanging, folded or upright round ears, a long muzzle with a big nose, often a tongue; spots, patches,
 * blazes and tan brows. */
#include "draw/face.h"

#include <math.h>

typedef enum ears { HANGING, FOLDED, UPRIGHT } ears;

typedef struct dog {
    pc__coat coat;
    pc__pose pose;
    float width, height;
    float muzzle_width, muzzle_length; /* half axes */
    ears ears;
    float ear_length, ear_width;
    bool dark_ears, dark_muzzle, pale_muzzle, blaze, brows, eye_patch, tongue;
    int spots;
    pc__rgb nose;
} dog;

static void roll(dog *d, pc__dice *dice)
{
    pc__coat_roll(&d->coat, dice);
    d->pose.turn = pc__roll(dice, -0.26f, 0.26f);
    d->pose.nod = pc__roll(dice, -0.18f, 0.18f);
    d->width = pc__roll(dice, 0.82f, 0.98f);
    d->height = pc__roll(dice, 0.88f, 1.02f);
    d->muzzle_width = pc__roll(dice, 0.38f, 0.52f);
    d->muzzle_length = pc__roll(dice, 0.45f, 0.6f);
    float ear_kind = pc__roll(dice, 0, 1);
    d->ears = ear_kind < 0.65f ? HANGING : ear_kind < 0.83f ? FOLDED : UPRIGHT;
    d->ear_length = pc__roll(dice, 0.8f, 1.2f);
    d->ear_width = pc__roll(dice, 0.85f, 1.15f);
    d->dark_ears = pc__chance(dice, 0.6f);
    d->dark_muzzle = pc__chance(dice, 0.2f);
    d->pale_muzzle = !d->dark_muzzle && pc__chance(dice, 0.6f);
    d->blaze = pc__chance(dice, 0.3f);
    d->brows = pc__luma(d->coat.base) < 0.5f && pc__chance(dice, 0.4f);
    d->eye_patch = pc__chance(dice, 0.2f);
    d->tongue = pc__chance(dice, 0.4f);
    d->spots = pc__chance(dice, 0.15f) ? 5 + pc__pick(dice, 6) : 0;
    d->nose = pc__chance(dice, 0.85f) ? (pc__rgb){.09f, .08f, .09f} : (pc__rgb){.42f, .26f, .22f};
}

static pc__rgb ear_colour(const dog *d)
{
    return d->dark_ears ? pc__mix(d->coat.base, d->coat.dark, 0.8f) : pc__mix(d->coat.base, d->coat.dark, 0.3f);
}

static pc__point at(const dog *d, float side, float x, float y, float depth)
{
    return pc__place(&d->pose, side * x * d->width, y * d->height, depth);
}

static void hanging_ear(pc__canvas *canvas, const dog *d, float side, float swing)
{
    float wide = d->ear_width * pc__narrow(&d->pose, side), low = -0.75f + 1.15f * d->ear_length;
    pc__path shape = {.round = 0.06f};
    pc__path_line(&shape, at(d, side, 0.5f, -0.82f, 0.3f));
    pc__path_curve(&shape, at(d, side, 0.8f + 0.3f * wide, -1.0f, 0.1f),
                   at(d, side, 0.9f + 0.5f * wide + swing, -0.2f, 0), at(d, side, 0.85f + 0.4f * wide + swing, low, 0));
    pc__path_curve(&shape, at(d, side, 0.8f + 0.3f * wide + swing, low + 0.25f, 0),
                   at(d, side, 0.78f + swing, low + 0.15f, 0.1f), at(d, side, 0.78f + 0.5f * swing, low - 0.3f, 0.1f));
    pc__path_curve(&shape, at(d, side, 0.8f, -0.2f, 0.1f), at(d, side, 0.7f, -0.5f, 0.2f),
                   at(d, side, 0.5f, -0.82f, 0.3f));
    pc__path shadow = shape;
    shadow.round = 0.1f;
    pc__paint dim = pc__glaze(d->coat.line, 0.35f, 0.12f);
    dim.clip = PC__CLIP_INSIDE;
    pc__fill_path(canvas, &shadow, dim);
    pc__paint hair = pc__hair(&d->coat, ear_colour(d));
    hair.gradient = true;
    hair.second = pc__mix(hair.colour, d->coat.dark, 0.5f);
    hair.start = at(d, side, 0.5f, -0.7f, 0);
    hair.end = at(d, side, 1, low, 0);
    pc__fill_path(canvas, &shape, hair);
}

static void upright_ear(pc__canvas *canvas, const dog *d, float side, float swing)
{
    float top = -0.75f - 0.72f * d->ear_length, wide = 0.1f * d->ear_width;
    pc__path shape = {.round = 0.1f};
    pc__path_line(&shape, at(d, side, 0.32f, -0.7f, 0.1f));
    pc__path_curve(&shape, at(d, side, 0.36f, -1.0f, 0.1f), at(d, side, 0.5f + swing - wide, top + 0.1f, 0),
                   at(d, side, 0.66f + swing, top, 0));
    pc__path_curve(&shape, at(d, side, 0.8f + swing + wide, top + 0.1f, 0), at(d, side, 0.95f + wide, -0.8f, 0),
                   at(d, side, 0.88f, -0.3f, 0.1f));
    pc__fill_path(canvas, &shape, pc__hair(&d->coat, ear_colour(d)));
    pc__point middle = at(d, side, 0.62f, -0.55f, 0.1f);
    for (int i = 0; i < shape.count; i++) {
        shape.points[i].x += (middle.x - shape.points[i].x) * 0.35f;
        shape.points[i].y += (middle.y - shape.points[i].y) * 0.25f;
    }
    shape.round = 0.02f;
    pc__fill_path(canvas, &shape, pc__solid(pc__mix((pc__rgb){.80f, .56f, .52f}, d->coat.dark, 0.45f)));
}

/* The lower half stands, the tip falls forward over it. */
static void folded_ear(pc__canvas *canvas, const dog *d, float side, float swing)
{
    float top = -0.8f - 0.42f * d->ear_length;
    pc__path stand = {.round = 0.06f};
    pc__path_line(&stand, at(d, side, 0.3f, -0.7f, 0.1f));
    pc__path_line(&stand, at(d, side, 0.46f, top, 0));
    pc__path_line(&stand, at(d, side, 0.95f + swing, top + 0.12f, 0));
    pc__path_line(&stand, at(d, side, 0.9f, -0.3f, 0.1f));
    pc__fill_path(canvas, &stand, pc__hair(&d->coat, pc__mix(d->coat.base, d->coat.dark, 0.35f)));
    pc__path tip = {.round = 0.07f};
    pc__path_line(&tip, at(d, side, 0.44f, top, 0));
    pc__path_curve(&tip, at(d, side, 0.7f, top - 0.12f, 0), at(d, side, 0.9f, top - 0.05f, 0),
                   at(d, side, 0.98f + swing, top + 0.15f, 0));
    pc__path_line(&tip, at(d, side, 0.98f + swing, top + 0.55f * d->ear_length, 0.3f));
    pc__fill_path(canvas, &tip, pc__hair(&d->coat, pc__mix(ear_colour(d), d->coat.dark, 0.4f)));
}

static void head(pc__canvas *canvas, const dog *d, pc__dice *dice)
{
    pc__blob outline;
    pc__blob_ellipse(&outline, (pc__point){0, 0}, d->width, d->height);
    pc__blob_bump(&outline, 1.0f, 0.4f, -0.06f); /* the face narrows below the cheeks */
    pc__blob_bump(&outline, 3.1416f - 1.0f, 0.4f, -0.06f);
    pc__blob_hair(&outline, dice, 0.03f);
    pc__paint hair = pc__hair(&d->coat, d->coat.base);
    hair.clip = PC__CLIP_ADD;
    pc__fill_blob(canvas, &outline, hair);
}

static void spots(pc__canvas *canvas, const dog *d, pc__dice *dice)
{
    pc__paint hair = pc__hair(&d->coat, pc__luma(d->coat.base) > 0.4f ? d->coat.dark : d->coat.light);
    hair.clip = PC__CLIP_INSIDE;
    for (int i = 0; i < d->spots; i++) {
        float x = pc__roll(dice, -0.9f, 0.9f), y = pc__roll(dice, -0.9f, 0.5f);
        float rx = pc__roll(dice, 0.05f, 0.14f), ry = pc__roll(dice, 0.05f, 0.14f);
        pc__fill_ellipse(canvas, (pc__point){x, y}, rx, ry, 0, hair);
    }
}

static void markings(pc__canvas *canvas, const dog *d, pc__dice *dice)
{
    spots(canvas, d, dice);
    pc__paint hair = pc__hair(&d->coat, d->coat.dark);
    hair.clip = PC__CLIP_INSIDE;
    hair.soft = 0.06f;
    float patch_side = pc__chance(dice, 0.5f) ? 1 : -1;
    if (d->eye_patch)
        pc__fill_ellipse(canvas, at(d, patch_side, 0.42f, -0.15f, 0.75f), 0.36f, 0.42f, patch_side * 0.4f, hair);
    hair.colour = d->coat.white;
    if (d->blaze) {
        float wide = pc__roll(dice, 0.06f, 0.16f);
        pc__fill_curve(canvas, at(d, 1, 0, -1.05f, 0.5f), at(d, 1, 0, -0.5f, 0.85f), at(d, 1, 0, 0.4f, 1.1f), wide,
                       wide + 0.12f, hair);
    }
    hair.colour = (pc__rgb){.72f, .48f, .26f}, hair.soft = 0.08f;
    if (d->brows)
        for (int side = -1; side <= 1; side += 2)
            pc__fill_ellipse(canvas, at(d, (float)side, 0.36f, -0.42f, 0.8f), 0.12f, 0.08f, 0, hair);
}

static void tongue(pc__canvas *canvas, pc__point lip, pc__dice *dice)
{
    float length = pc__roll(dice, 0.25f, 0.45f), wide = pc__roll(dice, 0.13f, 0.18f),
          lean = pc__roll(dice, -0.1f, 0.1f);
    pc__point end = {lip.x + lean, lip.y + length};
    pc__fill_ellipse(canvas, (pc__point){lip.x, lip.y + 0.03f}, 1.5f * wide, 0.13f, 0,
                     pc__solid((pc__rgb){.22f, .07f, .08f}));
    pc__fill_curve(canvas, lip, (pc__point){lip.x, lip.y + 0.5f * length}, end, 0.8f * wide, wide,
                   pc__solid((pc__rgb){.88f, .42f, .46f}));
    pc__fill_curve(canvas, lip, (pc__point){lip.x, lip.y + 0.5f * length}, end, 0.02f, 0.01f,
                   pc__glaze((pc__rgb){.65f, .25f, .30f}, 0.8f, 0));
}

static void muzzle(pc__canvas *canvas, const dog *d, pc__dice *dice)
{
    const pc__coat *coat = &d->coat;
    float w = d->muzzle_width, l = d->muzzle_length;
    pc__point centre = pc__place(&d->pose, 0, 0.5f, 1.0f), tip = pc__place(&d->pose, 0, 0.5f - 0.35f * l, 1.25f);
    pc__point lip = {tip.x + 0.5f * (centre.x - tip.x), centre.y + 0.62f * l};
    pc__rgb colour = d->dark_muzzle   ? pc__mix(coat->dark, (pc__rgb){.1f, .09f, .09f}, 0.4f)
                     : d->pale_muzzle ? pc__mix(coat->light, coat->white, d->blaze ? 0.9f : 0.2f)
                                      : pc__mix(coat->base, coat->light, 0.25f);
    pc__fill_ellipse(canvas, (pc__point){centre.x, centre.y - 0.02f}, w * 1.12f, l * 1.08f, 0,
                     pc__glaze(coat->line, 0.3f, 0.15f));
    pc__paint hair = pc__hair(coat, colour);
    hair.soft = 0.03f;
    pc__fill_ellipse(canvas, centre, w, l, 0, hair);
    pc__fill_ellipse(canvas, pc__place(&d->pose, 0, 0.05f, 1), w * 0.62f, 0.4f, 0, hair); /* the bridge */
    if (d->tongue)
        tongue(canvas, lip, dice);
    for (int side = -1; side <= 1; side += 2) {
        pc__point corner = {centre.x + (float)side * w * 0.82f, centre.y + 0.3f * l};
        pc__fill_curve(canvas, lip, (pc__point){(lip.x + corner.x) / 2 + (float)side * 0.05f, lip.y + 0.1f}, corner,
                       0.028f, 0.012f, pc__glaze(coat->line, 0.9f, 0));
    }
    pc__fill_curve(canvas, tip, tip, lip, 0.02f, 0.025f, pc__glaze(coat->line, 0.9f, 0));
    float size = pc__roll(dice, 0.19f, 0.26f);
    pc__blob nose;
    pc__blob_ellipse(&nose, tip, size, size * 0.74f);
    pc__blob_wave(&nose, 3, 0.07f, 1.5708f); /* towards a rounded triangle, its point below */
    pc__fill_blob(canvas, &nose, pc__solid(d->nose));
    pc__fill_ellipse(canvas, (pc__point){tip.x - 0.05f, tip.y - 0.4f * size}, 0.4f * size, 0.16f * size, 0,
                     pc__glaze((pc__rgb){1, 1, 1}, 0.45f, 0.05f));
    for (int side = -1; side <= 1; side += 2)
        pc__fill_ellipse(canvas, (pc__point){tip.x + (float)side * 0.42f * size, tip.y + 0.2f * size}, 0.18f * size,
                         0.12f * size, 0, pc__glaze((pc__rgb){0, 0, 0}, 0.8f, 0));
}

static void eyes(pc__canvas *canvas, const dog *d, pc__dice *dice)
{
    static const pc__rgb irises[] = {{.30f, .17f, .09f}, {.22f, .13f, .09f}, {.45f, .28f, .12f},
                                     {.55f, .38f, .15f}, {.35f, .22f, .12f}, {.45f, .62f, .78f}};
    pc__eyes e = {.rim = pc__mix(d->coat.line, (pc__rgb){0, 0, 0}, 0.5f)};
    e.apart = pc__roll(dice, 0.36f, 0.43f) * d->width;
    e.height = pc__roll(dice, -0.28f, -0.16f);
    e.rx = pc__roll(dice, 0.14f, 0.19f);
    e.ry = e.rx * pc__roll(dice, 0.8f, 1.0f);
    e.tilt = pc__roll(dice, -0.25f, 0.15f);
    e.iris = irises[pc__pick(dice, PC__COUNT(irises))];
    e.pupil_x = e.pupil_y = pc__roll(dice, 0.5f, 0.65f);
    e.gaze_x = pc__roll(dice, -0.15f, 0.15f);
    e.gaze_y = pc__roll(dice, -0.1f, 0.15f);
    e.closed = pc__chance(dice, 0.04f);
    pc__draw_eyes(canvas, &d->pose, &e);
}

void pc__draw_dog(pc__canvas *canvas, pc__dice *dice)
{
    static void (*const draw_ear[])(pc__canvas *, const dog *, float, float) = {hanging_ear, folded_ear, upright_ear};
    dog d;
    roll(&d, dice);
    float left = pc__roll(dice, -0.06f, 0.08f), right = pc__roll(dice, -0.06f, 0.08f);
    pc__draw_body(canvas, &d.coat, &d.pose, dice);
    if (pc__chance(dice, 0.3f))
        pc__draw_collar(canvas, &d.pose, dice);
    if (d.ears != HANGING) {
        draw_ear[d.ears](canvas, &d, -1, left);
        draw_ear[d.ears](canvas, &d, 1, right);
    }
    pc__canvas_unmask(canvas);
    head(canvas, &d, dice);
    markings(canvas, &d, dice);
    eyes(canvas, &d, dice);
    muzzle(canvas, &d, dice);
    if (d.ears == HANGING) {
        hanging_ear(canvas, &d, -1, left);
        hanging_ear(canvas, &d, 1, right);
    }
}
