/* bench_roofline.c: what a machine can do at most, over operations for each byte of memory, and where results lie, as
 * an SVG: logarithmic on both sides, for light and dark. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The memory's slope up to the highest roof, and a roof for each type. */
static void roofs(plot *p)
{
    const bench_limits *l = &p->b->limits;
    const double memory = l->memory.rate;
    char text[32];
    double highest = 0;
    for (int i = 0; i < BENCH_TYPES; i++) {
        const double rate = l->math[i].rate;
        const bool same = i > 0 && (rate == l->math[i - 1].rate || (i == BENCH_F16 && rate == l->math[BENCH_F32].rate));
        highest = rate > 0 ? fmax(highest, rate) : highest;
        if (!(rate > 0) || same)
            continue;
        const double from = memory > 0 ? fmax(x_of(p, rate / memory), LEFT) : LEFT, y = y_of(p, rate), at = place(p, y);
        const bool shared = i < BENCH_TYPES - 1 && rate == l->math[BENCH_BF16].rate;
        fprintf(p->out,
                "<path class=\"roof %s\" d=\"M%.1f %.1fH%d\"/><text class=\"ink\" x=\"%d\" y=\"%.1f\">%s%s: "
                "%s</text>\n",
                colours[i], from, y, RIGHT, RIGHT + 10, at + 4, colours[i],
                !shared          ? ""
                : i == BENCH_F16 ? ", bf16"
                                 : ", f16, bf16",
                cli_rate(rate, 1, "FLOP", text));
    }
    if (!(memory > 0))
        return;
    const double top = highest > 0 ? highest : pow(10, p->y1), bottom = fmax(pow(10, p->x0) * memory, pow(10, p->y0));
    const double x = x_of(p, bottom / memory), y = y_of(p, bottom),
                 tilt = atan2(y - y_of(p, top), x_of(p, top / memory) - x);
    fprintf(p->out,
            "<path class=\"roof memory\" d=\"M%.1f %.1fL%.1f %.1f\"/><text class=\"ink\" transform=\"translate("
            "%.1f %.1f) rotate(%.2f)\">memory: %s</text>\n",
            x, y, x_of(p, top / memory), y_of(p, top), x + 16, y - 16 * tan(tilt) - 8, -tilt * 180 / M_PI,
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

static void draw(plot *p)
{
    char name[PC_DEVICE_NAME_MAX];
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
            "<style>\n.paper{fill:#fff;stroke:#dfe3dc}.grid{stroke:#e9ece6}.roof{fill:none;stroke-width:2}"
            ".lead{stroke:#b9c0b8;stroke-dasharray:2 3}\n"
            "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.title{font-size:16px;font-weight:600}"
            ".ink,.title{fill:#1a201c}.soft{fill:#5d675f}\n"
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

/* A file beside the target, so that it can be put in its place as a whole. NULL: errno. */
static FILE *open_beside(const char *path, char *temporary, size_t n)
{
    struct stat there;
    if (!stat(path, &there) && !S_ISREG(there.st_mode)) {
        errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    if (snprintf(temporary, n, "%s.XXXXXX", path) >= (int)n) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return NULL;
    const mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(file, 0666 & ~mask);
    return fdopen(file, "w");
}

static bool failed(const cli_command *command, const char *path)
{
    cli_error(command, "cannot write %s: %s", path, errno == EINVAL ? "it is no ordinary file" : strerror(errno));
    return false;
}

bool bench_may_write(const cli_command *command, const char *path)
{
    char temporary[4096];
    FILE *file = open_beside(path, temporary, sizeof temporary);
    if (!file)
        return failed(command, path);
    fclose(file);
    remove(temporary);
    return true;
}

bool bench_roofline(const bench *b, const char *path)
{
    char temporary[4096];
    plot p = {.b = b, .out = open_beside(path, temporary, sizeof temporary)};
    if (!p.out)
        return failed(b->p.command, path);
    draw(&p);
    bool fine = !fflush(p.out) && !ferror(p.out) && !fsync(fileno(p.out));
    fine = !fclose(p.out) && fine && !rename(temporary, path);
    if (fine)
        return true;
    const int number = errno;
    remove(temporary);
    errno = number;
    return failed(b->p.command, path);
}
