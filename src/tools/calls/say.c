/* say.c: where ranks part, in words. */
#include "calls/side.h"

static void clear(const pc__side *s)
{
    memset(s->set, 0, (size_t)s->size);
}

/* "rank 2 called broadcast of ... where ranks 0, 1 called all_reduce of ..." */
void pc__side_say_mismatch(const pc__side *s, int first, int n, const pc__seen_call *most, char *words, size_t room)
{
    char others[96], odd[96], call[128], theirs[128];
    const pc__seen_call *other = NULL;
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = pc__side_alike(s->list[i], most);
    pc__side_names(s, others, sizeof others);
    for (int i = first; i < first + n && !other; i++)
        other = pc__side_alike(s->list[i], most) ? NULL : s->list[i];
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = pc__side_alike(s->list[i], other);
    pc__side_names(s, odd, sizeof odd);
    pc__seen_words(other, call, sizeof call);
    pc__seen_words(most, theirs, sizeof theirs);
    snprintf(words, room, "call %lld of %s: %s called %s where %s called %s", (long long)most->number, most->group, odd,
             call, others, theirs);
}

/* What a rank does that has not come. */
static void say_elsewhere(const pc__side *s, int who, char *words, size_t n)
{
    char place[192], time[32];
    const pc__seen_file *f = pc__seen_file_of(s->calls, who);
    const pc__seen_call *last = f ? pc__seen_last(s->calls, who) : NULL;
    if (!f) {
        snprintf(words, n, "it has left no file: it was killed, hangs, had gone before, or could not write one");
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

static bool is_on_its_way(const pc__side *s, int r, const pc__seen_call *to)
{
    const pc__seen_call *last = s->who[r] >= 0 ? pc__seen_last(s->calls, s->who[r]) : NULL;
    return last && last->state == PC__SEEN_RUNNING && !strcmp(last->group, to->group) && pc__side_counts(last) &&
           last->number < to->number;
}

/* Ranks that are still in an earlier call of the group are not the ones to look for, unless all are such. */
static void leave_out_those_on_their_way(const pc__side *s, const pc__seen_call *to)
{
    bool others = false;
    for (int r = 0; r < s->size; r++)
        others = others || (s->set[r] && !is_on_its_way(s, r, to));
    for (int r = 0; r < s->size; r++)
        s->set[r] = s->set[r] && !(others && is_on_its_way(s, r, to));
}

void pc__side_say_missing(const pc__side *s, int first, int n, const pc__seen_call *most, char *words, size_t room)
{
    char missing[96], call[128], elsewhere[256] = "", there[96], time[32], which[32] = "";
    int one = -1;
    for (int r = 0; r < s->size; r++)
        s->set[r] = true;
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = false;
    leave_out_those_on_their_way(s, most);
    for (int r = s->size - 1; r >= 0; r--)
        one = s->set[r] ? r : one;
    pc__side_names(s, missing, sizeof missing);
    clear(s);
    for (int i = first; i < first + n; i++)
        s->set[s->list[i]->rank] = true;
    pc__side_names(s, there, sizeof there);
    pc__seen_words(most, call, sizeof call);
    if (one >= 0 && s->who[one] >= 0)
        say_elsewhere(s, s->who[one], elsewhere, sizeof elsewhere);
    if (elsewhere[0] && s->size - n > 1)
        snprintf(which, sizeof which, "; rank %d: ", s->who[one]);
    snprintf(words, room, "%s never came to call %lld of %s, %s, in which %s %s for %s%s%.250s", missing,
             (long long)most->number, most->group, call, there, n == 1 ? "has been" : "have been",
             pc__seen_time(pc__side_waited(s, first, n), time),
             which[0]       ? which
             : elsewhere[0] ? ": "
                            : "",
             elsewhere);
}
