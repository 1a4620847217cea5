/* face.h: what the two faces share: coat, pose, eyes, body. The head's centre is (0, 0), its half width about 1.
 */
#ifndef PC__DRAW_FACE_H
#define PC__DRAW_FACE_H

#include "draw/canvas.h"
#include "draw/dice.h"

/* Colours of one animal. Cats and dogs take theirs from the same list. */
typedef struct pc__coat {
    pc__rgb base, dark, light; /* the hair, its shadows and stripes, its pale places */
    pc__rgb white;             /* markings */
    pc__rgb line;              /* mouth and rims */
    float fur;
} pc__coat;
void pc__coat_roll(pc__coat *coat, pc__dice *dice);
pc__paint pc__hair(const pc__coat *coat, pc__rgb colour);

/* How the head is held. Features lie at a depth before the head's plane and shift with it. */
typedef struct pc__pose {
    float turn, nod; /* radians: to the right, downwards */
} pc__pose;
pc__point pc__place(const pc__pose *pose, float x, float y, float depth);
float pc__narrow(const pc__pose *pose, float side); /* how much narrower a thing on one side (-1, 1) looks */

typedef struct pc__eyes {
    float apart, height; /* place of one eye: x and y */
    float rx, ry, tilt;  /* tilt lifts the outer corner, radians */
    pc__rgb iris, rim;
    float pupil_x, pupil_y; /* half axes as shares of ry */
    float gaze_x, gaze_y;   /* where the pupil looks, as shares of rx and ry */
    bool closed;
} pc__eyes;
void pc__draw_eyes(pc__canvas *canvas, const pc__pose *pose, const pc__eyes *eyes);

/* The body, and what hangs on it: the collar lands only where the body is. */
void pc__draw_body(pc__canvas *canvas, const pc__coat *coat, const pc__pose *pose, pc__dice *dice);
void pc__draw_collar(pc__canvas *canvas, const pc__pose *pose, pc__dice *dice);

/* Roughen a head's outline with tufts of hair. */
void pc__blob_hair(pc__blob *blob, pc__dice *dice, float height);

void pc__draw_cat(pc__canvas *canvas, pc__dice *dice);
void pc__draw_dog(pc__canvas *canvas, pc__dice *dice);

/* scene.c: what is behind the face, and what the camera does to the whole. */
void pc__scene_grain(pc__canvas *canvas, pc__dice *dice);
void pc__scene_background(pc__canvas *canvas, pc__dice *dice);
void pc__scene_light(pc__canvas *canvas, pc__dice *dice);
void pc__scene_blur(pc__canvas *canvas, pc__dice *dice);
void pc__scene_develop(const pc__canvas *canvas, pc__dice *dice, uint8_t *pixels); /* noise, to bytes */

#endif
