/* bench_svg.c: a plot as an SVG, for light and dark. */
#include <string.h>

#include "bench_plot.h"

const bench_colour bench_colours[INKS] = {
    [INK_PAPER] = {"paper", 0xffffff, 0x181c19},   [INK_FRAME] = {"frame", 0xdfe3dc, 0x2c332e},
    [INK_GRID] = {"grid", 0xe9ece6, 0x262d28},     [INK_LEAD] = {"lead", 0xb4bcb3, 0x566059},
    [INK_SOFT] = {"soft", 0x5d675f, 0x9ba69e},     [INK_TEXT] = {"text", 0x1a201c, 0xe6eae6},
    [INK_MEMORY] = {"memory", 0x5d675f, 0xa7b1a9}, [INK_F64] = {"f64", 0x7a4fb5, 0xb394ea},
    [INK_F32] = {"f32", 0x2a6fb0, 0x6cabeb},       [INK_TF32] = {"tf32", 0x1d8f7a, 0x48c4ab},
    [INK_F16] = {"f16", 0xc24d0c, 0xf58f52},       [INK_BF16] = {"bf16", 0xa8336b, 0xec77ae},
};

/* Text from outside: names of devices. */
static void escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"", *text) || (unsigned char)*text < ' ' || (unsigned char)*text > '~')
            fprintf(out, "&#%d;", (unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '?' : *text);
        else
            fputc(*text, out);
}

/* Each ink as what lines (l-) and what areas and words (a-) take. */
static void inks(FILE *out, bool dark)
{
    for (int i = 0; i < INKS; i++) {
        const unsigned colour = dark ? bench_colours[i].dark : bench_colours[i].light;
        fprintf(out, ".l-%s{stroke:#%06x}.a-%s{fill:#%06x}", bench_colours[i].name, colour, bench_colours[i].name,
                colour);
    }
}

static void head(const bench_plot *p, FILE *out)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
            "<style>\ntext{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.bold{font-weight:600}\n",
            p->width, p->height, p->width, p->height);
    inks(out, false);
    fputs("\n@media (prefers-color-scheme:dark){", out);
    inks(out, true);
    fprintf(out,
            "}\n</style>\n<rect class=\"a-paper l-frame\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
            p->width - 1, p->height - 1);
}

static void words(const bench_words *w, FILE *out)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    fprintf(out, "<text class=\"a-%s%s\"", bench_colours[w->ink].name, w->bold ? " bold" : "");
    if (w->tilt != 0)
        fprintf(out, " transform=\"translate(%.1f %.1f) rotate(%.2f)\"", w->x, w->y, -w->tilt);
    else
        fprintf(out, " x=\"%.1f\" y=\"%.1f\"", w->x, w->y);
    if (w->size != 12)
        fprintf(out, " style=\"font-size:%gpx\"", w->size);
    fprintf(out, "%s>", anchors[w->align]);
    escaped(out, w->text);
    fputs("</text>\n", out);
}

bool bench_write_svg(const void *plot, FILE *out)
{
    const bench_plot *p = plot;
    head(p, out);
    for (int i = 0; i < p->line_count; i++) {
        const bench_line *l = &p->lines[i];
        fprintf(out,
                "<path class=\"l-%s\" d=\"M%.1f %.1fL%.1f %.1f\" stroke-width=\"%g\" stroke-linecap=\"round\"%s/>\n",
                bench_colours[l->ink].name, l->x0, l->y0, l->x1, l->y1, l->width,
                l->dotted ? " stroke-dasharray=\"1 4\"" : "");
    }
    for (int i = 0; i < p->dot_count; i++)
        fprintf(out, "<circle class=\"a-%s l-paper\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" stroke-width=\"1.5\"/>\n",
                bench_colours[p->dots[i].ink].name, p->dots[i].x, p->dots[i].y, p->dots[i].radius);
    for (int i = 0; i < p->word_count; i++)
        words(&p->words[i], out);
    fputs("</svg>\n", out);
    return true;
}
