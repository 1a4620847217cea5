/* places.h: entries of an index by the place they name. */
#ifndef PC__PLACES_H
#define PC__PLACES_H

#include "cpu/level/kernels.h"
#include "ops/index.h"

/* PC_ERR_RANGE with the first entry that names none of `n` places. */
#define pc__places_check PC__K(places_check)
pc_status pc__places_check(const char *who, const pc_tensor *index, int64_t n);

/* order[start[k]] to order[start[k + 1] - 1] are the entries of place k, in ascending order; where there are far fewer of them
 * than places, of place places[k], and only those that have some are there, in ascending order. */
typedef struct pc__by_place {
    int64_t *start, *order;
    int64_t *places, count; /* places NULL: all of them */
} pc__by_place;

/* Entries of one place. */
typedef struct pc__entries {
    const int64_t *at;
    int64_t count;
} pc__entries;

/* The first place of [place, end) that has entries, and these; `end`: there is none. */
static inline int64_t pc__next_place(const pc__by_place *by, int64_t place, int64_t end, pc__entries *entries)
{
    int64_t k = place;
    if (by->places) {
        int64_t high = by->count;
        for (k = 0; k < high;) {
            const int64_t middle = k + (high - k) / 2;
            if (by->places[middle] < place)
                k = middle + 1;
            else
                high = middle;
        }
        place = k < by->count ? PC__MIN(by->places[k], end) : end;
    } else {
        while (k < end && by->start[k] == by->start[k + 1])
            k++;
        place = k;
    }
    if (place < end)
        *entries = (pc__entries){by->order + by->start[k], by->start[k + 1] - by->start[k]};
    return place;
}

/* Of a list of one dimension, checked before; those of place `skip` are left out. PC_ERR_MEMORY; else pc__free(start) gives
 * all back. */
#define pc__sort_places PC__K(sort_places)
pc_status pc__sort_places(pc__by_place *by, const int64_t *index, int64_t count, int64_t n, int64_t skip);

#endif
