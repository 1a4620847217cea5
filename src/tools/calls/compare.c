/* compare.c: calls of a group side by side, by their numbers, up to the first at which its ranks part. */
#include "calls/calls.h"

#include <math.h>
#include <stdlib.h>

#define PATIENCE 1.0 /* seconds for which a call that all are in is nothing special */

enum { BEFORE = 4, BEHIND = 1, ROWS_MOST = BEFORE + 1 + BEHIND, RING = 1000 };

/* A group on one kind of device: what is compared. Ranks are those of the group. */
typedef struct side {
    const pc_calls *calls;
    const pc__seen_call **list; /* by number, then rank */
    int count, size;
    int *who;    /* of each rank; -1: it has made no call of this group that is known */
    bool *set;   /* room for a set of ranks */
    int64_t low, high;
} side;

static bool same_side(const pc__seen_call *a, const pc__seen_call *b)
{
    return !strcmp(a->group, b->group) && strcspn(a->device, ":") == strcspn(b->device, ":") &&
           !strncmp(a->device, b->device, strcspn(a->device, ":"));
}

static bool same_call(const pc__seen_call *a, const pc__seen_call *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->dtype, b->dtype) && a->count == b->count && a->peer == b->peer &&
           !strcmp(a->reduction, b->reduction);
}

static int by_number(const void *a, const void *b)
{
    const pc__seen_call *x = *(pc__seen_call *const *)a, *y = *(pc__seen_call *const *)b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : x->rank - y->rank;
}

static bool counts(const pc__seen_call *c)
{
    return c->kept && c->number && c->state != PC__SEEN_RECORDED && !pc__seen_is_pair(c);
}

/* The first of the calls of that number, and how many there are. */
static int at_number(const side *s, int64_t number, int *n)
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
static void find_range(side *s)
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

static pc_status side_open(side *s, const pc_calls *calls, const pc__seen_call *first, bool *taken)
{
    *s = (side){.calls = calls, .size = first->of};
    s->list = pc__alloc((size_t)calls->call_count * sizeof *s->list);
    s->who = pc__alloc((size_t)s->size * sizeof *s->who);
    s->set = pc__calloc((size_t)PC__MAX(s->size, calls->size), sizeof *s->set);
    if (!s->list || !s->who || !s->set)
        return PC_ERR_MEMORY;
    for (int r = 0; r < s->size; r++)
        s->who[r] = s->size == calls->size ? r : -1;
    for (int i = 0; i < calls->call_count; i++) {
        const pc__seen_call *c = &calls->calls[i];
        if (taken[i] || !counts(c) || !same_side(c, first) || c->of != s->size)
            continue;
        taken[i] = true;
        s->list[s->count++] = c;
        s->who[c->rank] = c->who;
    }
    qsort(s->list, (size_t)s->count, sizeof *s->list, by_number);
    find_range(s);
    return PC_OK;
}

static void side_close(side *s)
{
    pc__free(s->list);
    pc__free(s->who);
    pc__free(s->set);
}

/* The call that most of these make. */
static const pc__seen_call *usual(const side *s, int first, int n)
{
    const pc__seen_call *best = s->list[first];
    int most = 0;
    for (int i = first; i < first + n; i++) {
        int same = 0;
        for (int j = first; j < first + n; j++)
            same += same_call(s->list[i], s->list[j]);
        if (same > most) {
            most = same;
            best = s->list[i];
        }
        if (2 * same >= n)
            break;
    }
    return best;
}

/* Ranks of the world, of ranks of the group that `set` holds. */
static void name_ranks(const side *s, char *text, size_t n)
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

static void clear(const side *s)
{
    memset(s->set, 0, (size_t)s->size);
}

/* How long the first of these has been in the call. */
static double waited(const side *s, int first, int n)
{
    double longest = 0;
    for (int i = first; i < first + n; i++) {
        const pc__seen_call *c = s->list[i];
        const double from = isnan(c->entered) ? c->queued : c->entered;
        longest = PC__MAX(longest, pc__seen_file_of(s->calls, c->who)->now - from);
    }
    return longest;
}

static pc_calls_finding *add(pc_calls_summary *summary, int *room, const pc__seen_call *c)
{
    if (pc__grow((void **)&summary->findings, room, summary->finding_count, sizeof *summary->findings) != PC_OK)
        return NULL;
    pc_calls_finding *f = &summary->findings[summary->finding_count++];
    *f = (pc_calls_finding){.group = c->group, .number = c->number};
    return f;
}

/* "rank 2 called broadcast of ... where ranks 0, 1 called all_reduce of ..." */
static void say_mismatch(const side *s, int first, int n, const pc__seen_call *most, char *words, size_t room)
{
    char others[96], odd[96], call[128], theirs[128];
    const pc__seen_call *other = NULL;
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = same_call(s->list[i], most);
    name_ranks(s, others, sizeof others);
    for (int i = first; i < first + n && !other; i++)
        other = same_call(s->list[i], most) ? NULL : s->list[i];
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = same_call(s->list[i], other);
    name_ranks(s, odd, sizeof odd);
    pc__seen_words(other, call, sizeof call);
    pc__seen_words(most, theirs, sizeof theirs);
    snprintf(words, room, "call %lld of %s: %s called %s where %s called %s", (long long)most->number, most->group, odd, call,
             others, theirs);
}

/* What a rank does that has not come. */
static void say_elsewhere(const side *s, int who, char *words, size_t n)
{
    char place[192], time[32];
    const pc__seen_file *f = pc__seen_file_of(s->calls, who);
    const pc__seen_call *last = f ? pc__seen_last(s->calls, who) : NULL;
    if (!f) {
        snprintf(words, n, "it has left no file: it was killed, or hangs, or could not write one");
        return;
    }
    if (!last) {
        snprintf(words, n, "it has been in no call at all");
        return;
    }
    pc__seen_place(last, place, sizeof place);
    if (last->state == PC__SEEN_RUNNING)
        snprintf(words, n, "it has been in %s for %s", place, pc__seen_time(f->now - last->entered, time));
    else if (last->state == PC__SEEN_QUEUED)
        snprintf(words, n, "%s is in its device's queue and not done for %s", place,
                 pc__seen_time(f->now - last->queued, time));
    else if (last->state == PC__SEEN_FAILED)
        snprintf(words, n, "its last one, %s, failed %s before", place, pc__seen_time(f->now - last->finished, time));
    else
        snprintf(words, n, "it is in no call; its last one was %s, done %s before", place,
                 pc__seen_time(f->now - last->finished, time));
}

static void say_missing(const side *s, int first, int n, const pc__seen_call *most, char *words, size_t room)
{
    char missing[96], call[128], elsewhere[256] = "", there[96], time[32];
    int one = -1;
    for (int r = 0; r < s->size; r++)
        s->set[r] = true;
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = false;
    for (int r = s->size - 1; r >= 0; r--)
        one = s->set[r] ? r : one;
    name_ranks(s, missing, sizeof missing);
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = true;
    name_ranks(s, there, sizeof there);
    pc__seen_words(most, call, sizeof call);
    if (one >= 0 && s->who[one] >= 0)
        say_elsewhere(s, s->who[one], elsewhere, sizeof elsewhere);
    snprintf(words, room, "%s never came to call %lld of %s, %s, in which %s %s for %s%s%.250s", missing,
             (long long)most->number, most->group, call, there, n == 1 ? "has been" : "have been",
             pc__seen_time(waited(s, first, n), time), elsewhere[0] ? ": " : "", elsewhere);
}

static bool is_over(const pc__seen_call *c)
{
    return c->state == PC__SEEN_DONE;
}

/* PC_OK and *found at the first number where the ranks part. */
static pc_status look(const side *s, pc_calls_summary *summary, int *room)
{
    for (int64_t number = s->low; number <= s->high; number++) {
        int n, over = 0;
        const int first = at_number(s, number, &n);
        if (!n)
            continue;
        const pc__seen_call *most = usual(s, first, n);
        bool same = true;
        for (int i = first; i < first + n; i++) {
            same = same && same_call(s->list[i], most);
            over += is_over(s->list[i]);
        }
        /* Where all that came are done the others were there, too, and have left no file. */
        const bool short_yet = n == s->size && waited(s, first, n) < PATIENCE;
        if (same && (over == n || short_yet))
            continue;
        pc_calls_finding *f = add(summary, room, most);
        if (!f)
            return PC_ERR_MEMORY;
        if (!same)
            say_mismatch(s, first, n, most, f->words, sizeof f->words);
        else if (n < s->size)
            say_missing(s, first, n, most, f->words, sizeof f->words);
        else {
            char call[128];
            pc__seen_words(most, call, sizeof call);
            snprintf(f->words, sizeof f->words,
                     "all ranks are in call %lld of %s, %s, and %d of them are done: what it waits for is the device or the "
                     "network between them",
                     (long long)number, most->group, call, over);
        }
        return PC_OK;
    }
    return PC_OK;
}

static void fill_row(const side *s, int64_t number, pc_calls_row *row)
{
    int n;
    const int at = at_number(s, number, &n);
    const pc__seen_call *most = usual(s, at, n), *first = NULL, *last = NULL;
    *row = (pc_calls_row){.group = most->group, .number = number, .first = -1, .last = -1, .later = NAN, .finished = true};
    pc__seen_words(most, row->call, sizeof row->call);
    for (int r = 0; r < s->size; r++) /* nobody knows of those without a file */
        s->set[r] = s->who[r] >= 0 && pc__seen_file_of(s->calls, s->who[r]);
    for (int i = at; i < at + n; i++) {
        const pc__seen_call *c = s->list[i];
        row->finished = row->finished && is_over(c);
        if (!same_call(c, most))
            continue;
        s->set[c->rank] = false;
        if (isnan(c->entered))
            continue;
        first = !first || c->entered < first->entered ? c : first;
        last = !last || c->entered > last->entered ? c : last;
    }
    name_ranks(s, row->absent, sizeof row->absent);
    if (!first)
        return;
    row->first = first->who;
    row->last = last->who;
    row->later = last->entered - first->entered;
}

static pc_status fill_rows(const side *s, int64_t number, pc_calls_summary *summary)
{
    int n;
    summary->rows = pc__calloc(ROWS_MOST, sizeof *summary->rows);
    if (!summary->rows)
        return PC_ERR_MEMORY;
    for (int64_t i = PC__MAX(number - BEFORE, 1); i <= number + BEHIND; i++)
        if (at_number(s, i, &n) >= 0 && n)
            fill_row(s, i, &summary->rows[summary->row_count++]);
    return PC_OK;
}

static double moment_of(const side *s, int64_t number)
{
    int n;
    const int at = at_number(s, number, &n);
    double first = INFINITY;
    for (int i = at; i < at + n; i++)
        first = PC__MIN(first, isnan(s->list[i]->entered) ? s->list[i]->queued : s->list[i]->entered);
    return first;
}

typedef struct search {
    pc_calls_summary *summary;
    int room;
    double parted, newest; /* when ranks parted first, and the newest call where they have not */
} search;

/* The group whose ranks parted first is told first, and its calls are shown; without one the newest group's. */
static pc_status take(const side *s, search *all)
{
    pc_calls_summary *summary = all->summary;
    const int before = summary->finding_count;
    PC__TRY(look(s, summary, &all->room));
    const bool found = summary->finding_count > before;
    const int64_t number = found ? summary->findings[before].number : s->high;
    const double at = moment_of(s, number);
    if (found ? !(at < all->parted) : before || !(at > all->newest))
        return PC_OK;
    *(found ? &all->parted : &all->newest) = at;
    if (found) {
        const pc_calls_finding f = summary->findings[before];
        summary->findings[before] = summary->findings[0];
        summary->findings[0] = f;
    }
    pc__free(summary->rows);
    summary->rows = NULL;
    summary->row_count = 0;
    return fill_rows(s, number, summary);
}

pc_status pc__calls_compare(const pc_calls *calls, pc_calls_summary *summary)
{
    search all = {.summary = summary, .parted = INFINITY, .newest = -INFINITY};
    bool *taken = pc__calloc((size_t)calls->call_count + 1, sizeof *taken);
    pc_status status = taken ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < calls->call_count && status == PC_OK; i++) {
        side s = {0};
        if (taken[i] || !counts(&calls->calls[i]))
            continue;
        status = side_open(&s, calls, &calls->calls[i], taken);
        if (status == PC_OK)
            status = take(&s, &all);
        side_close(&s);
    }
    pc__free(taken);
    return status;
}
