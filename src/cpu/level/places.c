/* places.c: entries of an index by the place they name. */
#include "cpu/level/places.h"

pc_status pc__places_check(const char *who, const pc_tensor *index, int64_t n)
{
    enum { SOME = 1024 };
    const int64_t *at = pc__data(index), count = pc_tensor_count(index);
    bool fits = true;
    for (int64_t i = 0, end; i < count && fits; i = end) {
        uint64_t most = 0; /* without a branch for each entry; those below 0 are the largest */
        end = PC__MIN(i + SOME, count);
        for (int64_t j = i; j < end; j++)
            most = PC__MAX(most, (uint64_t)at[j]);
        fits = most < (uint64_t)n;
    }
    for (int64_t i = 0; i < count && !fits; i++)
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
