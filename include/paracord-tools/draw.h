/* draw.h: pictures without photographs: cat and dog faces drawn from random numbers, as data for demos and tests.
 *
 *     pc_draw_options options = PC_OPTIONS(pc_draw_options, .train = 400, .test = 100);
 *     if (pc_draw_picture_set("pets", options) != PC_OK)
 *         return pc_report(stderr);
 *     // pets/train/cat/cat.000.jpg ... pets/test/dog/dog.099.jpg
 *
 * Pose, coat, light, background, blur and noise vary; both kinds share their coat colours, so that shape decides.
 * Everything is a pure function of the seed: the same bytes on every run and for any number of threads. Any thread.
 */
#ifndef PARACORD_TOOLS_DRAW_H
#define PARACORD_TOOLS_DRAW_H

#include <paracord/image.h>

PC_BEGIN

typedef enum pc_draw_kind { PC_DRAW_CAT, PC_DRAW_DOG, PC_DRAW_KIND_COUNT } pc_draw_kind;

/* "cat", "dog"; "unknown" for other numbers. Static storage. */
PC_API const char *pc_draw_kind_name(pc_draw_kind kind);

/* Draw face number `index` of `seed` as an RGB picture of width x height pixels, each 16 to 4096; the caller releases
 * it with pc_image_free. PC_ERR_ARGUMENT for an unknown kind or size; after a failure *image is zeroed. */
PC_API PC_MUST_USE pc_status pc_draw_face(pc_draw_kind kind, uint64_t seed, uint64_t index, int width, int height,
                                          pc_image *image);

typedef struct pc_draw_options {
    int reserved_;
    int train;     /* pictures per class in folder/train; 0: 400; -1: none. At most 1,000,000, as for test */
    int test;      /* pictures per class in folder/test; 0: 100; -1: none */
    int size;      /* typical edge in pixels, 16 to 2048; 0: 150. Each edge of a file is 0.8 to 1.3 times that */
    int quality;   /* of the JPEG files, 1 to 100; 0: 90 */
    uint64_t seed; /* another seed, another set; the first pictures do not depend on how many follow */
    /* Called after each picture, by one thread at a time, not always the same one. False stops: PC_ERR_INTERRUPTED. */
    bool (*progress)(void *context, int done, int total);
    void *context;
} pc_draw_options;

/* Write folder/train/cat/cat.000.jpg and so on, test/ beside train/, making the folders. Uses all cores. Files that are
 * there are replaced, each whole or not at all, so that it can be run again. PC_ERR_ARGUMENT for options out of range,
 * PC_ERR_FILE when a folder or file cannot be written, PC_ERR_STATE when the folders of the classes hold files that are none of
 * those, which would be part of the set: nothing is written then. */
PC_API PC_MUST_USE pc_status pc_draw_picture_set(const char *folder, pc_draw_options options);

PC_END
#endif
