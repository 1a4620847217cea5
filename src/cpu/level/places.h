/* places.h: entries of an index by the place they name. */
#ifndef PC__PLACES_H
#define PC__PLACES_H

#include "cpu/level/kernels.h"
#include "ops/index.h"

/* PC_ERR_RANGE with the first entry that names none of `n` places. */
#define pc__places_check PC__K(places_check)
pc_status pc__places_check(const char *who, const pc_tensor *index, int64_t n);

/* order[start[p]] to order[start[p + 1] - 1] are the entries of place p, in ascending order. */
typedef struct pc__by_place {
    int64_t *start, *order;
} pc__by_place;

/* Of a list of one dimension, checked before; those of place `skip` are left out. PC_ERR_MEMORY; else pc__free(start) gives
 * all back. */
#define pc__sort_places PC__K(sort_places)
pc_status pc__sort_places(pc__by_place *by, const int64_t *index, int64_t count, int64_t n, int64_t skip);

#endif
