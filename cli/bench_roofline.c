/* bench_roofline.c: what a machine can do at most, over operations for each byte of memory, and where results lie, as
 * an SVG: logarithmic on both sides, for light and dark. */
#include "bench.h"

#include <math.h>
#include <string.h>

#include "text.h"

enum { WIDTH = 860, HEIGHT = 520, LEFT = 92, RIGHT = 620, TOP = 56, BOTTOM = 452 };

static const char *const colours[] = {"f64", "f32", "tf32", "f16", "bf16"};

typedef struct plot {
    const bench *b;
    FILE *out;
    double x0, x1, y0, y1; /* logarithms to the base 10 */
    double labels[BENCH_ROWS_MAX];
    int label_count;
} plot;

static double x_of(const plot *p, double x)
{
    return LEFT + (log10(x) - p->x0) / (p->x1 - p->x0) * (RIGHT - LEFT);
}

static double y_of(const plot *p, double y)
{
    return BOTTOM - (log10(y) - p->y0) / (p->y1 - p->y0) * (BOTTOM - TOP);
}

/* Text from outside: names of devices. */
static void escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"", *text) || (unsigned char)*text < ' ' || (unsigned char)*text > '~')
            fprintf(out, "&#%d;", (unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '?' : *text);
        else
            fputc(*text, out);
}

/* The range of both axes: whole powers of ten around all results and roofs. */
static void fit(plot *p)
{
    const bench *b = p->b;
    double low = HUGE_VAL, high = 0, right = 100;
    for (int i = 0; i < bench_row_count; i++) {
        const bench_result *r = &b->results[i];
        if (!b->chosen[i] || *r->why || !(r->flops > 0))
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

static void grid(const plot *p)
{
    char text[32];
    for (double x = p->x0; x <= p->x1; x++) {
        const double at = x_of(p, pow(10, x));
        fprintf(p->out,
                "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text class=\"soft\" x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                at, TOP, BOTTOM, at, BOTTOM + 18, pow(10, x));
    }
    for (double y = p->y0; y <= p->y1; y++) {
        const double at = y_of(p, pow(10, y));
        fprintf(p->out,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"soft\" x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                LEFT, at, RIGHT, LEFT - 8, at + 4, cli_rate(pow(10, y), 1, "FLOP", text));
    }
    fprintf(p->out,
            "<text class=\"ink\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations for each byte of memory"
            "</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 42);
}

/* A label on the right, moved down where another one is. */
static double place(plot *p, double y)
{
    for (int i = 0; i < p->label_count; i++)
        if (fabs(p->labels[i] - y) < 14) {
            y = p->labels[i] + 14;
            i = -1;
        }
    if (p->label_count < BENCH_ROWS_MAX)
        p->labels[p->label_count++] = y;
    return y;
}

/* The roof of a type, and of those that have the same. */
static void roof(plot *p, int type)
{
    const bench_limit *math = p->b->limits.math;
    const double memory = p->b->limits.memory.rate, rate = math[type].rate;
    const double y = y_of(p, rate), from = memory > 0 ? fmax(x_of(p, rate / memory), LEFT) : LEFT, at = place(p, y);
    char text[32];
    fprintf(p->out, "<path class=\"roof %s\" d=\"M%.1f %.1fH%d\"/><text class=\"ink name\" x=\"%d\" y=\"%.1f\">%s",
            colours[type], from, y, RIGHT, RIGHT + 10, at + 4, colours[type]);
    for (int i = type + 1; i < BENCH_TYPES; i++)
        if (math[i].rate == rate)
            fprintf(p->out, ", %s", colours[i]);
    fprintf(p->out, ": %s</text>\n", cli_rate(rate, 1, "FLOP", text));
}

/* The memory's slope up to the highest roof, and the roofs. */
static void roofs(plot *p)
{
    const bench_limit *math = p->b->limits.math;
    const double memory = p->b->limits.memory.rate;
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
    if (!(memory > 0))
        return;
    const double top = highest > 0 ? highest : pow(10, p->y1), bottom = fmax(pow(10, p->x0) * memory, pow(10, p->y0));
    const double x = x_of(p, bottom / memory), y = y_of(p, bottom), x1 = x_of(p, top / memory), y1 = y_of(p, top);
    const double tilt = atan2(y - y1, x1 - x);
    char text[32];
    fprintf(p->out,
            "<path class=\"roof memory\" d=\"M%.1f %.1fL%.1f %.1f\"/><text class=\"ink name\" y=\"-8\" "
            "transform=\"translate("
            "%.1f %.1f) rotate(%.2f)\">memory: %s</text>\n",
            x, y, x1, y1, x + 20 * cos(tilt), y - 20 * sin(tilt), -tilt * 180 / acos(-1),
            cli_rate(memory, 1, "B", text));
}

static void point(plot *p, int i)
{
    const bench_row *row = &bench_rows[i];
    const bench_result *r = &p->b->results[i];
    const bool product = row->kind == BENCH_PRODUCT;
    const double x = x_of(p, r->flops / r->bytes), y = y_of(p, r->flops / r->median), at = product ? place(p, y) : y;
    char rate[32];
    if (product)
        fprintf(p->out, "<path class=\"lead\" d=\"M%.1f %.1fL%d %.1f\"/>", x + 6, y, RIGHT + 6, at);
    fprintf(p->out,
            "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/><text class=\"ink\" x=\"%.1f\" "
            "y=\"%.1f\">%s %s</text>\n",
            product ? colours[row->which] : "memory", x, y, product ? RIGHT + 10 : x + 10, product ? at + 4 : y + 13,
            row->name, cli_rate(r->flops, r->median, "FLOP", rate));
}

/* From the fastest down, so that no line to a label crosses another. */
static void points(plot *p)
{
    bool drawn[BENCH_ROWS_MAX] = {false};
    for (int next; next = -1, true; drawn[next] = true) {
        for (int i = 0; i < bench_row_count; i++) {
            const bench_result *r = &p->b->results[i];
            if (p->b->chosen[i] && !*r->why && r->flops > 0 && !drawn[i] &&
                (next < 0 || r->flops / r->median > p->b->results[next].flops / p->b->results[next].median))
                next = i;
        }
        if (next < 0)
            return;
        point(p, next);
    }
}

void bench_draw(const bench *b, FILE *out)
{
    plot plotted = {.b = b, .out = out}, *p = &plotted;
    char name[PC_DEVICE_NAME_MAX];
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
            "<style>\n.paper{fill:#fff;stroke:#dfe3dc}.grid{stroke:#e9ece6}.roof{fill:none;stroke-width:2}"
            ".lead{stroke:#b9c0b8;stroke-dasharray:2 3}\n"
            "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.title{font-size:16px;font-weight:600}"
            ".name{font-weight:600}.ink,.title{fill:#1a201c}.soft{fill:#5d675f}\n"
            ".memory{stroke:#5d675f}.f64{stroke:#7a4fb5}.f32{stroke:#2a6fb0}.tf32{stroke:#1d8f7a}.f16{stroke:#c24d0c}"
            ".bf16{stroke:#a8336b}\n.dot{stroke:#fff;stroke-width:1.5}.dot.memory{fill:#5d675f}.dot.f64{fill:#7a4fb5}"
            ".dot.f32{fill:#2a6fb0}.dot.tf32{fill:#1d8f7a}.dot.f16{fill:#c24d0c}.dot.bf16{fill:#a8336b}\n"
            "@media (prefers-color-scheme:dark){.paper{fill:#181c19;stroke:#2c332e}.grid{stroke:#252b27}"
            ".lead{stroke:#4a534c}.ink,.title{fill:#e6eae6}.soft{fill:#9ba69e}.dot{stroke:#181c19}}\n</style>\n"
            "<rect class=\"paper\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"24\" y=\"32\">Roofline of %s",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH - 1, HEIGHT - 1, pc_device_name(p->b->p.device, name));
    fputs(*p->b->limits.model ? ", " : "", p->out);
    escaped(p->out, p->b->limits.model);
    fputs("</text>\n", p->out);
    fit(p);
    grid(p);
    roofs(p);
    points(p);
    fputs("</svg>\n", p->out);
}
