/* trace_json.c: a timeline's summary for programs: times in microseconds, shares from 0 to 1, unknown is null. */
#include "text.h"
#include "trace.h"

static void text(const char *key, const char *value)
{
    printf("\"%s\": ", key);
    cli_json_text(stdout, value);
}

static void number(const char *key, double value)
{
    printf(", \"%s\": ", key);
    cli_json_number(stdout, value);
}

static void whole(const char *key, int64_t value)
{
    printf(", \"%s\": %lld", key, (long long)value);
}

static void begin_list(const char *key)
{
    printf(",\n\"%s\": [", key);
}

static void begin_item(int i)
{
    fputs(i ? ",\n  {" : "\n  {", stdout);
}

static void print_devices(const pc_timeline_summary *s)
{
    begin_list("devices");
    for (int i = 0; i < s->device_count; i++) {
        const pc_timeline_device *d = &s->devices[i];
        begin_item(i);
        text("device", d->device);
        number("compute_us", d->compute);
        number("copy_us", d->copy);
        number("both_us", d->both);
        number("copy_overlapped", d->copy_overlapped);
        number("compute_overlapped", d->compute_overlapped);
        number("median_kernel_us", d->median_kernel);
        number("median_gap_us", d->median_gap);
        number("median_queue_wait_us", d->median_queue_wait);
        putchar('}');
    }
    putchar(']');
    begin_list("engines");
    for (int i = 0; i < s->engine_count; i++) {
        const pc_timeline_engine *e = &s->engines[i];
        begin_item(i);
        text("device", e->device);
        fputs(", ", stdout);
        text("engine", e->engine);
        if (e->lane >= 0)
            whole("lane", e->lane);
        else
            fputs(", \"lane\": null", stdout);
        whole("count", e->count);
        number("busy_us", e->busy);
        number("share", e->share);
        putchar('}');
    }
    putchar(']');
}

static void print_causes(const pc_timeline_causes *c)
{
    if (!c->device) {
        fputs(",\n\"compute\": null", stdout);
        return;
    }
    fputs(",\n\"compute\": {", stdout);
    text("device", c->device);
    number("window_us", c->window);
    number("computing", c->compute);
    number("copying", c->copying);
    number("loader", c->loader);
    number("synchronising", c->synchronising);
    number("launching", c->launching);
    number("host", c->host);
    putchar('}');
}

static void print_ops(const pc_timeline_summary *s)
{
    begin_list("ops");
    for (int i = 0; i < s->op_count; i++) {
        const pc_timeline_op *op = &s->ops[i];
        begin_item(i);
        text("name", op->name);
        whole("count", op->count);
        number("total_us", op->total);
        number("mean_us", op->mean);
        number("share", op->share);
        whole("bytes", op->bytes);
        number("gb_per_s", op->gigabytes_per_second);
        putchar('}');
    }
    putchar(']');
}

static void print_host(const pc_timeline_summary *s)
{
    begin_list("waits");
    for (int i = 0; i < s->wait_count; i++) {
        const pc_timeline_wait *w = &s->waits[i];
        begin_item(i);
        text("call", w->call);
        fputs(", ", stdout);
        text("site", w->site);
        whole("count", w->count);
        number("total_us", w->total);
        number("longest_us", w->longest);
        putchar('}');
    }
    putchar(']');
    begin_list("queuing");
    for (int i = 0; i < s->queuing_count; i++) {
        const pc_timeline_queuing *q = &s->queuings[i];
        begin_item(i);
        text("name", q->name);
        whole("count", q->count);
        number("total_us", q->total);
        number("mean_us", q->mean);
        putchar('}');
    }
    putchar(']');
}

static void print_ranks(const pc_timeline_summary *s)
{
    begin_list("ranks");
    for (int i = 0; i < s->rank_count; i++) {
        const pc_timeline_rank *r = &s->ranks[i];
        begin_item(i);
        printf("\"rank\": %d", r->rank);
        whole("calls", r->calls);
        number("in_calls_us", r->in_calls);
        number("waited_us", r->waited);
        whole("last", r->last);
        number("others_waited_us", r->caused);
        number("computing_beside", r->overlapped);
        putchar('}');
    }
    putchar(']');
    begin_list("collectives");
    for (int i = 0; i < s->collective_count; i++) {
        const pc_timeline_collective *c = &s->collectives[i];
        begin_item(i);
        text("name", c->name);
        fputs(", ", stdout);
        text("group", c->group);
        whole("number", c->number);
        whole("bytes", c->bytes);
        number("at_us", c->at);
        number("took_us", c->took);
        number("spread_us", c->spread);
        number("waited_us", c->waited);
        whole("first", c->first);
        whole("last", c->last);
        putchar('}');
    }
    putchar(']');
}

static void print_notes(const pc_timeline_summary *s)
{
    begin_list("notes");
    for (int i = 0; i < s->note_count; i++) {
        const pc_timeline_note *n = &s->notes[i];
        begin_item(i);
        text("note", n->note);
        fputs(", ", stdout);
        text("name", n->name);
        fputs(", ", stdout);
        text("site", n->site);
        whole("count", n->count);
        whole("bytes", n->bytes);
        putchar('}');
    }
    putchar(']');
}

void cli_trace_print_json(const pc_timeline_summary *s)
{
    putchar('{');
    text("verdict", pc_timeline_verdict_name(s->verdict));
    fputs(", ", stdout);
    text("words", s->verdict_words);
    number("wall_us", s->wall);
    whole("events", s->events);
    whole("skipped", s->skipped);
    whole("dropped", s->dropped);
    printf(", \"cut\": %s", s->cut ? "true" : "false");
    number("waited_us", s->waited);
    number("waited_share", s->waited_share);
    number("loader_us", s->loader);
    number("queuing_us", s->queuing);
    print_causes(&s->causes);
    print_devices(s);
    print_ops(s);
    print_host(s);
    print_notes(s);
    fputs(",\n", stdout);
    text("rank_words", s->rank_words);
    fputs(", ", stdout);
    text("absent_ranks", s->absent);
    whole("unmatched", s->unmatched);
    number("clock_error_us", s->clock_error);
    print_ranks(s);
    puts("}");
}
