/* pickle.h: the part of Python's pickles that torch.save writes for weights: texts, numbers, tuples, lists, dictionaries, and
 * calls, which are kept as they stand and never made. Whatever else a pickle would have Python do is refused by name. */
#ifndef PC__PICKLE_H
#define PC__PICKLE_H

#include "base/base.h"

typedef enum pc__pickled_kind {
    PC__PICKLED_NONE,
    PC__PICKLED_WHOLE,    /* whole; True and False, too */
    PC__PICKLED_FRACTION, /* whose value nobody asks */
    PC__PICKLED_TEXT,
    PC__PICKLED_NAME, /* of a function or class: module, newline, name */
    PC__PICKLED_LIST, /* or a tuple */
    PC__PICKLED_DICT, /* items: key, value, key, value; an OrderedDict, too */
    PC__PICKLED_CALL, /* of the name number `whole`, with the items */
    PC__PICKLED_KEPT  /* what the file keeps elsewhere, which the value number `whole` says */
} pc__pickled_kind;

typedef struct pc__pickled {
    pc__pickled_kind kind;
    int64_t whole;
    const char *text; /* in the pickle's bytes, without an end */
    size_t length;
    int first, last, count; /* of items */
} pc__pickled;

typedef struct pc__pickle_item {
    int value, next; /* -1: no more */
} pc__pickle_item;

typedef struct pc__pickle {
    pc__pickled *values;
    pc__pickle_item *items;
    int value_count, value_room, item_count, item_room;
    int root;
} pc__pickle;

/* Read a pickle of at most n bytes; *used of them are its. `names` are all that it may name, the last NULL. PC_ERR_FORMAT
 * where it is damaged, PC_ERR_UNSUPPORTED for other names and opcodes. To be closed in any case. */
pc_status pc__pickle_read(const char *path, const uint8_t *bytes, size_t n, const char *const *names,
                          pc__pickle *pickle, size_t *used);
void pc__pickle_close(pc__pickle *pickle);

/* Item number i of a value; NULL where there is none. The same by the items' own numbers: for (int i = v->first; i >= 0; i =
 * p->items[i].next) ... p->values[p->items[i].value]. */
const pc__pickled *pc__pickle_at(const pc__pickle *p, const pc__pickled *v, int i);

/* Is it such a value with that text? */
bool pc__pickled_is(const pc__pickled *v, pc__pickled_kind kind, const char *text);

#endif
