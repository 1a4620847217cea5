/* preparation.h: how pictures become numbers: checked, told, noted in files, computed. */
#ifndef PC__PREPARATION_H
#define PC__PREPARATION_H

#include "base/base.h"

#include <paracord/classifier.h>
#include <paracord/nn.h>

/* Pixels times 1/255, by nearest neighbour: what most of Keras's examples do. */
pc_preparation pc__preparation_assumed(void);

pc_status pc__preparation_check(const pc_preparation *p);

/* True when mean and std change something. */
bool pc__preparation_normalizes(const pc_preparation *p);

/* The note in a file, a JSON object. */
void pc__preparation_print(pc__text *out, const pc_preparation *p);

/* Take what the note says; what it does not say, or says wrongly, stays. */
void pc__preparation_read(const char *note, pc_preparation *p);

/* A module that computes net((x - mean) / std) for x [n, c, h, w]; it borrows `net`. */
pc_module *pc__preparation_module(const pc_preparation *p, pc_module *net);

#endif
