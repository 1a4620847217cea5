/* face.c: coat, pose, eyes and body of both kinds. */
#include "draw/face.h"

#include <math.h>

static const pc__rgb coats[] = {
    {.14f, .13f, .13f}, /* black */
    {.29f, .29f, .31f}, /* charcoal */
    {.45f, .48f, .54f}, /* blue */
    {.67f, .67f, .67f}, /* silver */
    {.92f, .91f, .88f}, /* white */
    {.90f, .81f, .65f}, /* cream */
    {.84f, .65f, .37f}, /* golden */
    {.84f, .50f, .21f}, /* ginger */
    {.58f, .31f, .16f}, /* red-brown */
    {.36f, .24f, .17f}, /* chocolate */
    {.69f, .54f, .38f}, /* tan */
    {.79f, .68f, .52f}, /* fawn */
};

void pc__coat_roll(pc__coat *coat, pc__dice *dice)
{
    pc__rgb base = coats[pc__pick(dice, PC__COUNT(coats))];
    float brighter = pc__roll(dice, 0.88f, 1.1f), warmer = pc__roll(dice, -0.03f, 0.03f);
    coat->base = (pc__rgb){base.r * brighter + warmer, base.g * brighter, base.b * brighter - warmer};
    coat->dark = pc__mix(coat->base, (pc__rgb){.10f, .07f, .06f}, pc__roll(dice, 0.4f, 0.65f));
    coat->light = pc__mix(coat->base, (pc__rgb){.97f, .94f, .88f}, pc__roll(dice, 0.35f, 0.6f));
    coat->white = (pc__rgb){.95f, .94f, .91f};
    coat->line = pc__mix(coat->base, (pc__rgb){.08f, .05f, .05f}, 0.8f);
    coat->fur = pc__roll(dice, 0.04f, 0.16f);
}

pc__paint pc__hair(const pc__coat *coat, pc__rgb colour)
{
    return (pc__paint){.colour = colour, .alpha = 1, .fur = coat->fur};
}

pc__point pc__place(const pc__pose *pose, float x, float y, float depth)
{
    float turned = depth * cosf(pose->turn) - x * sinf(pose->turn);
    return (pc__point){x * cosf(pose->turn) + depth * sinf(pose->turn), y * cosf(pose->nod) + turned * sinf(pose->nod)};
}

float pc__narrow(const pc__pose *pose, float side)
{
    float n = 1 - 0.9f * fmaxf(0, side * pose->turn);
    return fmaxf(0.6f, n);
}

static void closed_eye(pc__canvas *canvas, pc__point at, float rx, float ry, float tilt, pc__rgb rim)
{
    float lift = rx * sinf(tilt);
    pc__fill_curve(canvas, (pc__point){at.x - rx, at.y + lift}, (pc__point){at.x, at.y + 1.4f * ry},
                   (pc__point){at.x + rx, at.y - lift}, 0.035f, 0.035f, pc__solid(rim));
}

/* An almond between two corners, with the frame turned by `tilt`. */
static void almond(pc__path *path, pc__point at, float rx, float ry, float tilt)
{
    float c = cosf(tilt), s = sinf(tilt);
    const float outline[7][2] = {{-1, 0},        {-0.55f, -1.32f}, {0.55f, -1.32f}, {1, 0},
                                 {0.55f, 1.32f}, {-0.55f, 1.32f},  {-1, 0}};
    pc__point p[7];
    for (int i = 0; i < 7; i++) {
        float x = outline[i][0] * rx, y = outline[i][1] * ry;
        p[i] = (pc__point){at.x + c * x - s * y, at.y + s * x + c * y};
    }
    path->count = 0;
    pc__path_line(path, p[0]);
    pc__path_curve(path, p[1], p[2], p[3]);
    pc__path_curve(path, p[4], p[5], p[6]);
}

static void one_eye(pc__canvas *canvas, const pc__eyes *eyes, pc__point at, float rx, float tilt)
{
    float ry = eyes->ry;
    if (eyes->closed) {
        closed_eye(canvas, at, rx, ry, tilt, eyes->rim);
        return;
    }
    pc__path shape = {.round = 0.035f};
    almond(&shape, at, rx, ry, tilt);
    pc__fill_path(canvas, &shape, pc__solid(eyes->rim));
    shape.round = -0.005f;
    pc__paint iris = pc__solid(pc__mix(eyes->iris, (pc__rgb){0, 0, 0}, 0.3f));
    iris.gradient = true;
    iris.second = pc__mix(eyes->iris, (pc__rgb){1, 1, 0.9f}, 0.2f);
    iris.start = (pc__point){at.x, at.y - ry};
    iris.end = (pc__point){at.x, at.y + ry};
    pc__fill_path(canvas, &shape, iris);
    pc__point pupil = {at.x + eyes->gaze_x * rx, at.y + eyes->gaze_y * ry};
    float px = eyes->pupil_x * ry * rx / eyes->rx, py = eyes->pupil_y * ry;
    pc__fill_ellipse(canvas, pupil, px, py, 0, pc__solid((pc__rgb){.03f, .03f, .04f}));
    pc__fill_ellipse(canvas, (pc__point){pupil.x - 0.28f * ry, pupil.y - 0.38f * ry}, 0.22f * ry, 0.22f * ry, 0,
                     pc__solid((pc__rgb){1, 1, 1}));
    pc__fill_ellipse(canvas, (pc__point){pupil.x + 0.25f * ry, pupil.y + 0.35f * ry}, 0.1f * ry, 0.1f * ry, 0,
                     pc__glaze((pc__rgb){1, 1, 1}, 0.6f, 0));
}

void pc__draw_eyes(pc__canvas *canvas, const pc__pose *pose, const pc__eyes *eyes)
{
    for (int side = -1; side <= 1; side += 2) {
        pc__point at = pc__place(pose, (float)side * eyes->apart, eyes->height, 0.72f);
        one_eye(canvas, eyes, at, eyes->rx * pc__narrow(pose, (float)side), -(float)side * eyes->tilt);
    }
}

void pc__draw_body(pc__canvas *canvas, const pc__coat *coat, const pc__pose *pose, pc__dice *dice)
{
    float width = pc__roll(dice, 0.85f, 1.25f), lean = pc__roll(dice, -0.25f, 0.25f) - 0.5f * pose->turn;
    bool bib = pc__chance(dice, 0.35f);
    pc__paint hair = pc__hair(coat, coat->dark);
    hair.gradient = true;
    hair.second = coat->base;
    hair.start = (pc__point){0, 0.6f};
    hair.end = (pc__point){0, 1.6f};
    pc__blob body;
    pc__blob_ellipse(&body, (pc__point){1.5f * lean, 2.9f}, width, 2.35f);
    pc__blob_hair(&body, dice, 0.02f);
    hair.clip = PC__CLIP_ADD;
    pc__fill_blob(canvas, &body, hair);
    if (bib) {
        pc__paint white = pc__hair(coat, pc__mix(coat->white, coat->dark, 0.15f));
        white.soft = 0.12f;
        white.clip = PC__CLIP_INSIDE;
        pc__fill_ellipse(canvas, (pc__point){0.6f * lean, 1.8f}, 0.45f * width, 1.0f, 0, white);
    }
}

void pc__draw_collar(pc__canvas *canvas, const pc__pose *pose, pc__dice *dice)
{
    static const pc__rgb colours[] = {{.80f, .14f, .16f}, {.15f, .35f, .75f}, {.12f, .55f, .35f},
                                      {.93f, .70f, .15f}, {.45f, .20f, .60f}, {.2f, .2f, .2f}};
    pc__rgb colour = colours[pc__pick(dice, PC__COUNT(colours))];
    float x = -0.3f * pose->turn;
    pc__paint band = pc__solid(colour);
    band.clip = PC__CLIP_INSIDE;
    pc__fill_curve(canvas, (pc__point){x - 1.2f, 0.7f}, (pc__point){x, 1.55f}, (pc__point){x + 1.2f, 0.7f}, 0.09f,
                   0.09f, band);
    if (pc__chance(dice, 0.6f))
        pc__fill_ellipse(canvas, (pc__point){x, 1.26f}, 0.11f, 0.12f, 0, pc__solid((pc__rgb){.93f, .78f, .30f}));
}

void pc__blob_hair(pc__blob *blob, pc__dice *dice, float height)
{
    float phase = pc__roll(dice, 0, 6.28f);
    int waves = 17 + pc__pick(dice, 12);
    for (int i = 0; i < PC__BLOB_ANGLES; i++) {
        float tooth = fmodf((float)(i * waves) / PC__BLOB_ANGLES + phase, 1);
        blob->radius[i] += height * (tooth + pc__roll(dice, -0.4f, 0.4f));
    }
}
