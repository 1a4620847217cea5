/* places.c: entries of an index by the place they name. */
#include "cpu/level/places.h"

#include <stdatomic.h>

enum { CHECKED = 1 << 13 /* entries that a thread claims */ };

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

pc_status pc__sort_places(pc__by_place *by, const int64_t *index, int64_t count, int64_t n, int64_t skip)
{
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
