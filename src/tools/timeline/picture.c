/* picture.c: a part of a timeline as an SVG: rows as in the page, drawn once, small, for light and dark. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "io/file.h"

enum { WIDTH = 860, LEFT = 126, SCALE = 22, HEAD = 20, LANE = 19, DEEPER = 15, GAP = 3, DEPTHS = 8 };
#define LETTER 6.6 /* a letter's width, about, in 11 px sans-serif */

typedef struct picture {
    const pc_timeline *timeline;
    pc__text out, labels; /* labels go on top */
    double from, until;
    int outer, skip; /* the row of the range, and how many lanes of it enclose the picture */
    int *top;        /* of each row; -1: has nothing in view */
    int height;
} picture;

static double x_of(const picture *p, double time)
{
    time = fmin(fmax(time, p->from), p->until);
    return LEFT + (time - p->from) / (p->until - p->from) * (WIDTH - LEFT - 8);
}

/* The bytes of the letter, 0 where XML has none: what is no UTF-8, control characters, U+FFFE and U+FFFF. */
static int letter(const char *text)
{
    int n = pc__utf8_length(text);
    return (unsigned char)*text < ' ' || !strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3) ? 0 : n;
}

static void escape(pc__text *out, const char *text, int most)
{
    for (int n; *text && most > 0; text += n ? n : 1, most--) {
        n = letter(text);
        if (strchr("<>&\"", *text))
            pc__text_add(out, "&#%d;", *text);
        else
            pc__text_append(out, n ? text : "?", (size_t)(n ? n : 1));
    }
}

static int letters(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* As much of the text as there is room for; nothing where that says nothing. */
static void words(pc__text *out, const char *class, double x, double y, double room, const char *text)
{
    int fit = (int)(room / LETTER), count = letters(text);
    if (fit < 2 || (fit < 6 && fit < count))
        return;
    pc__text_add(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    escape(out, text, count > fit ? fit - 1 : count);
    pc__text_add(out, "%s</text>\n", count > fit ? "&#8230;" : "");
}

/* The page's colours: waits are red, the loader amber, an op's hue comes from its name. */
static int hue(const char *name)
{
    uint32_t h = 7;
    for (; *name; name++)
        h = h * 31 + (unsigned char)*name;
    return (int)(((h ^ h >> 15) * 0x9e3779b1u >> 24) * 360 / 256);
}

static const char *class_of(const picture *p, const pc__timeline_event *event)
{
    const char *category = pc__timeline_text(p->timeline, event->category);
    if (pc__timeline_host_kind_of(p->timeline, event) == PC__HOST_WAIT)
        return "wait";
    if (!strcmp(category, "loader"))
        return "load";
    return !strcmp(category, "step") || !strcmp(category, "range") ? "range" : NULL;
}

static int lane_of(const picture *p, const pc__timeline_event *event)
{
    return event->depth - (event->row == p->outer ? p->skip : 0);
}

static bool in_view(const picture *p, const pc__timeline_event *event)
{
    int lane = lane_of(p, event);
    return lane >= 0 && lane < DEPTHS && event->start < p->until && pc__timeline_end(event) > p->from;
}

static int y_of(const picture *p, const pc__timeline_event *event)
{
    int lane = lane_of(p, event);
    return p->top[event->row] + (lane ? LANE + (lane - 1) * DEEPER : 0);
}

static int height_of(const picture *p, const pc__timeline_event *event)
{
    return (lane_of(p, event) ? DEEPER : LANE) - 2;
}

static void bar(picture *p, const pc__timeline_event *event, double a, double b)
{
    const pc_timeline *t = p->timeline;
    const char *name = pc__timeline_text(t, event->name), *site = pc__timeline_text(t, event->site),
               *note = pc__timeline_text(t, event->note), *class = class_of(p, event);
    char time[32];
    int y = y_of(p, event), h = height_of(p, event);
    pc__text_add(&p->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" ", a, y, fmax(b - a, 1), h);
    if (class)
        pc__text_add(&p->out, "class=\"%s\"", class);
    else
        pc__text_add(&p->out, "class=\"op\" fill=\"hsl(%d,56%%,68%%)\"", hue(name));
    if (b - a < 2) {
        pc__text_add(&p->out, "/>\n");
        return;
    }
    pc__text_add(&p->out, "><title>");
    escape(&p->out, name, 200);
    pc__text_add(&p->out, ": %s%s", pc__timeline_time(event->duration, time), *site ? ", " : "");
    escape(&p->out, site, 200);
    pc__text_add(&p->out, *note ? "; " : "");
    escape(&p->out, note, 200);
    pc__text_add(&p->out, "</title></rect>\n");
    words(&p->labels, class && !strcmp(class, "range") ? "ink" : "on", a + 4, y + h / 2.0 + 4, b - a - 6, name);
}

/* Per lane: what lies within the pixel that was drawn last is seen there. */
static void bars(picture *p, const pc__timeline_row *row)
{
    double drawn[DEPTHS] = {0};
    for (int i = row->first; i < row->first + row->count; i++) {
        const pc__timeline_event *event = &p->timeline->events[i];
        if (!in_view(p, event))
            continue;
        double a = x_of(p, event->start), b = x_of(p, pc__timeline_end(event)), *last = &drawn[lane_of(p, event)];
        if (b <= *last)
            continue;
        *last = fmax(b, a + 1);
        bar(p, event, a, b - a > 4 ? b - 0.8 : b);
    }
}

static void arrow(picture *p, const pc__timeline_event *a, const pc__timeline_event *b)
{
    if (!in_view(p, a) || !in_view(p, b))
        return;
    double x = x_of(p, pc__timeline_end(a)), u = x_of(p, fmax(b->start, pc__timeline_end(a)));
    double y = y_of(p, a) + height_of(p, a) / 2.0, v = y_of(p, b) + height_of(p, b) / 2.0;
    double bend = fmax(14, fabs(u - x) / 3);
    pc__text_add(&p->out, "<path class=\"arrow\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", x, y, x + bend, y,
                 u - bend, v, u - 5, v);
    pc__text_add(&p->out, "<path class=\"head\" d=\"M%.1f %.1fl-7 -3.5v7z\"/>\n", u, v);
}

static void mark(picture *p, const pc__timeline_mark *mark)
{
    if (p->top[mark->row] < 0 || mark->at < p->from || mark->at > p->until)
        return;
    pc__text_add(&p->out, "<path class=\"head\" d=\"M%.1f %dl-4 -7h8z\"><title>", x_of(p, mark->at),
                 p->top[mark->row] + 7);
    escape(&p->out, pc__timeline_text(p->timeline, mark->name), 200);
    pc__text_add(&p->out, "</title></path>\n");
}

/* "0", "2.5 ms": a round number of steps. */
static void tick(picture *p, double us, double step)
{
    double x = x_of(p, p->from + us), unit = us < 1e3 && step < 1e3 ? 1 : p->until - p->from < 2e6 ? 1e3 : 1e6;
    pc__text_add(&p->out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x, SCALE - 5, p->height - 6);
    if (x > WIDTH - 50)
        return;
    pc__text_add(&p->out, "<text class=\"soft\" x=\"%.1f\" y=\"%d\">%.4g%s</text>\n", x + 4, SCALE - 8, us / unit,
                 us <= 0      ? ""
                 : unit == 1  ? " us"
                 : unit > 1e3 ? " s"
                              : " ms");
}

static void scale(picture *p)
{
    double span = p->until - p->from, pixels = WIDTH - LEFT, step = pow(10, floor(log10(span / pixels * 80)));
    for (int i = 0; step / span * pixels < 80; i++)
        step *= i % 3 == 1 ? 2.5 : 2;
    for (int i = 0; i * step < span; i++)
        tick(p, i * step, step);
}

/* Where the rows go: those with something in view, a heading above each device's first. */
static void place(picture *p)
{
    int process = -1;
    p->height = SCALE;
    for (int r = 0; r < p->timeline->row_count; r++) {
        const pc__timeline_row *row = &p->timeline->rows[r];
        int lanes = 0;
        for (int i = row->first; i < row->first + row->count; i++)
            if (in_view(p, &p->timeline->events[i]))
                lanes = PC__MAX(lanes, lane_of(p, &p->timeline->events[i]) + 1);
        p->top[r] = -1;
        if (!lanes)
            continue;
        p->height += row->process != process ? HEAD : 0;
        process = row->process;
        p->top[r] = p->height;
        p->height += LANE + (lanes - 1) * DEEPER + GAP;
    }
    p->height += 6;
}

static void rows(picture *p)
{
    int process = -1;
    for (int r = 0; r < p->timeline->row_count; r++) {
        const pc__timeline_row *row = &p->timeline->rows[r];
        if (p->top[r] < 0)
            continue;
        if (row->process != process)
            words(&p->out, "device", 8, p->top[r] - 6, LEFT,
                  pc__timeline_text(p->timeline, p->timeline->processes[row->process].name));
        process = row->process;
        words(&p->out, "soft", 16, p->top[r] + 13, LEFT - 20, pc__timeline_text(p->timeline, row->name));
        bars(p, row);
    }
    for (int i = 0; i < p->timeline->arrow_count; i++)
        arrow(p, &p->timeline->events[p->timeline->arrows[i].from], &p->timeline->events[p->timeline->arrows[i].to]);
    for (int i = 0; i < p->timeline->mark_count; i++)
        mark(p, &p->timeline->marks[i]);
    p->out.failed |= p->labels.failed;
    if (p->labels.length)
        pc__text_append(&p->out, p->labels.data, p->labels.length);
}

static void draw(picture *p)
{
    pc__text_add(&p->out,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "role=\"img\">\n<style>\n"
                 ".paper{fill:#fff;stroke:#dfe3dc}.grid{stroke:#e9ece6}.range{fill:#dfe3dc}.wait{fill:#d9574d}"
                 ".load{fill:#d99a2b}\n.arrow{fill:none;stroke:#c24d0c}.head{fill:#c24d0c}\n"
                 "text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;pointer-events:none}"
                 ".ink,.device{fill:#1a201c}.device{font-weight:600}.soft{fill:#5d675f}.on{fill:#151a17}\n"
                 "@media (prefers-color-scheme:dark){.paper{fill:#181c19;stroke:#2c332e}.grid{stroke:#252b27}"
                 ".range{fill:#3a443c}.wait{fill:#e5695f}.load{fill:#d6a03f}.op{filter:brightness(.84)}\n"
                 ".arrow{stroke:#ff9352}.head{fill:#ff9352}.ink,.device{fill:#e6eae6}.soft{fill:#9ba69e}"
                 ".on{fill:#0c0f0d}}\n</style>\n",
                 WIDTH, p->height, WIDTH, p->height);
    pc__text_add(&p->out,
                 "<rect class=\"paper\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#fff\"/>\n",
                 WIDTH - 1, p->height - 1);
    scale(p);
    rows(p);
    pc__text_add(&p->out, "</svg>\n");
}

/* The first event of that name that begins after `after`. */
static const pc__timeline_event *named_after(const pc_timeline *t, const char *name, size_t length, double after)
{
    const pc__timeline_event *first = NULL;
    for (int i = 0; i < t->event_count; i++) {
        const char *own = pc__timeline_text(t, t->events[i].name);
        if (!strncmp(own, name, length) && !own[length] && t->events[i].start > after &&
            (!first || t->events[i].start < first->start))
            first = &t->events[i];
    }
    return first;
}

/* "epoch", or "epoch#2" for the second one. */
static const pc__timeline_event *event_named(const pc_timeline *t, const char *name)
{
    const pc__timeline_event *event = named_after(t, name, strlen(name), -INFINITY);
    const char *hash = strrchr(name, '#');
    double after = -INFINITY;
    for (long n = event || !hash ? 0 : strtol(hash + 1, NULL, 10); n > 0; n--) {
        event = named_after(t, name, (size_t)(hash - name), after);
        if (!event)
            break;
        after = event->start;
    }
    return event;
}

static pc_status frame(picture *p, const char *range)
{
    const pc__timeline_event *event = range ? event_named(p->timeline, range) : NULL;
    if (range && !event)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has no range or op named \"%.200s\"",
                        pc__timeline_text(p->timeline, p->timeline->file), range);
    p->outer = event ? event->row : -1;
    p->skip = event ? event->depth + 1 : 0;
    p->from = event ? event->start : 0;
    p->until = p->from + fmax(event ? event->duration : p->timeline->wall, 1e-3);
    return PC_OK;
}

pc_status pc_timeline_picture(const pc_timeline *timeline, const char *path, const char *range)
{
    PC__NEED(timeline);
    PC__NEED(path);
    picture p = {.timeline = timeline};
    PC__TRY(frame(&p, range));
    p.top = pc__alloc((size_t)PC__MAX(timeline->row_count, 1) * sizeof *p.top);
    if (!p.top)
        return PC_ERR_MEMORY;
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    place(&p);
    draw(&p);
    pc__plain_numbers_end(plain);
    pc_status status = p.out.failed ? PC_ERR_MEMORY : pc__file_write(path, p.out.data, p.out.length);
    pc__text_free(&p.out);
    pc__text_free(&p.labels);
    pc__free(p.top);
    return status;
}
