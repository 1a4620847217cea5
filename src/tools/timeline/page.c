/* page.c: a timeline as one HTML page: its data as JSON, columns of whole numbers, beside the script that
 * draws it. */
#include "timeline/page.h"

#include <math.h>

#include "base/number.h"
#include "io/file.h"
#include "pages/pages.h"

static long long nanoseconds(double us)
{
    return llround(us * 1e3);
}

typedef enum column {
    START,
    DURATION,
    NAME,
    CATEGORY,
    DEPTH,
    BYTES,
    QUEUED,
    SITE,
    NOTE,
    TICKET,
    STREAM,
    COLUMNS
} column;

/* Starts are told as the distance from the start before in the row: shorter numbers. */
static long long value_of(const pc_timeline *t, int i, column which)
{
    const pc__timeline_event *event = &t->events[i];
    switch (which) {
    case START:
        return nanoseconds(event->start) - (i > t->rows[event->row].first ? nanoseconds(t->events[i - 1].start) : 0);
    case DURATION:
        return nanoseconds(pc__timeline_end(event)) - nanoseconds(event->start);
    case NAME:
        return event->name;
    case CATEGORY:
        return event->category;
    case DEPTH:
        return event->depth;
    case BYTES:
        return event->bytes;
    case QUEUED:
        return isnan(event->queued) ? -1 : nanoseconds(event->queued);
    case SITE:
        return event->site;
    case NOTE:
        return event->note;
    case TICKET:
        return event->ticket;
    default:
        return event->stream;
    }
}

static void whole(pc__text *out, long long value)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long long rest = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    pc__text_append(out, at, (size_t)(digits + sizeof digits - at));
}

static void columns(pc__text *out, const pc_timeline *t)
{
    static const char keys[] = "sdnchbqtokm";
    for (column which = START; which < COLUMNS; which++) {
        pc__text_add(out, "\"%c\":[", keys[which]);
        for (int i = 0; i < t->event_count; i++) {
            pc__text_append(out, ",", i > 0);
            whole(out, value_of(t, i, which));
        }
        pc__text_append(out, "],\n", 3);
    }
}

static void list_texts(pc__text *out, const pc_timeline *t)
{
    pc__text_add(out, "\"texts\":[");
    for (int i = 0; i < t->texts.count; i++) {
        pc__text_append(out, ",\n", i ? 2 : 0);
        pc__timeline_page_string(out, t->texts.items[i]);
    }
    pc__text_add(out, "],\n");
}

static void list_rows(pc__text *out, const pc_timeline *t)
{
    pc__text_add(out, "\"rows\":[");
    for (int r = 0; r < t->row_count; r++) {
        const pc__timeline_row *row = &t->rows[r];
        pc__text_add(out, "%s[%d,%d,%d,%d,%d,%d]", r ? "," : "", t->processes[row->process].name, row->name,
                     (int)row->kind, row->depths, row->first, row->count);
    }
    pc__text_add(out, "],\n\"marks\":[");
    for (int i = 0; i < t->mark_count; i++)
        pc__text_add(out, "%s%d,%lld,%d", i ? "," : "", t->marks[i].row, nanoseconds(t->marks[i].at), t->marks[i].name);
    pc__text_add(out, "],\n\"arrows\":[");
    for (int i = 0; i < t->arrow_count; i++)
        pc__text_add(out, "%s%d,%d", i ? "," : "", t->arrows[i].from, t->arrows[i].to);
    pc__text_add(out, "],\n");
}

static int per_mille(double share)
{
    return share > 0 ? (int)lround(1000 * PC__MIN(share, 1)) : 0;
}

static void causes(pc__text *out, const pc_timeline_causes *c)
{
    pc__text_add(out, "\"why\":[");
    if (c->device)
        pc__text_add(out,
                     "[\"computing\",%d],[\"copying\",%d],[\"waiting for the loader\",%d],[\"synchronising\",%d],"
                     "[\"launching\",%d],[\"host code\",%d]",
                     per_mille(c->compute), per_mille(c->copying), per_mille(c->loader), per_mille(c->synchronising),
                     per_mille(c->launching), per_mille(c->host));
    pc__text_add(out, "],\n");
}

/* Lanes can be seen in their rows. */
static void busy(pc__text *out, const pc_timeline_summary *s)
{
    bool any = false;
    pc__text_add(out, "\"busy\":[");
    for (int i = 0; i < s->engine_count; i++) {
        char name[256], time[32];
        const pc_timeline_engine *engine = &s->engines[i];
        if (engine->lane >= 0)
            continue;
        snprintf(name, sizeof name, "%.120s %.60s", engine->device, engine->engine);
        pc__text_add(out, any ? ",[" : "[");
        pc__timeline_page_string(out, name);
        pc__text_add(out, ",%d,\"%s\"]", per_mille(engine->share), pc__timeline_time(engine->busy, time));
        any = true;
    }
    pc__text_add(out, "],\n");
}

static void facts(pc__text *out, const pc_timeline *t, const pc_timeline_summary *s)
{
    char wall[32], still[32];
    pc__text_add(out, "\"facts\":[\"%s in all\",\"%d events\"", pc__timeline_time(s->wall, wall), t->event_count);
    if (s->wait_count)
        pc__text_add(out, ",\"host stood still %s\"", pc__timeline_time(s->waited, still));
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].copy > 0) {
            char fact[256];
            snprintf(fact, sizeof fact, "%.120s: %.0f %% of copying while computing", s->devices[i].device,
                     100 * s->devices[i].copy_overlapped);
            pc__text_add(out, ",");
            pc__timeline_page_string(out, fact);
        }
    if (s->absent[0])
        pc__text_add(out, ",\"no timeline of %s\"", s->absent);
    if (s->unmatched)
        pc__text_add(out, ",\"%lld calls without those of the other ranks\"", (long long)s->unmatched);
    if (s->cut)
        pc__text_add(out, ",\"the file ends in the middle: the program was ended\"");
    if (s->skipped)
        pc__text_add(out, ",\"%lld events without sensible times left out\"", (long long)s->skipped);
    if (s->dropped)
        pc__text_add(out, ",\"%lld events could not be written\"", (long long)s->dropped);
    pc__text_add(out, "],\n");
}

static void data(pc__text *out, const pc_timeline *t, const pc_timeline_summary *s)
{
    const char *words = strstr(s->verdict_words, ": ");
    pc__text_add(out, "{\"file\":");
    pc__timeline_page_string(out, pc__timeline_text(t, t->file));
    pc__text_add(out, ",\"wall\":%lld,\n\"bound\":", nanoseconds(t->wall));
    pc__timeline_page_string(out, words ? pc_timeline_verdict_name(s->verdict) : "");
    pc__text_add(out, ",\"said\":");
    pc__timeline_page_string(out, words ? words + 2 : s->verdict_words);
    pc__text_add(out, ",\n\"ranks\":");
    pc__timeline_page_string(out, s->rank_words);
    pc__text_add(out, ",\n");
    causes(out, &s->causes);
    busy(out, s);
    facts(out, t, s);
    list_texts(out, t);
    list_rows(out, t);
    columns(out, t);
    pc__timeline_page_tables(out, s);
    pc__text_add(out, "}");
}

static void put(pc__text *out, const char *markup)
{
    pc__text_append(out, markup, strlen(markup));
}

/* With the version in its last line, as reports have it. */
static void markup(pc__text *out)
{
    static const char foot[] = "<footer>Paracord";
    const char *rest = strstr(pc__page_timeline_html, foot) + sizeof foot - 1;
    pc__text_append(out, pc__page_timeline_html, (size_t)(rest - pc__page_timeline_html));
    pc__text_add(out, " %s", pc_version());
    put(out, rest);
}

static void page(pc__text *out, const pc_timeline *t, const pc_timeline_summary *s)
{
    put(out, pc__page_head_html);
    put(out, "<title>Timeline</title>\n<style>\n");
    put(out, pc__page_timeline_css);
    put(out, "</style>\n</head>\n<body>\n");
    markup(out);
    put(out, "<script type='application/json' id='data'>");
    data(out, t, s);
    put(out, "</script>\n<script>\n");
    put(out, pc__page_timeline_data_js);
    put(out, pc__page_timeline_draw_js);
    put(out, pc__page_timeline_act_js);
    put(out, pc__page_timeline_page_js);
    put(out, "</script>\n</body>\n</html>\n");
}

pc_status pc_timeline_page(const pc_timeline *timeline, const char *path)
{
    PC__NEED(timeline);
    PC__NEED(path);
    pc_timeline_summary summary;
    pc__text html = {0};
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    const pc_status summarised = pc_timeline_summarise(timeline, &summary);
    if (summarised == PC_OK)
        page(&html, timeline, &summary);
    pc__plain_numbers_end(plain);
    PC__TRY(summarised);
    pc_status status = html.failed ? PC_ERR_MEMORY : pc__file_write(path, html.data, html.length);
    pc__text_free(&html);
    pc_timeline_summary_free(&summary);
    return status;
}
