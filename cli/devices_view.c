/* devices_view.c: the page of the live view: a block for each device with its history, or a line where that is all that
 * fits. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "devices_watch.h"
#include "screen.h"
#include "text.h"

enum { SHOWN = 5, TALLEST = 8, WIDE = 100, VALUES = 30, NARROW_VALUES = 22, TALLEST_LINE = 3 };

static const char *const labels[WATCH_ROWS] = {"Load", "Memory", "Power", "Heat"};

/* How the page is cut up. */
typedef struct plan {
    int lines, columns;
    int beside;    /* histories beside one another */
    int tall;      /* lines of each */
    int processes; /* of each device, at most */
    int gap;       /* lines between blocks */
    bool table;    /* a line for each device instead, or a few where there is room */
} plan;

static const char *name_of(const pc_probe_device *d)
{
    return d->model.known ? d->model.text : d->vendor.known ? d->vendor.text : "unknown device";
}

static float clamped(float share)
{
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static cli_ink ink_of(int row, float share)
{
    if (row == WATCH_HEAT || row == WATCH_MEMORY)
        return share >= 0.95F ? CLI_INK_RED : share >= 0.85F ? CLI_INK_YELLOW : row ? CLI_INK_CYAN : CLI_INK_GREEN;
    return row == WATCH_POWER ? CLI_INK_YELLOW : CLI_INK_GREEN;
}

/* One bar of a history, in eighths of a line from its foot up. */
static void draw_bar(int line, int column, int tall, float share, cli_ink ink)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};
    int eighths = (int)lroundf(clamped(share) * 8 * (float)tall);
    eighths = eighths ? eighths : 1; /* known to be nothing is not unknown */
    for (int y = 0; y < tall && eighths > 0; y++, eighths -= 8) {
        int filled = eighths > 8 ? 8 : eighths;
        cli_screen_put(line + tall - 1 - y, column, 0, ink, cli_utf8() ? blocks[filled] : plain[filled]);
    }
}

/* The last samples between two columns, the newest at the right; dots where nothing is known. */
static void draw_history(const watch *w, int device, int row, int line, int from, int end, int tall)
{
    const watch_history *h = &w->histories[device];
    int known = h->count < WATCH_KEPT ? h->count : WATCH_KEPT;
    for (int column = end - 1, back = 1; column >= from; column--, back++) {
        float share = back <= known ? h->share[row][(h->count - back) % WATCH_KEPT] : NAN;
        if (isnan(share))
            cli_screen_put(line + tall - 1, column, 0, CLI_INK_FAINT, cli_utf8() ? "·" : ".");
        else
            draw_bar(line, column, tall, share, ink_of(row, share));
    }
}

/* The newest sample as a share of a line. */
static void draw_gauge(const watch *w, int device, int row, int line, int from, int end)
{
    const watch_history *h = &w->histories[device];
    float share = h->share[row][(h->count - 1) % WATCH_KEPT];
    int filled = isnan(share) ? 0 : (int)lroundf(clamped(share) * (float)(end - from));
    for (int i = 0; i < end - from; i++)
        cli_screen_put(line, from + i, 0, i < filled ? ink_of(row, share) : CLI_INK_FAINT,
                       i < filled ? (cli_utf8() ? "━" : "=") : (cli_utf8() ? "─" : "-"));
}

static void draw_row(const watch *w, int i, int row, int line, int from, int end, const plan *p)
{
    char value[64];
    bool narrow = end - from < 60;
    int values = from + (narrow ? NARROW_VALUES : VALUES);
    cli_screen_put(line, from, 0, CLI_INK_FAINT, labels[row]);
    cli_watch_value(&w->machine->devices[i], row, narrow, value);
    cli_screen_put(line, values - 1 - cli_columns(value), end, CLI_INK_PLAIN, value);
    if (p->tall > 1)
        draw_gauge(w, i, row, line + 1, from, values - 1);
    draw_history(w, i, row, line, values + 1, end, p->tall);
}

static void draw_heading(const watch *w, int i, int line)
{
    char text[64];
    const pc_probe_device *d = &w->machine->devices[i];
    snprintf(text, sizeof text, "%-3d", i);
    int at = cli_screen_put(line, 0, 0, CLI_INK_HEADING, text);
    at = cli_screen_put(line, at, 0, CLI_INK_HEADING, name_of(d));
    at = cli_screen_put(line, at + 2, 0, CLI_INK_FAINT, d->address.text);
    snprintf(text, sizeof text, "cuda:%.0f", d->index_cuda.number);
    if (d->index_cuda.known)
        cli_screen_put(line, at + 2, 0, CLI_INK_FAINT, text);
}

static void draw_clocks(const pc_probe_device *d, int line)
{
    char text[320] = "unknown";
    if (d->clock_sm.known)
        snprintf(text, sizeof text, "%.0f MHz", d->clock_sm.number);
    if (d->clock_sm.known && d->clock_memory.known)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", memory %.0f MHz", d->clock_memory.number);
    cli_screen_put(line, 3, 0, CLI_INK_FAINT, "Clocks");
    int at = cli_screen_put(line, 11, 0, CLI_INK_PLAIN, text);
    if (!d->clock_reasons.known || !strcmp(d->clock_reasons.text, "nothing"))
        return;
    snprintf(text, sizeof text, ", held down by: %s", d->clock_reasons.text);
    bool worse = strstr(text, "thermal") || strstr(text, "hardware");
    cli_screen_put(line, at, 0, worse ? CLI_INK_RED : CLI_INK_PLAIN, text);
}

static void draw_process(const pc_probe_process *p, int line, bool first)
{
    char text[96];
    snprintf(text, sizeof text, p->memory.known ? "%8.0f MiB" : "memory unknown", p->memory.number / (1 << 20));
    cli_screen_put(line, 3, 0, CLI_INK_FAINT, first ? "Used by" : "");
    cli_screen_put(line, 11, 0, CLI_INK_PLAIN, text);
    snprintf(text, sizeof text, "%lld ", (long long)p->pid);
    int at = cli_screen_put(line, 26, 0, CLI_INK_PLAIN, text);
    cli_screen_put(line, at, 0, CLI_INK_PLAIN, p->name ? p->name : "(not visible from here)");
}

static int lines_of(const pc_probe_device *d, const plan *p)
{
    int processes = d->process_count < p->processes ? d->process_count : p->processes;
    return cli_watch_tells(d) ? 2 + WATCH_ROWS / p->beside * p->tall + processes : 2;
}

/* A block; the line behind it. */
static int draw_block(const watch *w, int i, int line, const plan *p)
{
    const pc_probe_device *d = &w->machine->devices[i];
    int bottom = line + lines_of(d, p);
    draw_heading(w, i, line++);
    if (!cli_watch_tells(d)) {
        cli_screen_put(line, 3, 0, CLI_INK_FAINT, "nothing to watch: no driver that tells");
        return bottom;
    }
    for (int row = 0; row < WATCH_ROWS; row++) {
        int half = p->columns / p->beside, from = row % p->beside * half;
        draw_row(w, i, row, line + row / p->beside * p->tall, from + 3, from + half - (p->beside > 1), p);
    }
    line += WATCH_ROWS / p->beside * p->tall;
    draw_clocks(d, line++);
    for (int n = 0; line < bottom; n++, line++)
        draw_process(&d->processes[n], line, n == 0);
    return bottom;
}

/* A line: columns from the left as long as there is room; its history may be taller. */
static void draw_line(const watch *w, int i, int line, const plan *p)
{
    static const int widths[WATCH_ROWS] = {7, 14, 12, 6};
    char text[64];
    const pc_probe_device *d = &w->machine->devices[i];
    const char *whose = name_of(d);
    int columns = p->columns, name = columns < 50 ? 12 : columns < 90 ? 20 : 30;
    whose += strncmp(whose, "NVIDIA ", 7) ? 0 : 7;
    snprintf(text, sizeof text, "%-3d", i);
    cli_screen_put(line, 0, 0, CLI_INK_HEADING, text);
    cli_screen_put(line, 3, 3 + name, CLI_INK_HEADING, whose);
    int at = 4 + name;
    if (!cli_watch_tells(d)) {
        cli_screen_put(line, at, 0, CLI_INK_FAINT, "no driver that tells");
        return;
    }
    for (int row = 0; row < WATCH_ROWS && at + widths[row] <= columns; row++) {
        cli_watch_value(d, row, true, text);
        at += widths[row];
        cli_screen_put(line, at - cli_columns(text), 0, CLI_INK_PLAIN, text);
    }
    draw_history(w, i, WATCH_LOAD, line, at + 2, columns, p->tall);
}

static bool fits(const watch *w, const plan *p, int room)
{
    int lines = -p->gap;
    for (int i = 0; i < w->machine->device_count; i++)
        lines += lines_of(&w->machine->devices[i], p) + p->gap;
    return lines <= room;
}

/* The tallest histories that fit; else fewer processes; else no lines between; else a table. */
static plan make_plan(const watch *w, int lines, int columns, int room)
{
    int count = w->machine->device_count;
    plan p = {
        .lines = lines, .columns = columns, .beside = columns >= WIDE ? 2 : 1, .tall = 1, .processes = SHOWN, .gap = 1};
    while (p.processes > 0 && !fits(w, &p, room))
        p.processes--;
    if (!fits(w, &p, room))
        p.gap = 0;
    p.table = !fits(w, &p, room);
    while (!p.table && p.tall < TALLEST && fits(w, &p, room))
        p.tall++;
    while (p.tall > 1 && !p.table && !fits(w, &p, room))
        p.tall--;
    if (p.table && count < room)
        p.tall = room / count < TALLEST_LINE ? room / count : TALLEST_LINE;
    return p;
}

/* Returns the first line behind the head. */
static int draw_head(const watch *w, int columns)
{
    const pc_machine *m = w->machine;
    char now[32], text[256];
    cli_devices_time(now);
    now[19] = 0;
    now[10] = ' ';
    const char *clock = columns < 60 ? now + 11 : now;
    bool cuda = m->cuda_driver.known && columns >= 60;
    snprintf(text, sizeof text, "%s%s%s%s", m->driver.known ? "NVIDIA driver " : "paracord devices",
             m->driver.known ? m->driver.text : "", cuda ? ", CUDA " : "", cuda ? m->cuda_driver.text : "");
    int end = columns - (int)strlen(clock) - 4;
    cli_screen_put(0, 0, end - 1, CLI_INK_FAINT, text);
    int at = cli_screen_put(0, end, 0, CLI_INK_FAINT, clock);
    cli_screen_put(0, at, 0, CLI_INK_FAINT, " UTC");
    if (!m->hung)
        return 1;
    snprintf(text, sizeof text, "The driver did not answer %s in time", m->hung);
    cli_screen_put(1, 0, 0, CLI_INK_RED, text);
    return 2;
}

static void draw_foot(const watch *w, const plan *p, int below)
{
    char text[128];
    int samples = w->machine->device_count ? w->histories[0].count : 0;
    if (p->table && below > 0)
        snprintf(text, sizeof text, "q ends, down shows %d more", below);
    else
        snprintf(text, sizeof text, "q ends, every %g s, %d sample%s", w->interval, samples, samples == 1 ? "" : "s");
    cli_screen_put(p->lines - 1, 0, 0, CLI_INK_FAINT, text);
}

void cli_watch_draw(watch *w)
{
    int lines, columns, count = w->machine->device_count;
    cli_screen_clear(&lines, &columns);
    int line = draw_head(w, columns), room = lines - line - 1;
    plan p = make_plan(w, lines, columns, room - (room > 8)); /* where there is room, a line between head and blocks */
    int most = p.table && count > room ? count - room : 0;
    w->first = w->first < 0 ? 0 : w->first > most ? most : w->first;
    line += room > 8;
    if (!count)
        cli_screen_put(line, 0, 0, CLI_INK_PLAIN, "No graphics or accelerator device is visible");
    for (int i = w->first; i < count && line < lines - 1; i++) {
        if (p.table)
            draw_line(w, i, line, &p);
        line = p.table ? line + p.tall : draw_block(w, i, line, &p) + p.gap;
    }
    draw_foot(w, &p, most - w->first);
    cli_screen_show();
}
