/* bench_plot.h: a picture as lines, dots and words, before it is an SVG or a PNG. Pixels, from the top left. */
#ifndef CLI_BENCH_PLOT_H
#define CLI_BENCH_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum bench_ink {
    INK_PAPER,
    INK_FRAME,
    INK_GRID,
    INK_LEAD, /* from a dot to its words */
    INK_SOFT, /* words that step back */
    INK_TEXT,
    INK_MEMORY,
    INK_F64, /* and the other types, in the order of BENCH_F64 ... */
    INK_F32,
    INK_TF32,
    INK_F16,
    INK_BF16,
    INKS
} bench_ink;

typedef struct bench_colour {
    const char *name;
    uint32_t light, dark; /* 0xrrggbb */
} bench_colour;

extern const bench_colour bench_colours[INKS];

typedef struct bench_line {
    double x0, y0, x1, y1, width;
    bench_ink ink;
    bool dotted;
} bench_line;

typedef struct bench_dot {
    double x, y, radius; /* with a rim of paper around it */
    bench_ink ink;
} bench_dot;

typedef enum bench_align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT } bench_align;

typedef struct bench_words {
    double x, y, size, tilt; /* the base line's beginning, middle or end; degrees up */
    bench_align align;
    bench_ink ink;
    bool bold;
    char text[128];
} bench_words;

enum { PLOT_LINES = 96, PLOT_DOTS = 32, PLOT_WORDS = 96 };

typedef struct bench_plot {
    int width, height;
    bench_line lines[PLOT_LINES];
    bench_dot dots[PLOT_DOTS];
    bench_words words[PLOT_WORDS];
    int line_count, dot_count, word_count;
} bench_plot;

/* As text, for light and dark; and as pixels, twice as many each way, for light. False: an error of the library, not
 * told; what went wrong with `out` its caller sees. */
bool bench_write_svg(const void *plot, FILE *out);
bool bench_write_png(const void *plot, FILE *out);

/* The strokes of a letter, as bench_letters.c explains them; its width in units without the gap behind it. */
const char *bench_letter(char letter, int *width);

#endif
