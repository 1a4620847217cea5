/* draw.c: one picture from its seed: background, face, camera. */
#include "draw/face.h"

#include <math.h>
#include <paracord-tools/draw.h>

#define EDGE_MIN 16
#define EDGE_MAX 4096

static const struct {
    const char *name;
    void (*draw)(pc__canvas *canvas, pc__dice *dice);
} kinds[PC_DRAW_KIND_COUNT] = {
    [PC_DRAW_CAT] = {"cat", pc__draw_cat},
    [PC_DRAW_DOG] = {"dog", pc__draw_dog},
};

const char *pc_draw_kind_name(pc_draw_kind kind)
{
    return (unsigned)kind < PC_DRAW_KIND_COUNT ? kinds[kind].name : "unknown";
}

/* Place the face in the picture: size, offset, up to 25 degrees of rotation, light from one side. */
static void frame_face(pc__canvas *canvas, pc__dice *dice)
{
    float w = (float)canvas->width, h = (float)canvas->height;
    float radius = pc__roll(dice, 0.26f, 0.34f) * fminf(w, h);
    float lean = pc__roll(dice, 0, 1); /* small angles are more common */
    float x = pc__roll(dice, -0.08f, 0.08f), y = pc__roll(dice, -0.02f, 0.1f);
    float angle = 0.436f * pc__roll(dice, -1, 1) * lean, side = pc__roll(dice, -0.22f, 0.22f),
          above = pc__roll(dice, -0.2f, 0.05f);
    pc__canvas_frame(canvas, (pc__point){w * (0.5f + x), h * (0.5f + y)}, radius, angle);
    canvas->light = (pc__point){side, above};
}

pc_status pc_draw_face(pc_draw_kind kind, uint64_t seed, uint64_t index, int width, int height, pc_image *image)
{
    PC__NEED(image);
    *image = (pc_image){0};
    if ((unsigned)kind >= PC_DRAW_KIND_COUNT)
        return pc__fail(PC_ERR_ARGUMENT, "cannot draw kind %d: use PC_DRAW_CAT or PC_DRAW_DOG", (int)kind);
    if (width < EDGE_MIN || height < EDGE_MIN || width > EDGE_MAX || height > EDGE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "cannot draw a picture of %d x %d pixels: edges go from %d to %d", width,
                        height, EDGE_MIN, EDGE_MAX);
    pc__canvas canvas;
    PC__TRY(pc__canvas_new(&canvas, width, height));
    pc_status status = pc_image_new(width, height, 3, image);
    if (status == PC_OK) {
        pc__dice dice = {seed, index * PC_DRAW_KIND_COUNT + (uint64_t)kind, 0};
        pc__scene_grain(&canvas, &dice);
        pc__scene_background(&canvas, &dice);
        frame_face(&canvas, &dice);
        kinds[kind].draw(&canvas, &dice);
        pc__scene_light(&canvas, &dice);
        pc__scene_blur(&canvas, &dice);
        pc__scene_develop(&canvas, &dice, image->pixels);
    }
    pc__canvas_free(&canvas);
    return status;
}
