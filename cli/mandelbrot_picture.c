/* mandelbrot_picture.c: pictures of the set: one, or a zoom as numbered files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mandelbrot.h"
#include "signals.h"
#include "text.h"

/* The counts as floats on the host; for smooth colours they are counted again, in fractions. */
static float *read_counts(cli_fractal *m, bool smooth)
{
    const size_t n = (size_t)m->width * (size_t)m->height;
    float *values = malloc(n * sizeof *values);
    pc_tensor *counts =
        smooth ? pc_empty(PC_SHAPE(m->height, m->width), PC_F32, m->p.device) : pc_cast(m->counts, PC_F32);
    const bool fine = values && counts && (!smooth || pc_mandelbrot(counts, m->spec) == PC_OK) &&
                      pc_read(counts, values, n * sizeof *values) == PC_OK;
    pc_tensor_free(counts);
    if (fine)
        return values;
    if (!values)
        cli_error(m->p.command, "out of memory");
    else
        cli_failed(m->p.command);
    free(values);
    return NULL;
}

bool cli_mandelbrot_picture(cli_fractal *m, const cli_fractal_settings *s, const char *path)
{
    pc_image picture;
    float *counts = read_counts(m, s->smooth);
    if (!counts)
        return false;
    bool fine = cli_picture_make(counts, m->height, m->width, m->spec.iterations, s->palette, &picture);
    free(counts);
    if (fine && path)
        fine = pc_image_write(&picture, path) == PC_OK;
    if (fine && s->view && !s->json)
        fine = cli_picture_show(stdout, &picture, cli_width(stdout));
    if (!fine)
        cli_failed(m->p.command);
    pc_image_free(&picture);
    return fine;
}

/* "zoom.png" and 7: "zoom-0007.png" */
static char *numbered(const char *path, int number, char *text, size_t n)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    snprintf(text, n, "%.*s-%04d%s", (int)stem, path, number, path + stem);
    return text;
}

int cli_mandelbrot_frames(cli_fractal *m, const cli_fractal_settings *s)
{
    char path[4096];
    cli_fractal_settings frame = *s;
    frame.view = false;
    m->counts = cli_program_room(&m->p, m->host);
    if (!m->counts)
        return cli_failed(m->p.command);
    if (!cli_picture_may_write(m->p.command, numbered(s->out, 1, path, sizeof path)))
        return CLI_FAILED;
    cli_signals_catch();
    const double start = cli_now();
    for (int i = 0; i < s->frames && !cli_signal(); i++) {
        cli_mandelbrot_zoom(m, s, pow(s->zoom, s->frames > 1 ? (double)i / (s->frames - 1) : 1));
        if (!s->smooth && !cli_mandelbrot_count(m))
            return cli_failed(m->p.command);
        if (!cli_mandelbrot_picture(m, &frame, numbered(s->out, i + 1, path, sizeof path)))
            return CLI_FAILED;
    }
    if (cli_signal())
        return cli_stopped_status();
    const double took = cli_now() - start;
    if (s->json) {
        printf("{\"program\": \"mandelbrot\", \"frames\": %d, \"last\": ", s->frames);
        cli_json_text(stdout, path);
        printf(", \"seconds\": %.3f}\n", took);
    } else {
        printf("%d pictures, the last ", s->frames);
        cli_print_safe(stdout, path);
        printf(": %.1f s\n", took);
    }
    return CLI_FINE;
}
