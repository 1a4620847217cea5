/* ranks.c: what each rank did last; the summary as a whole. */
#include "calls/calls.h"

#include <math.h>

const pc__seen_call *pc__seen_last(const pc_calls *calls, int who)
{
    const pc__seen_file *f = pc__seen_file_of(calls, who);
    const pc__seen_call *last = NULL;
    for (int i = 0; f && i < f->count; i++) {
        const pc__seen_call *c = &calls->calls[f->first + i];
        if (c->who != who || c->state == PC__SEEN_RECORDED)
            continue;
        /* One that has begun goes before those behind it in a queue. */
        const bool begun = c->number > 0, before = last && last->number > 0;
        if (!last || begun > before || (begun == before && !(c->entered < last->entered)))
            last = c;
    }
    return last;
}

static const pc__seen_call *last_done(const pc_calls *calls, int who)
{
    const pc__seen_file *f = pc__seen_file_of(calls, who);
    for (int i = f ? f->count - 1 : -1; i >= 0; i--) {
        const pc__seen_call *c = &calls->calls[f->first + i];
        if (c->who == who && c->state == PC__SEEN_DONE)
            return c;
    }
    return NULL;
}

static double since(const pc__seen_file *f, const pc__seen_call *c)
{
    const bool over = c->state == PC__SEEN_DONE || c->state == PC__SEEN_FAILED;
    const double at = over ? c->finished : isnan(c->entered) ? c->queued : c->entered;
    return f->now - at;
}

pc_status pc__calls_sum_ranks(const pc_calls *calls, pc_calls_summary *s)
{
    s->ranks = pc__calloc((size_t)calls->size, sizeof *s->ranks);
    if (!s->ranks)
        return PC_ERR_MEMORY;
    s->rank_count = calls->size;
    for (int r = 0; r < calls->size; r++) {
        pc_calls_rank *rank = &s->ranks[r];
        const pc__seen_file *f = pc__seen_file_of(calls, r);
        *rank = (pc_calls_rank){.rank = r, .host = "", .state = "", .since = NAN};
        if (!f)
            continue;
        const pc__seen_call *last = pc__seen_last(calls, r), *done = last_done(calls, r);
        rank->there = true;
        rank->host = f->host;
        rank->process = f->process;
        if (done)
            pc__seen_place(done, rank->finished, sizeof rank->finished);
        if (!last)
            continue;
        pc__seen_place(last, rank->entered, sizeof rank->entered);
        rank->state = pc__seen_state(last->state);
        rank->since = since(f, last);
    }
    return PC_OK;
}

static pc_status name_absent(const pc_calls *calls, pc_calls_summary *s)
{
    bool *absent = pc__calloc((size_t)calls->size, sizeof *absent);
    if (!absent)
        return PC_ERR_MEMORY;
    for (int r = 0; r < calls->size; r++)
        absent[r] = !pc__seen_file_of(calls, r);
    pc__seen_ranks(absent, calls->size, s->absent, sizeof s->absent);
    pc__free(absent);
    return PC_OK;
}

static void sum_files(const pc_calls *calls, pc_calls_summary *s)
{
    double first = INFINITY;
    s->size = calls->size;
    s->there = calls->files[0].size == 1 ? calls->size : calls->file_count;
    s->start = calls->files[0].start;
    s->why = calls->files[0].why;
    for (int i = 0; i < calls->file_count; i++) {
        const pc__seen_file *f = &calls->files[i];
        s->written = PC__MAX(s->written, f->written);
        if (f->now < first) {
            first = f->now;
            s->why = f->why;
        }
    }
    snprintf(s->left_out, sizeof s->left_out, "%s", calls->left_out);
}

pc_status pc_calls_summarise(const pc_calls *calls, pc_calls_summary *summary)
{
    PC__NEED(calls);
    PC__NEED(summary);
    *summary = (pc_calls_summary){0};
    sum_files(calls, summary);
    pc_status status = name_absent(calls, summary);
    if (status == PC_OK)
        status = pc__calls_sum_ranks(calls, summary);
    if (status == PC_OK)
        status = pc__calls_compare(calls, summary);
    if (status != PC_OK)
        pc_calls_summary_free(summary);
    return status;
}

void pc_calls_summary_free(pc_calls_summary *summary)
{
    if (!summary)
        return;
    pc__free(summary->findings);
    pc__free(summary->ranks);
    pc__free(summary->rows);
    *summary = (pc_calls_summary){0};
}
