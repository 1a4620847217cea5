/* mandelbrot.h: what the files of paracord mandelbrot share. */
#ifndef CLI_MANDELBROT_H
#define CLI_MANDELBROT_H

#include <paracord/ops.h>

#include "picture.h"
#include "program.h"

typedef struct cli_fractal_settings {
    const char *device, *out, *palette;
    double x[2], y[2], centre[2], zoom;
    int width, height, iterations, frames;
    bool json, pinned, view, smooth;
} cli_fractal_settings;

typedef struct cli_fractal {
    cli_program p;
    pc_mandelbrot_options spec;
    int width, height;
    pc_tensor *host, *counts; /* counts are on the device */
    int rows_checked;
    int64_t wrong; /* points that are not the plain loop's */
} cli_fractal;

/* Queue the counting (a cli_body). */
bool cli_mandelbrot_count(void *context);

/* Let the region be the one around --centre that is `zoom` times narrower than 3. */
void cli_mandelbrot_zoom(cli_fractal *m, const cli_fractal_settings *s, double zoom);

/* mandelbrot_picture.c: colour what m->spec says, write it (path may be NULL), show it where that was asked for. False:
 * told. */
bool cli_mandelbrot_picture(cli_fractal *m, const cli_fractal_settings *s, const char *path);

/* All pictures of a zoom; the exit status. */
int cli_mandelbrot_frames(cli_fractal *m, const cli_fractal_settings *s);

#endif
