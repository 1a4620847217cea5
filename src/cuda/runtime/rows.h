/* rows.h: the ways to do an op on a GPU, as the rows of a table. The first row that supports a call does it, the same
 * one each time; a row may turn out to be unable when it is run, and then the next one does it. */
#ifndef PC__CUDA_ROWS_H
#define PC__CUDA_ROWS_H

#include "cuda/runtime/cuda.h"

/* `problem` is the op's own description of a call. */
typedef struct pc__row {
    const char *name; /* for PARACORD_ONLY */
    const char *note; /* "by " and that, for timelines and plans; NULL: the row itself has said it */
    bool (*supports)(const pc_stream *stream, const void *problem);
    size_t (*workspace)(const void *problem); /* bytes of scratch memory; NULL: none, or the row asks for it itself */
    /* Queue it. *done comes true; false, with nothing queued: the next row is to do it. */
    pc_status (*run)(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);
} pc__row;

typedef struct pc__rows {
    const char *op;
    const pc__row *row;
    int count;
    const pc__row *only; /* asked before all others: PARACORD_ONLY; NULL: none */
    unsigned without;    /* likewise, the rows that are never asked, a bit each by their number */
} pc__rows;

static inline bool pc__row_is_left_out(const pc__rows *rows, const pc__row *row)
{
    return rows->without >> (row - rows->row) & 1;
}

/* All rows that can do it, whatever they are good for, at most `most`, the one that is picked first; how many. */
int pc__rows_all(const pc__rows *rows, const pc_stream *stream, const void *problem, const pc__row **found, int most);

/* The i-th row in the order in which they are asked, from 0, with the one that is not; NULL behind the last. */
const pc__row *pc__rows_at(const pc__rows *rows, int i);

/* The first row that supports it, or NULL. */
const pc__row *pc__rows_pick(const pc__rows *rows, const pc_stream *stream, const void *problem);

/* Do the call by `first`, unless that is NULL or turns out unable, then by the first row that can. */
pc_status pc__rows_run_by(const pc__rows *rows, const pc__row *first, pc_stream *stream, const pc_call *call,
                          const void *problem);

/* Do the call by the first row that can. */
pc_status pc__rows_run(const pc__rows *rows, pc_stream *stream, const pc_call *call, const void *problem);

/* Whether the row with this `supports` is to take whatever it can: PARACORD_ONLY names it, or all rows are measured. */
static inline bool pc__rows_takes_all(const pc__rows *rows, const pc_stream *stream,
                                      bool (*supports)(const pc_stream *, const void *))
{
    const pc__cuda_stream *face = stream->implementation;
    return (rows->only && rows->only->supports == supports) || (face && face->takes_all);
}

/* How the call at hand is done. */
static inline void pc__rows_say(pc_stream *stream, const char *note)
{
    ((pc__cuda_stream *)stream->implementation)->note = note;
}

/* only_env.c: what PARACORD_ONLY says to all tables, once, before the first call. NULL: nothing. */
void pc__rows_only(const char *said);

#endif
