/* side.c: the calls of a group, by number and rank. */
#include "calls/side.h"

#include <math.h>
#include <stdlib.h>

enum { RING = 1000 }; /* calls that a process keeps */

static bool same_side(const pc__seen_call *a, const pc__seen_call *b)
{
    return !strcmp(a->group, b->group) && strcspn(a->device, ":") == strcspn(b->device, ":") &&
           !strncmp(a->device, b->device, strcspn(a->device, ":"));
}

bool pc__side_alike(const pc__seen_call *a, const pc__seen_call *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->dtype, b->dtype) && a->count == b->count && a->peer == b->peer &&
           !strcmp(a->reduction, b->reduction);
}

static int by_number(const void *a, const void *b)
{
    const pc__seen_call *x = *(pc__seen_call *const *)a, *y = *(pc__seen_call *const *)b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : x->rank - y->rank;
}

bool pc__side_counts(const pc__seen_call *c)
{
    return c->kept && c->number && c->state != PC__SEEN_RECORDED && !pc__seen_is_pair(c);
}

/* The first of the calls of that number, and how many there are. */
int pc__side_at(const pc__side *s, int64_t number, int *n)
{
    int first = 0, end = s->count;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if (s->list[middle]->number < number)
            first = middle + 1;
        else
            end = middle;
    }
    for (*n = 0; first + *n < s->count && s->list[first + *n]->number == number;)
        ++*n;
    return first;
}

/* From where on all that are there have a record: a ring forgets. */
static void find_range(pc__side *s)
{
    s->low = 1;
    s->high = s->count ? s->list[s->count - 1]->number : 0;
    for (int i = 0; i < s->count; i++) {
        const pc__seen_call *c = s->list[i];
        const bool first = !s->set[c->rank];
        s->set[c->rank] = true;
        if (first && pc__seen_file_of(s->calls, c->who)->count >= RING)
            s->low = PC__MAX(s->low, c->number);
    }
}

pc_status pc__side_open(pc__side *s, const pc_calls *calls, const pc__seen_call *first, bool *taken)
{
    *s = (pc__side){.calls = calls, .size = first->of};
    s->list = pc__alloc((size_t)calls->call_count * sizeof *s->list);
    s->who = pc__alloc((size_t)s->size * sizeof *s->who);
    s->set = pc__calloc((size_t)PC__MAX(s->size, calls->size), sizeof *s->set);
    if (!s->list || !s->who || !s->set)
        return PC_ERR_MEMORY;
    for (int r = 0; r < s->size; r++)
        s->who[r] = s->size == calls->size ? r : -1;
    for (int i = 0; i < calls->call_count; i++) {
        const pc__seen_call *c = &calls->calls[i];
        if (taken[i] || !pc__side_counts(c) || !same_side(c, first) || c->of != s->size)
            continue;
        taken[i] = true;
        s->list[s->count++] = c;
        s->who[c->rank] = c->who;
    }
    qsort(s->list, (size_t)s->count, sizeof *s->list, by_number);
    find_range(s);
    return PC_OK;
}

void pc__side_close(pc__side *s)
{
    pc__free(s->list);
    pc__free(s->who);
    pc__free(s->set);
}

/* The call that most of these make. */
const pc__seen_call *pc__side_usual(const pc__side *s, int first, int n)
{
    const pc__seen_call *best = s->list[first];
    int most = 0;
    for (int i = first; i < first + n; i++) {
        int same = 0;
        for (int j = first; j < first + n; j++)
            same += pc__side_alike(s->list[i], s->list[j]);
        if (same > most) {
            most = same;
            best = s->list[i];
        }
        if (2 * same >= n)
            break;
    }
    return best;
}

/* How long the first of these has been in the call. */
double pc__side_waited(const pc__side *s, int first, int n)
{
    double longest = 0;
    for (int i = first; i < first + n; i++) {
        const pc__seen_call *c = s->list[i];
        const double from = isnan(c->entered) ? c->queued : c->entered;
        longest = PC__MAX(longest, pc__seen_file_of(s->calls, c->who)->now - from);
    }
    return longest;
}

/* Ranks of the world, of ranks of the group that `set` holds. */
void pc__side_names(const pc__side *s, char *text, size_t n)
{
    bool *world = pc__calloc((size_t)s->calls->size, sizeof *world);
    bool known = world;
    for (int r = 0; r < s->size && world; r++)
        if (s->set[r] && s->who[r] >= 0 && s->who[r] < s->calls->size)
            world[s->who[r]] = true;
        else if (s->set[r])
            known = false;
    text[0] = 0;
    if (world)
        pc__seen_ranks(world, s->calls->size, text, n);
    const size_t at = strlen(text);
    if (!known) {
        char more[96];
        for (int r = 0; r < s->size; r++)
            s->set[r] = s->set[r] && s->who[r] < 0;
        pc__seen_ranks(s->set, s->size, more, sizeof more);
        snprintf(text + at, n - at, "%s%s of the group", at ? ", " : "", more);
    }
    pc__free(world);
    pc_error_clear();
}
