/* cat.c: triangular ears, almond eyes, a small nose, pads with whiskers; tabby, pointed, patched or plain. */
#include "draw/face.h"

#include <math.h>

static const pc__rgb pink = {.88f, .60f, .58f};

typedef struct cat {
    pc__coat coat;
    pc__pose pose;
    float width, height, cheeks;             /* the head */
    float ear_height, ear_spread, ear_width; /* the ears */
    float tabby;                             /* 0: no stripes */
    bool points, blaze, patches, pale_muzzle;
    pc__rgb nose;
} cat;

static void roll(cat *c, pc__dice *dice)
{
    pc__coat_roll(&c->coat, dice);
    c->pose.turn = pc__roll(dice, -0.3f, 0.3f);
    c->pose.nod = pc__roll(dice, -0.18f, 0.18f);
    c->width = pc__roll(dice, 0.95f, 1.1f);
    c->height = pc__roll(dice, 0.78f, 0.92f);
    c->cheeks = pc__roll(dice, 0.02f, 0.16f);
    c->ear_height = pc__roll(dice, 0.5f, 0.85f);
    c->ear_spread = pc__roll(dice, -0.05f, 0.25f);
    c->ear_width = pc__roll(dice, 0.85f, 1.1f);
    c->tabby = pc__chance(dice, 0.5f) ? pc__roll(dice, 0.35f, 0.9f) : 0;
    c->points = !(c->tabby > 0) && pc__chance(dice, 0.2f);
    c->blaze = pc__chance(dice, 0.25f);
    c->patches = pc__chance(dice, 0.2f);
    c->pale_muzzle = pc__chance(dice, 0.6f);
    c->nose = pc__chance(dice, 0.65f) ? pink : (pc__rgb){.22f, .16f, .16f};
}

static pc__point between(pc__point a, pc__point b, float t)
{
    return (pc__point){a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t};
}

static void ear(pc__canvas *canvas, const cat *c, float side, float bend)
{
    const pc__coat *coat = &c->coat;
    pc__point inner = pc__place(&c->pose, side * 0.2f * c->width, -0.72f * c->height, 0.1f);
    pc__point outer = pc__place(&c->pose, side * 0.93f * c->width * c->ear_width, -0.28f * c->height, 0.1f);
    pc__point tip = pc__place(&c->pose, side * (0.68f + c->ear_spread), -0.72f * c->height - c->ear_height + bend, 0);
    pc__path shape = {.round = 0.07f};
    pc__path_line(&shape, inner);
    pc__path_line(&shape, tip);
    pc__path_line(&shape, outer);
    pc__fill_path(canvas, &shape, pc__hair(coat, c->points ? coat->dark : pc__mix(coat->base, coat->dark, 0.2f)));
    pc__point middle = {(inner.x + outer.x) / 2, (inner.y + outer.y) / 2};
    pc__path hollow = {.round = 0.03f};
    pc__path_line(&hollow, between(between(inner, middle, 0.3f), tip, 0.2f));
    pc__path_line(&hollow, between(tip, middle, 0.22f));
    pc__path_line(&hollow, between(between(outer, middle, 0.25f), tip, 0.2f));
    pc__paint skin = pc__solid(pc__mix(pink, coat->base, 0.25f));
    skin.gradient = true;
    skin.second = pc__mix(skin.colour, coat->dark, 0.6f);
    skin.start = tip;
    skin.end = middle;
    pc__fill_path(canvas, &hollow, skin);
    for (int i = 0; i < 3; i++) { /* hair at the inner edge */
        pc__point root = between(inner, middle, 0.25f + 0.2f * (float)i);
        pc__fill_curve(canvas, root, between(root, tip, 0.35f), between(between(root, outer, 0.25f), tip, 0.5f), 0.035f,
                       0.008f, pc__glaze(coat->light, 0.8f, 0));
    }
}

static void head(pc__canvas *canvas, const cat *c, pc__dice *dice)
{
    pc__blob outline;
    pc__blob_ellipse(&outline, (pc__point){0, 0}, c->width, c->height);
    pc__blob_bump(&outline, 0.45f, 0.35f, c->cheeks);
    pc__blob_bump(&outline, 3.1416f - 0.45f, 0.35f, c->cheeks);
    pc__blob_hair(&outline, dice, 0.035f);
    pc__paint hair = pc__hair(&c->coat, c->coat.base);
    hair.clip = PC__CLIP_ADD;
    pc__fill_blob(canvas, &outline, hair);
}

static void stripes(pc__canvas *canvas, const cat *c, pc__dice *dice)
{
    pc__paint dark = pc__glaze(c->coat.dark, c->tabby, 0.05f);
    dark.clip = PC__CLIP_INSIDE;
    int lines = 3 + 2 * pc__pick(dice, 2);
    for (int i = 0; i < lines; i++) { /* the M on the forehead */
        float x = ((float)i - (float)(lines - 1) / 2) * 0.6f / (float)(lines - 1) * 2;
        float end = pc__roll(dice, -0.5f, -0.36f);
        pc__fill_curve(canvas, pc__place(&c->pose, x * 0.9f, -0.95f, 0.5f), pc__place(&c->pose, x * 0.75f, -0.7f, 0.7f),
                       pc__place(&c->pose, x * 0.5f, end, 0.85f), 0.075f, 0.03f, dark);
    }
    for (int side = -1; side <= 1; side += 2)
        for (int i = 0; i < 3; i++) {
            float y = -0.05f + 0.22f * (float)i + pc__roll(dice, -0.04f, 0.04f), s = (float)side;
            float reach = pc__roll(dice, 0.5f, 0.66f);
            pc__fill_curve(canvas, pc__place(&c->pose, s * 1.15f, y - 0.05f, 0.2f),
                           pc__place(&c->pose, s * 0.9f, y + 0.08f, 0.4f), pc__place(&c->pose, s * reach, y, 0.6f),
                           0.07f, 0.02f, dark);
        }
}

static void markings(pc__canvas *canvas, const cat *c, pc__dice *dice)
{
    pc__paint hair = pc__hair(&c->coat, c->coat.dark);
    hair.clip = PC__CLIP_INSIDE;
    if (c->patches)
        for (int i = 0; i < 2; i++) {
            pc__blob patch;
            float x = pc__roll(dice, -0.9f, 0.9f), y = pc__roll(dice, -0.8f, 0.1f);
            float size = pc__roll(dice, 0.3f, 0.55f);
            pc__blob_ellipse(&patch, (pc__point){x, y}, size, size);
            pc__blob_wave(&patch, 3, 0.2f, 6 * x);
            pc__blob_hair(&patch, dice, 0.06f);
            hair.colour = i ? c->coat.dark : pc__mix(c->coat.light, (pc__rgb){.85f, .5f, .2f}, 0.5f);
            pc__fill_blob(canvas, &patch, hair);
        }
    if (c->tabby > 0)
        stripes(canvas, c, dice);
    if (c->points) {
        hair.colour = c->coat.dark, hair.soft = 0.5f, hair.alpha = 0.9f;
        pc__fill_ellipse(canvas, pc__place(&c->pose, 0, 0.15f, 0.8f), 0.45f, 0.5f, 0, hair);
    }
    hair.colour = c->coat.white, hair.soft = 0.06f, hair.alpha = 1;
    if (c->blaze) {
        pc__path wedge = {.round = 0.05f};
        pc__path_line(&wedge, pc__place(&c->pose, 0, -0.55f, 0.8f));
        pc__path_curve(&wedge, pc__place(&c->pose, 0.12f, 0, 1), pc__place(&c->pose, 0.5f, 0.3f, 0.9f),
                       pc__place(&c->pose, 0.5f, 1.2f, 0.6f));
        pc__path_line(&wedge, pc__place(&c->pose, -0.5f, 1.2f, 0.6f));
        pc__path_curve(&wedge, pc__place(&c->pose, -0.5f, 0.3f, 0.9f), pc__place(&c->pose, -0.12f, 0, 1),
                       pc__place(&c->pose, 0, -0.55f, 0.8f));
        pc__fill_path(canvas, &wedge, hair);
    }
}

static void muzzle(pc__canvas *canvas, const cat *c)
{
    const pc__coat *coat = &c->coat;
    pc__rgb pad = c->blaze || c->pale_muzzle ? pc__mix(coat->light, coat->white, c->blaze ? 0.9f : 0.3f)
                                             : pc__mix(coat->base, coat->light, 0.45f);
    pc__paint hair = pc__hair(coat, pad);
    hair.soft = 0.05f;
    hair.clip = PC__CLIP_INSIDE;
    pc__fill_ellipse(canvas, pc__place(&c->pose, 0, 0.62f, 0.85f), 0.17f, 0.14f, 0, hair);
    for (int side = -1; side <= 1; side += 2)
        pc__fill_ellipse(canvas, pc__place(&c->pose, (float)side * 0.19f, 0.42f, 0.95f), 0.25f, 0.19f, 0, hair);
    pc__point mouth = pc__place(&c->pose, 0, 0.42f, 1.02f);
    for (int side = -1; side <= 1; side += 2) {
        pc__point corner = pc__place(&c->pose, (float)side * 0.26f, 0.48f, 0.95f);
        pc__fill_curve(canvas, mouth, (pc__point){(mouth.x + corner.x) / 2, mouth.y + 0.2f}, corner, 0.02f, 0.012f,
                       pc__glaze(coat->line, 0.85f, 0));
    }
    pc__point top = pc__place(&c->pose, 0, 0.24f, 1.02f);
    pc__fill_curve(canvas, top, top, mouth, 0.015f, 0.02f, pc__glaze(coat->line, 0.85f, 0));
    pc__path nose = {.round = 0.035f};
    pc__path_line(&nose, pc__place(&c->pose, -0.09f, 0.19f, 1.02f));
    pc__path_line(&nose, pc__place(&c->pose, 0.09f, 0.19f, 1.02f));
    pc__path_line(&nose, pc__place(&c->pose, 0, 0.28f, 1.03f));
    pc__fill_path(canvas, &nose, pc__solid(c->nose));
}

static void eyes(pc__canvas *canvas, const cat *c, pc__dice *dice)
{
    static const pc__rgb irises[] = {{.55f, .70f, .25f}, {.85f, .70f, .20f}, {.80f, .50f, .15f},
                                     {.35f, .60f, .75f}, {.40f, .65f, .45f}, {.60f, .45f, .20f}};
    pc__eyes e = {.rim = pc__mix(c->coat.line, (pc__rgb){0, 0, 0}, 0.4f)};
    e.apart = pc__roll(dice, 0.4f, 0.47f);
    e.height = pc__roll(dice, -0.12f, 0.0f);
    e.rx = pc__roll(dice, 0.19f, 0.25f);
    e.ry = e.rx * pc__roll(dice, 0.62f, 0.95f);
    e.tilt = pc__roll(dice, 0.05f, 0.35f);
    e.iris = irises[pc__pick(dice, PC__COUNT(irises))];
    bool slit = pc__chance(dice, 0.6f);
    e.pupil_x = slit ? pc__roll(dice, 0.16f, 0.35f) : pc__roll(dice, 0.5f, 0.8f);
    e.pupil_y = slit ? 0.9f : e.pupil_x * 1.05f;
    e.gaze_x = pc__roll(dice, -0.15f, 0.15f);
    e.closed = pc__chance(dice, 0.06f);
    pc__draw_eyes(canvas, &c->pose, &e);
}

static void whiskers(pc__canvas *canvas, const cat *c, pc__dice *dice)
{
    bool pale = pc__luma(c->coat.base) < 0.75f || pc__chance(dice, 0.5f);
    pc__paint thin = pc__glaze(pale ? (pc__rgb){.97f, .97f, .95f} : (pc__rgb){.3f, .28f, .27f}, 0.75f, 0);
    float length = pc__roll(dice, 0.7f, 1.1f);
    for (int side = -1; side <= 1; side += 2)
        for (int i = 0; i < 3; i++) {
            float rise = ((float)i - 1) * 0.16f + pc__roll(dice, -0.05f, 0.05f), s = (float)side;
            pc__point root = pc__place(&c->pose, s * 0.3f, 0.4f + 0.06f * (float)(i - 1), 0.95f);
            pc__point end = {root.x + s * length * pc__narrow(&c->pose, s), root.y + rise + 0.06f};
            pc__point bend = {(root.x + end.x) / 2, root.y + rise * 0.3f - 0.08f};
            pc__fill_curve(canvas, root, bend, end, 0.014f, 0.006f, thin);
        }
}

void pc__draw_cat(pc__canvas *canvas, pc__dice *dice)
{
    cat c;
    roll(&c, dice);
    pc__draw_body(canvas, &c.coat, &c.pose, dice);
    if (pc__chance(dice, 0.2f))
        pc__draw_collar(canvas, &c.pose, dice);
    for (int side = -1; side <= 1; side += 2) {
        float bend = pc__roll(dice, -0.06f, 0.06f);
        ear(canvas, &c, (float)side, bend);
    }
    pc__canvas_unmask(canvas);
    head(canvas, &c, dice);
    markings(canvas, &c, dice);
    muzzle(canvas, &c);
    eyes(canvas, &c, dice);
    whiskers(canvas, &c, dice);
}
