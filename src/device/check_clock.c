/* check_clock.c: clocks that are shared and never changed: learning something makes a new one. */
#include "device/check_clock.h"

void pc__clock_drop(pc__clock *clock)
{
    if (clock && --clock->references == 0)
        pc__free(clock);
}

static uint64_t known(const pc__clock *clock, uint32_t stream)
{
    int low = 0, high = clock ? clock->count : 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (clock->marks[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return clock && low < clock->count && clock->marks[low].stream == stream ? clock->marks[low].ticket : 0;
}

bool pc__clock_knows(const pc__clock *clock, uint32_t stream, uint64_t ticket)
{
    return known(clock, stream) >= ticket;
}

static bool covers(const pc__clock *clock, const pc__clock *other)
{
    if (clock == other || !other)
        return true;
    for (int i = 0; i < other->count; i++)
        if (known(clock, other->marks[i].stream) < other->marks[i].ticket)
            return false;
    return true;
}

/* All marks of two sorted arrays into a third; how many they are. */
static int merge(pc__clock_mark *out, const pc__clock_mark *a, int a_count, const pc__clock_mark *b, int b_count)
{
    int n = 0, i = 0, j = 0;
    while (i < a_count || j < b_count) {
        if (j == b_count || (i < a_count && a[i].stream < b[j].stream)) {
            out[n++] = a[i++];
        } else if (i == a_count || b[j].stream < a[i].stream) {
            out[n++] = b[j++];
        } else {
            out[n] = a[i++];
            out[n].ticket = PC__MAX(out[n].ticket, b[j].ticket);
            n++, j++;
        }
    }
    return n;
}

static pc__clock *joined(const pc__clock *clock, const pc__clock_mark *marks, int count)
{
    int own = clock ? clock->count : 0;
    size_t bytes = sizeof *clock + (size_t)(own + count) * sizeof *marks;
    pc__clock *result = pc__try_alloc_aligned(bytes, 16);
    if (!result)
        return NULL;
    result->references = 1;
    result->count = merge(result->marks, clock ? clock->marks : NULL, own, marks, count);
    return result;
}

/* One step of a join: *clock is replaced by what it is with `marks`. */
static bool learn(pc__clock **clock, const pc__clock_mark *marks, int count)
{
    pc__clock *result = joined(*clock, marks, count);
    if (!result)
        return false;
    pc__clock_drop(*clock);
    *clock = result;
    return true;
}

bool pc__clock_join(pc__clock **clock, const pc__clock *other, uint32_t stream, uint64_t ticket)
{
    if (!covers(*clock, other)) {
        if (covers(other, *clock)) {
            pc__clock *same = (pc__clock *)other;
            same->references++;
            pc__clock_drop(*clock);
            *clock = same;
        } else if (!learn(clock, other->marks, other->count)) {
            return false;
        }
    }
    if (stream == 0 || pc__clock_knows(*clock, stream, ticket))
        return true;
    return learn(clock, &(pc__clock_mark){stream, ticket}, 1);
}
