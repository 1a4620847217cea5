/* places.c: entries of an index by the place they name. */
#include "cpu/level/places.h"

#include <stdatomic.h>

enum {
    CHECKED = 1 << 13, /* entries that a thread claims */
    FAR_FEWER = 64,    /* places for each entry, from which on the entries are sorted */
    FEW = 16           /* that are sorted one by one */
};

#define ITEM uint64_t
#define BEFORE(a, b) (*(a) < *(b))
#define NAMED(name) name##_keys
#include "cpu/level/sort_list.inc"

typedef struct checking {
    const int64_t *at;
    int64_t count, n;
    atomic_bool wrong;
} checking;

static void check_some(void *context, int64_t piece)
{
    checking *c = context;
    const int64_t end = PC__MIN((piece + 1) * CHECKED, c->count);
    uint64_t most = 0; /* without a branch for each entry; those below 0 are the largest */
    for (int64_t i = piece * CHECKED; i < end; i++)
        most = PC__MAX(most, (uint64_t)c->at[i]);
    if (most >= (uint64_t)c->n)
        atomic_store_explicit(&c->wrong, true, memory_order_relaxed);
}

pc_status pc__places_check(const char *who, const pc_tensor *index, int64_t n)
{
    const int64_t *at = pc__data(index), count = pc_tensor_count(index);
    checking c = {.at = at, .count = count, .n = n};
    pc__parallel(pc__threads(count), (count + CHECKED - 1) / CHECKED, check_some, &c);
    for (int64_t i = 0; i < count && c.wrong; i++)
        if (at[i] < 0 || at[i] >= n)
            return pc__fail(PC_ERR_RANGE, "%s: entry %lld of the index is %lld; it must be 0 to %lld", who,
                            (long long)i, (long long)at[i], (long long)n - 1);
    return PC_OK;
}

/* Those that have entries: sorted by numbers of place and entry, without anything of the size of all places. */
static pc_status sort_few(pc__by_place *by, const int64_t *index, int64_t count, int64_t skip)
{
    by->start = pc__alloc((size_t)(5 * count + 1) * sizeof *by->start);
    if (!by->start)
        return PC_ERR_MEMORY;
    by->order = by->start + count + 1;
    by->places = by->order + count;
    uint64_t *keys = (uint64_t *)(by->places + count);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (index[i] != skip)
            keys[n++] = (uint64_t)index[i] * (uint64_t)count + (uint64_t)i;
    const uint64_t *sorted = sort_all_keys(keys, keys + count, n);
    by->count = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = (int64_t)(sorted[i] / (uint64_t)count);
        by->order[i] = (int64_t)(sorted[i] % (uint64_t)count);
        if (by->count > 0 && by->places[by->count - 1] == place)
            continue;
        by->places[by->count] = place;
        by->start[by->count++] = i;
    }
    by->start[by->count] = n;
    return PC_OK;
}

pc_status pc__sort_places(pc__by_place *by, const int64_t *index, int64_t count, int64_t n, int64_t skip)
{
    if (count > 0 && count < n / FAR_FEWER && n < INT64_MAX / count)
        return sort_few(by, index, count, skip);
    by->places = NULL;
    by->start = pc__calloc((size_t)(n + 2 + count), sizeof *by->start);
    if (!by->start)
        return PC_ERR_MEMORY;
    by->order = by->start + n + 2;
    int64_t *next = by->start + 1; /* first how many there are, one place further; then where the next one goes */
    for (int64_t i = 0; i < count; i++)
        if (index[i] != skip)
            next[index[i] + 1]++;
    for (int64_t p = 0; p < n; p++)
        next[p + 1] += next[p];
    for (int64_t i = 0; i < count; i++)
        if (index[i] != skip)
            by->order[next[index[i]]++] = i;
    return PC_OK;
}
