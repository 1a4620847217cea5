/* table.h: the values of a store by their names. No locks: its owner's thread alone uses it. */
#ifndef PC__STORE_TABLE_H
#define PC__STORE_TABLE_H

#include "base/base.h"

typedef struct pc__table {
    struct pc__entry **slots;
    size_t slot_count, count;
} pc__table; /* start from {0} */

/* The value, or NULL; *n is its size. Valid until it is changed. */
const void *pc__table_get(const pc__table *table, const char *key, size_t *n);

/* False when there is no memory; what was there stays then. */
bool pc__table_set(pc__table *table, const char *key, const void *value, size_t n);

/* How many names began so, and are gone. */
int pc__table_delete(pc__table *table, const char *prefix);

void pc__table_free(pc__table *table);

#endif
