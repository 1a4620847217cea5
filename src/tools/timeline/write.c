/* write.c: a timeline as a file again, in Chrome's trace event format: one of several. */
#include "timeline/timeline.h"

#include <math.h>

#include "base/number.h"
#include "io/file.h"

static void text(pc__text *out, const char *key, const char *value)
{
    pc__text_add(out, ",\"%s\":", key);
    pc__json_string(out, value);
}

static void name(pc__text *out, const char *what, int process, int row, const char *value, int order)
{
    pc__text_add(out, "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what, process,
                 row);
    pc__json_string(out, value);
    pc__text_add(out,
                 "}},\n{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
                 what, process, row, order);
}

static void rows(pc__text *out, const pc_timeline *t)
{
    for (int r = 0; r < t->row_count; r++) {
        const int process = t->rows[r].process;
        if (!r || t->rows[r - 1].process != process)
            name(out, "process", process + 1, r + 1, pc__timeline_text(t, t->processes[process].name), r);
        name(out, "thread", process + 1, r + 1, pc__timeline_text(t, t->rows[r].name), r);
    }
}

static void event(pc__text *out, const pc_timeline *t, const pc__timeline_event *e)
{
    pc__text_add(out, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", t->rows[e->row].process + 1,
                 e->row + 1, e->start, e->duration);
    text(out, "name", pc__timeline_text(t, e->name));
    text(out, "cat", pc__timeline_text(t, e->category));
    pc__text_add(out, ",\"args\":{\"stream\":%d", e->stream);
    if (e->ticket >= 0)
        pc__text_add(out, ",\"ticket\":%lld", (long long)e->ticket);
    if (e->bytes > 0)
        pc__text_add(out, ",\"bytes\":%lld", (long long)e->bytes);
    if (!isnan(e->queued))
        pc__text_add(out, ",\"queued_us\":%.3f", e->queued);
    if (e->site)
        text(out, "site", pc__timeline_text(t, e->site));
    if (e->note)
        text(out, "note", pc__timeline_text(t, e->note));
    pc__text_add(out, "}},\n");
}

/* Both ends lie within the events that they belong to. */
static void arrow(pc__text *out, const pc_timeline *t, int number)
{
    const pc__timeline_event *from = &t->events[t->arrows[number].from], *to = &t->events[t->arrows[number].to];
    pc__text_add(out,
                 "{\"ph\":\"s\",\"name\":\"wait\",\"cat\":\"wait\",\"id\":%d,\"pid\":%d,\"tid\":%d,\"ts\":%.3f},\n",
                 number + 1, t->rows[from->row].process + 1, from->row + 1,
                 PC__MAX(pc__timeline_end(from) - 0.001, from->start));
    pc__text_add(
        out,
        "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"wait\",\"cat\":\"wait\",\"id\":%d,\"pid\":%d,\"tid\":%d,\"ts\":%.3f},\n",
        number + 1, t->rows[to->row].process + 1, to->row + 1, to->start);
}

static void mark(pc__text *out, const pc_timeline *t, const pc__timeline_mark *m)
{
    pc__text_add(out, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f", t->rows[m->row].process + 1,
                 m->row + 1, m->at);
    text(out, "name", pc__timeline_text(t, m->name));
    pc__text_add(out, "},\n");
}

pc_status pc_timeline_write(const pc_timeline *timeline, const char *path)
{
    PC__NEED(timeline);
    PC__NEED(path);
    pc__text out = {0};
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    pc__text_add(&out, "[\n");
    rows(&out, timeline);
    for (int i = 0; i < timeline->event_count; i++)
        event(&out, timeline, &timeline->events[i]);
    for (int i = 0; i < timeline->mark_count; i++)
        mark(&out, timeline, &timeline->marks[i]);
    for (int i = 0; i < timeline->arrow_count; i++)
        arrow(&out, timeline, i);
    pc__text_add(&out, "{\"ph\":\"M\",\"name\":\"paracord merged\",\"pid\":1,\"tid\":1}\n]\n");
    pc__plain_numbers_end(plain);
    const pc_status status = out.failed ? PC_ERR_MEMORY : pc__file_write(path, out.data, out.length);
    pc__text_free(&out);
    return status;
}
