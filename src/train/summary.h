/* summary.h: a network as a table: layers, output shapes, parameters. */
#ifndef PC__SUMMARY_H
#define PC__SUMMARY_H

#include "base/base.h"
#include "io/frame.h"

#include <paracord/nn.h>

typedef struct pc__layer_row {
    char layer[80];     /* in short: "Conv2d 32, 3x3, stride 3, relu" */
    char kind[32];      /* its class alone */
    pc_shape output;    /* for one picture, without the batch; a size of -1, or no dimensions: not known */
    int64_t parameters; /* -1: not known */
} pc__layer_row;

/* Rows of a Sequential for pictures of that frame: *rows from pc__alloc, *count of them. */
pc_status pc__summary_rows(pc_module *net, pc__frame pictures, pc__layer_row **rows, int *count);

/* The table as text, appended. */
void pc__summary_text(pc__text *text, const pc__layer_row *rows, int count);

/* "413,089" */
typedef struct pc__number {
    char s[32];
} pc__number;
pc__number pc__thousands(int64_t n);

/* Append a name from outside (of a class, a file): control characters become '?', as ls does on a terminal. */
PC__SHARED void pc__text_add_name(pc__text *text, const char *name);

#endif
