/* tables.c: the summary's lists as tables of the page. */
#include <math.h>
#include <stdarg.h>

#include "timeline/page.h"

#define ROWS_MAX 25 /* a longer list is for `paracord trace summary --json` */

void pc__timeline_page_string(pc__text *out, const char *text)
{
    pc__text quoted = {0};
    pc__json_string(&quoted, text);
    out->failed |= quoted.failed;
    for (char *at = quoted.data; at && *at;) {
        size_t n = strcspn(at, "<");
        pc__text_append(out, at, n);
        at += n;
        if (*at) {
            pc__text_add(out, "\\u003c");
            at++;
        }
    }
    pc__text_free(&quoted);
}

static void cell(pc__text *out, const char *joint, const char *format, ...) PC_PRINTF(3, 4);
static void cell(pc__text *out, const char *joint, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pc__text_add(out, "%s", joint);
    pc__timeline_page_string(out, text);
}

static void time_cell(pc__text *out, double us)
{
    char text[32];
    cell(out, ",", "%s", pc__timeline_time(us, text));
}

static void begin(pc__text *out, const char *joint, const char *title, int words, const char *const *heads)
{
    pc__text_add(out, "%s{\"title\":\"%s\",\"words\":%d,\"head\":[", joint, title, words);
    for (int i = 0; heads[i]; i++)
        cell(out, i ? "," : "", "%s", heads[i]);
    pc__text_add(out, "],\"rows\":[");
}

#define HEADS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void ops(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, ",", "Work by total time", 0, HEADS("op", "total", "share", "count", "mean", "GB/s"));
    for (int i = 0; i < PC__MIN(s->op_count, ROWS_MAX); i++) {
        const pc_timeline_op *op = &s->ops[i];
        cell(out, i ? ",[" : "[", "%s", op->name);
        time_cell(out, op->total);
        cell(out, ",", "%.1f %%", 100 * op->share);
        cell(out, ",", "%lld", (long long)op->count);
        time_cell(out, op->mean);
        if (isnan(op->gigabytes_per_second))
            cell(out, ",", "%s", "");
        else
            cell(out, ",", "%.3g", op->gigabytes_per_second);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

static void waits(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, ",", "Where the host stood still", 2, HEADS("call", "at", "total", "count", "longest"));
    for (int i = 0; i < PC__MIN(s->wait_count, ROWS_MAX); i++) {
        const pc_timeline_wait *wait = &s->waits[i];
        cell(out, i ? ",[" : "[", "%s", wait->call);
        cell(out, ",", "%s", wait->site);
        time_cell(out, wait->total);
        cell(out, ",", "%lld", (long long)wait->count);
        time_cell(out, wait->longest);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

static void queuings(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, ",", s->causes.device ? "Time the host spent queuing" : "Time the host spent in ops", 0,
          HEADS("op", "total", "count", "mean"));
    for (int i = 0; i < PC__MIN(s->queuing_count, ROWS_MAX); i++) {
        const pc_timeline_queuing *queuing = &s->queuings[i];
        cell(out, i ? ",[" : "[", "%s", queuing->name);
        time_cell(out, queuing->total);
        cell(out, ",", "%lld", (long long)queuing->count);
        time_cell(out, queuing->mean);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

static void ranks(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, "", "Ranks", 1,
          HEADS("rank", "in calls", "waiting", "calls", "last", "others waited", "beside computing"));
    for (int i = 0; i < s->rank_count; i++) {
        const pc_timeline_rank *r = &s->ranks[i];
        cell(out, i ? ",[" : "[", "rank %d", r->rank);
        time_cell(out, r->in_calls);
        time_cell(out, r->waited);
        cell(out, ",", "%lld", (long long)r->calls);
        cell(out, ",", "%lld", (long long)r->last);
        time_cell(out, r->caused);
        if (isnan(r->overlapped))
            cell(out, ",", "%s", "");
        else
            cell(out, ",", "%.1f %%", 100 * r->overlapped);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

static void collectives(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, ",", "Calls of ranks by waiting", 1,
          HEADS("call", "waited in sum", "first to last rank", "took", "bytes", "first", "last"));
    for (int i = 0; i < PC__MIN(s->collective_count, ROWS_MAX); i++) {
        const pc_timeline_collective *c = &s->collectives[i];
        cell(out, i ? ",[" : "[", "%.60s %lld of %.60s", c->name, (long long)c->number, c->group);
        time_cell(out, c->waited);
        time_cell(out, c->spread);
        time_cell(out, c->took);
        cell(out, ",", "%lld", (long long)c->bytes);
        cell(out, ",", "rank %d", c->first);
        cell(out, ",", "rank %d", c->last);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

static void notes(pc__text *out, const pc_timeline_summary *s)
{
    begin(out, ",", "Remarks", 3, HEADS("remark", "op", "first at", "count"));
    for (int i = 0; i < PC__MIN(s->note_count, ROWS_MAX); i++) {
        const pc_timeline_note *note = &s->notes[i];
        cell(out, i ? ",[" : "[", "%s", note->note);
        cell(out, ",", "%s", note->name);
        cell(out, ",", "%s", note->site);
        cell(out, ",", "%lld", (long long)note->count);
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]}");
}

void pc__timeline_page_tables(pc__text *out, const pc_timeline_summary *summary)
{
    pc__text_add(out, "\"tables\":[");
    ranks(out, summary);
    collectives(out, summary);
    ops(out, summary);
    waits(out, summary);
    queuings(out, summary);
    notes(out, summary);
    pc__text_add(out, "]");
}
