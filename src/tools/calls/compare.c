/* compare.c: calls of a group side by side, by their numbers, up to the first at which its ranks part. */
#include "calls/side.h"

#include <math.h>
#include <stdlib.h>

#define PATIENCE 1.0 /* seconds for which a call that all are in is nothing special */

enum { BEFORE = 4, BEHIND = 1, ROWS_MOST = BEFORE + 1 + BEHIND };

static pc_calls_finding *add(pc_calls_summary *summary, int *room, const pc__seen_call *c)
{
    if (pc__grow((void **)&summary->findings, room, summary->finding_count, sizeof *summary->findings) != PC_OK)
        return NULL;
    pc_calls_finding *f = &summary->findings[summary->finding_count++];
    *f = (pc_calls_finding){.group = c->group, .number = c->number};
    return f;
}

static bool is_over(const pc__seen_call *c)
{
    return c->state == PC__SEEN_DONE;
}

/* Whether all ranks came to these n calls: they are done where they left a record, or one is, with what nobody gets from this
 * call before all others have come. */
static bool all_came(const pc__side *s, int first, int n, int over)
{
    static const char *const together[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"};
    const pc__seen_call *c = s->list[first];
    bool waits = false;
    for (int i = 0; i < (int)(sizeof together / sizeof *together); i++)
        waits = waits || (!strcmp(c->op, together[i]) && (c->count || !c->dtype[0]));
    return n == s->size || over == n || (over && waits);
}

/* Up to the first number where the ranks part. */
static pc_status look(const pc__side *s, pc_calls_summary *summary, int *room)
{
    for (int n, first = pc__side_at(s, s->low, &n); first < s->count; first += n) {
        int over = 0;
        const int64_t number = s->list[first]->number;
        (void)pc__side_at(s, number, &n);
        const pc__seen_call *most = pc__side_usual(s, first, n);
        bool same = true;
        for (int i = first; i < first + n; i++) {
            same = same && pc__side_alike(s->list[i], most);
            over += is_over(s->list[i]);
        }
        const bool came = all_came(s, first, n, over); /* those without a file, too */
        const bool short_yet = came && pc__side_waited(s, first, n) < PATIENCE;
        if (same && (over == n || short_yet))
            continue;
        pc_calls_finding *f = add(summary, room, most);
        if (!f)
            return PC_ERR_MEMORY;
        if (!same)
            pc__side_say_mismatch(s, first, n, most, f->words, sizeof f->words);
        else if (!came)
            pc__side_say_missing(s, first, n, most, f->words, sizeof f->words);
        else {
            char call[128];
            pc__seen_words(most, call, sizeof call);
            snprintf(
                f->words, sizeof f->words,
                "all ranks are in call %lld of %s, %s, and %d of them are done: what it waits for is the device or the "
                "network between them%s",
                (long long)number, most->group, call, over, n < s->size ? ", or a rank that has left no file" : "");
        }
        return PC_OK;
    }
    return PC_OK;
}

static void fill_row(const pc__side *s, int64_t number, pc_calls_row *row)
{
    int n;
    const int at = pc__side_at(s, number, &n);
    const pc__seen_call *most = pc__side_usual(s, at, n), *first = NULL, *last = NULL;
    *row =
        (pc_calls_row){.group = most->group, .number = number, .first = -1, .last = -1, .later = NAN, .finished = true};
    pc__seen_words(most, row->call, sizeof row->call);
    for (int r = 0; r < s->size; r++) /* nobody knows of those without a file */
        s->set[r] = s->who[r] >= 0 && pc__seen_file_of(s->calls, s->who[r]);
    for (int i = at; i < at + n; i++) {
        const pc__seen_call *c = s->list[i];
        row->finished = row->finished && is_over(c);
        if (!pc__side_alike(c, most))
            continue;
        s->set[c->rank] = false;
        if (isnan(c->entered))
            continue;
        first = !first || c->entered < first->entered ? c : first;
        last = !last || c->entered > last->entered ? c : last;
    }
    pc__side_names(s, row->absent, sizeof row->absent);
    if (!first)
        return;
    row->first = first->who;
    row->last = last->who;
    row->later = last->entered - first->entered;
}

static pc_status fill_rows(const pc__side *s, int64_t number, pc_calls_summary *summary)
{
    int n;
    summary->rows = pc__calloc(ROWS_MOST, sizeof *summary->rows);
    if (!summary->rows)
        return PC_ERR_MEMORY;
    for (int64_t i = PC__MAX(number - BEFORE, 1); i <= number + BEHIND; i++)
        if (pc__side_at(s, i, &n) >= 0 && n)
            fill_row(s, i, &summary->rows[summary->row_count++]);
    return PC_OK;
}

static double moment_of(const pc__side *s, int64_t number)
{
    int n;
    const int at = pc__side_at(s, number, &n);
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
static pc_status take(const pc__side *s, search *all)
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
        pc__side s = {0};
        if (taken[i] || !pc__side_counts(&calls->calls[i]))
            continue;
        status = pc__side_open(&s, calls, &calls->calls[i], taken);
        if (status == PC_OK)
            status = take(&s, &all);
        pc__side_close(&s);
    }
    pc__free(taken);
    return status;
}
