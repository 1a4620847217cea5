/* bench_roofline.c: what a machine can do at most, over operations for each byte of memory, and where results lie:
 * logarithmic on both sides. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench_plot.h"
#include "text.h"

enum { WIDTH = 900, HEIGHT = 540, LEFT = 104, RIGHT = 640, TOP = 72, BOTTOM = 468, LABELS = 28, APART = 16 };

typedef struct label {
    double wanted, y, dot_x, dot_y; /* dot_x NaN: a roof's, which needs no line to it */
    bench_ink ink;
    char text[96];
} label;

typedef struct roofline {
    const bench *b;
    bench_plot *plot;
    double x0, x1, y0, y1; /* logarithms to the base 10 */
    label labels[LABELS];  /* on the right */
    int label_count;
} roofline;

static double x_of(const roofline *p, double x)
{
    return LEFT + (log10(x) - p->x0) / (p->x1 - p->x0) * (RIGHT - LEFT);
}

static double y_of(const roofline *p, double y)
{
    return BOTTOM - (log10(y) - p->y0) / (p->y1 - p->y0) * (BOTTOM - TOP);
}

static void line(const roofline *p, bench_line l)
{
    if (p->plot->line_count < PLOT_LINES)
        p->plot->lines[p->plot->line_count++] = l;
}

/* A dot on one that is there is smaller, so that both are seen. */
static void dot(const roofline *p, double x, double y, bench_ink ink)
{
    bench_dot d = {x, y, 5, ink};
    for (int i = 0; i < p->plot->dot_count; i++)
        if (hypot(p->plot->dots[i].x - x, p->plot->dots[i].y - y) < 5)
            d.radius = fmin(d.radius, p->plot->dots[i].radius - 1.5);
    d.radius = fmax(d.radius, 1.5);
    if (p->plot->dot_count < PLOT_DOTS)
        p->plot->dots[p->plot->dot_count++] = d;
}

static void __attribute__((format(printf, 3, 4))) say(const roofline *p, bench_words w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(w.text, sizeof w.text, format, list);
    va_end(list);
    w.size = w.size > 0 ? w.size : 12;
    if (p->plot->word_count < PLOT_WORDS)
        p->plot->words[p->plot->word_count++] = w;
}

static bool has_place(const bench *b, int i)
{
    return b->chosen[i] && !*b->results[i].why && b->results[i].flops > 0 && b->results[i].median > 0;
}

/* The range of both axes: whole powers of ten around all results and roofs. */
static void fit(roofline *p)
{
    const bench *b = p->b;
    double low = HUGE_VAL, high = 0, right = 100;
    for (int i = 0; i < bench_row_count; i++) {
        const bench_result *r = &b->results[i];
        if (!has_place(b, i))
            continue;
        low = fmin(low, r->flops / r->median);
        high = fmax(high, r->flops / r->median);
        right = fmax(right, r->flops / r->bytes);
    }
    for (int i = 0; i < BENCH_TYPES; i++)
        if (b->limits.math[i].rate > 0)
            high = fmax(high, b->limits.math[i].rate);
    if (b->limits.memory.rate > 0) {
        high = fmax(high, b->limits.memory.rate);
        low = fmin(low, b->limits.memory.rate * 0.05);
    }
    low = isinf(low) ? 1e9 : low;
    p->x0 = -2;
    p->x1 = ceil(log10(right) + 0.15);
    p->y0 = floor(log10(low) - 0.1);
    p->y1 = ceil(log10(fmax(high, 10 * low)) + 0.1);
}

static void grid(const roofline *p)
{
    char text[32];
    for (double x = p->x0; x <= p->x1; x++) {
        const double at = x_of(p, pow(10, x));
        line(p, (bench_line){at, TOP, at, BOTTOM, 1, INK_GRID, false});
        say(p, (bench_words){at, BOTTOM + 20, .align = ALIGN_MIDDLE, .ink = INK_SOFT}, "%g", pow(10, x));
    }
    for (double y = p->y0; y <= p->y1; y++) {
        const double at = y_of(p, pow(10, y));
        line(p, (bench_line){LEFT, at, RIGHT, at, 1, INK_GRID, false});
        say(p, (bench_words){LEFT - 10, at + 4, .align = ALIGN_RIGHT, .ink = INK_SOFT}, "%s",
            cli_rate(pow(10, y), 1, "FLOP", text));
    }
    say(p, (bench_words){(LEFT + RIGHT) / 2.0, BOTTOM + 46, .align = ALIGN_MIDDLE, .ink = INK_TEXT},
        "operations for each byte of memory");
}

static label *add_label(roofline *p, double y, bench_ink ink)
{
    static label spare;
    label *l = p->label_count < LABELS ? &p->labels[p->label_count++] : &spare;
    *l = (label){.wanted = y, .dot_x = NAN, .ink = ink};
    return l;
}

/* The roof of a type, and of those that have the same. */
static void roof(roofline *p, int type)
{
    const bench_limit *math = p->b->limits.math;
    const double memory = p->b->limits.memory.rate, rate = math[type].rate, y = y_of(p, rate);
    const double from = memory > 0 ? fmax(x_of(p, rate / memory), LEFT) : LEFT;
    char names[32], text[32];
    int n = snprintf(names, sizeof names, "%s", bench_colours[INK_F64 + type].name);
    for (int i = type + 1; i < BENCH_TYPES; i++)
        if (math[i].rate == rate)
            n += snprintf(names + n, sizeof names - (size_t)n, ", %s", bench_colours[INK_F64 + i].name);
    line(p, (bench_line){from, y, RIGHT, y, 2, INK_F64 + type, false});
    label *l = add_label(p, y, INK_F64 + type);
    snprintf(l->text, sizeof l->text, "%s: %s", names, cli_rate(rate, 1, "FLOP", text));
}

/* The memory's slope up to the highest roof. */
static void slope(const roofline *p, double memory, double highest)
{
    const double top = highest > 0 ? highest : pow(10, p->y1), bottom = fmax(pow(10, p->x0) * memory, pow(10, p->y0));
    const double x = x_of(p, bottom / memory), y = y_of(p, bottom), x1 = x_of(p, top / memory), y1 = y_of(p, top);
    const double tilt = atan2(y - y1, x1 - x);
    char text[32];
    line(p, (bench_line){x, y, x1, y1, 2, INK_MEMORY, false});
    say(p,
        (bench_words){(x + x1) / 2 - 8 * sin(tilt), (y + y1) / 2 - 8 * cos(tilt), .tilt = tilt * 180 / acos(-1),
                      .align = ALIGN_MIDDLE, .ink = INK_TEXT, .bold = true},
        "memory: %s", cli_rate(memory, 1, "B", text));
}

static void roofs(roofline *p)
{
    const bench_limit *math = p->b->limits.math;
    double highest = 0;
    for (int i = 0; i < BENCH_TYPES; i++) {
        bool drawn = false;
        for (int k = 0; k < i; k++)
            drawn = drawn || math[k].rate == math[i].rate;
        if (math[i].rate > 0 && !drawn)
            roof(p, i);
        if (math[i].rate > highest)
            highest = math[i].rate;
    }
    if (p->b->limits.memory.rate > 0)
        slope(p, p->b->limits.memory.rate, highest);
}

static void point(roofline *p, int i)
{
    const bench_row *row = &bench_rows[i];
    const bench_result *r = &p->b->results[i];
    const bool product = row->kind == BENCH_PRODUCT;
    const bench_ink ink = product ? (bench_ink)(INK_F64 + row->which) : INK_MEMORY;
    const double x = x_of(p, r->flops / r->bytes), y = y_of(p, r->flops / r->median);
    char rate[32], share[16] = "";
    cli_rate(r->flops, r->median, "FLOP", rate);
    if (bench_share(r) > 0)
        snprintf(share, sizeof share, ", %.0f%%", 100 * bench_share(r));
    dot(p, x, y, ink);
    if (product) {
        label *l = add_label(p, y, ink);
        l->dot_x = x;
        l->dot_y = y;
        snprintf(l->text, sizeof l->text, "%s %s%s", row->name, rate, share);
    } else
        say(p, (bench_words){x + 11, y + 13, .ink = INK_TEXT}, "%s %s%s", row->name, rate, share);
}

static int by_place(const void *a, const void *b)
{
    const label *x = a, *y = b;
    return (x->wanted > y->wanted) - (x->wanted < y->wanted);
}

/* Labels from the top down, each where it belongs or below the one before; up again where the last would be too low. */
static void place_labels(roofline *p)
{
    qsort(p->labels, (size_t)p->label_count, sizeof *p->labels, by_place);
    for (int i = 0; i < p->label_count; i++) {
        label *l = &p->labels[i];
        l->y = i ? fmax(l->wanted, l[-1].y + APART) : l->wanted;
    }
    for (int i = p->label_count - 1; i >= 0; i--) {
        label *l = &p->labels[i];
        l->y = fmin(l->y, i == p->label_count - 1 ? BOTTOM : l[1].y - APART);
    }
}

static void draw_labels(roofline *p)
{
    place_labels(p);
    for (int i = 0; i < p->label_count; i++) {
        const label *l = &p->labels[i];
        const bool is_roof = isnan(l->dot_x);
        if (is_roof)
            line(p, (bench_line){RIGHT, l->wanted, RIGHT + 12, l->y, 2, l->ink, false});
        else
            line(p, (bench_line){l->dot_x + 8, l->dot_y, RIGHT + 12, l->y, 1, INK_LEAD, true});
        say(p, (bench_words){RIGHT + 20, l->y + 4, .ink = l->ink, .bold = is_roof}, "%s", l->text);
    }
}

void bench_draw(const bench *b, bench_plot *plot)
{
    roofline drawn = {.b = b, .plot = plot}, *p = &drawn;
    char name[PC_DEVICE_NAME_MAX];
    const char *model = b->limits.model;
    *plot = (bench_plot){.width = WIDTH, .height = HEIGHT};
    say(p, (bench_words){28, 34, 17, .ink = INK_TEXT, .bold = true}, "Roofline of %s%s%s",
        pc_device_name(b->p.device, name), *model ? ", " : "", model);
    if (b->limits.memory.rate > 0)
        say(p, (bench_words){28, 53, .ink = INK_SOFT}, "memory: %s; percentages are of the limit above a dot",
            b->limits.memory.origin);
    fit(p);
    grid(p);
    roofs(p);
    for (int i = 0; i < bench_row_count; i++)
        if (has_place(b, i))
            point(p, i);
    draw_labels(p);
    if (!plot->dot_count)
        say(p, (bench_words){(LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0, .align = ALIGN_MIDDLE, .ink = INK_SOFT},
            "nothing that was measured has a place here; add, saxpy and product have");
}
