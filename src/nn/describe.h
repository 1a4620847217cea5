/* describe.h: a forward pass as a table, while it is made. */
#ifndef PC__DESCRIBE_H
#define PC__DESCRIBE_H

#include "nn/module.h"

typedef struct pc__describe_row {
    const pc_module *module;
    int depth, outer; /* the row of the module that called it; -1: none */
    bool again;       /* it has a row already */
    pc__shape_text shape;
    double flop, bytes; /* of its own calls */
} pc__describe_row;

typedef struct pc__describe_table {
    pc_graph *graph;
    pc__describe_row *rows;
    int count, room, open, seen; /* open: the row of the module that is under way; seen: calls that have a row */
    bool failed;
} pc__describe_table;

/* describe_text.c: rows and sums. */
void pc__describe_tell(const pc__describe_table *t, const pc_module *module, pc__text *text);

#endif
