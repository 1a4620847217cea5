/* preparation.h: how pictures become numbers: checked, told, noted in files, computed. */
#ifndef PC__PREPARATION_H
#define PC__PREPARATION_H

#include "io/frame.h"

#include "base/base.h"

#include <paracord/classifier.h>
#include <paracord/nn.h>

#define PC__MODEL_SIDE_MAX 16384 /* pixels, of the pictures that a network takes */

/* Pixels times 1/255, by nearest neighbour: what most of Keras's examples do. */
pc_preparation pc__preparation_assumed(void);

pc_status pc__preparation_check(const pc_preparation *p);

/* The size of the pictures that the network takes. */
static inline pc__frame pc__preparation_frame(const pc_preparation *p)
{
    return (pc__frame){p->height, p->width, p->channels};
}

/* The same preparation, for pictures of that size. */
static inline pc_preparation pc__preparation_of(pc_preparation p, pc__frame frame)
{
    p.height = frame.height, p.width = frame.width, p.channels = frame.channels;
    return p;
}

/* True when mean and std change something. */
bool pc__preparation_normalizes(const pc_preparation *p);

/* As a JSON object. */
void pc__preparation_print(pc__text *out, const pc_preparation *p);

/* The note in a file: that, and that it says all that happens to pixels, whatever layers the file has in front. */
void pc__preparation_note(pc__text *out, const pc_preparation *p);
bool pc__preparation_is_whole(const char *note);

/* Take what the note says; what it does not say, or says wrongly, stays. */
void pc__preparation_read(const char *note, pc_preparation *p);

/* A module that computes net((x - mean) / std) for x [n, c, h, w]; it borrows `net`. */
pc_module *pc__preparation_module(const pc_preparation *p, pc_module *net);

#endif
