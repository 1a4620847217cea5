/* mandelbrot.c: paracord mandelbrot, the Mandelbrot set: timed, checked, and as a picture. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/ops.h>

#include "mandelbrot.h"
#include "text.h"

/* The region that the options name. False: they contradict each other, told. */
static bool find_region(cli_fractal *m, const cli_fractal_settings *s)
{
    const double *x = s->x, *y = s->y;
    const bool centred = s->centre[0] != -0.5 || s->centre[1] != 0 || s->zoom != 1;
    const bool bounded = x[0] != -2 || x[1] != 1 || y[0] != -1 || y[1] != 1;
    if (centred && bounded) {
        cli_error(m->p.command, "--x and --y say where, and so do --centre and --zoom: give one or the other");
        return false;
    }
    if (x[0] >= x[1] || y[0] >= y[1]) {
        const bool first = x[0] >= x[1];
        cli_error(m->p.command, "--%s %g,%g: the first must be less than the second", first ? "x" : "y",
                  first ? x[0] : y[0], first ? x[1] : y[1]);
        return false;
    }
    m->spec = (pc_mandelbrot_options){.x_min = x[0], .x_max = x[1], .y_min = y[0], .y_max = y[1]};
    if (centred)
        cli_mandelbrot_zoom(m, s, s->zoom);
    m->spec.iterations = s->iterations;
    return true;
}

void cli_mandelbrot_zoom(cli_fractal *m, const cli_fractal_settings *s, double zoom)
{
    const double half = 1.5 / zoom, up = half * s->height / s->width;
    m->spec.x_min = s->centre[0] - half;
    m->spec.x_max = s->centre[0] + half;
    m->spec.y_min = s->centre[1] - up;
    m->spec.y_max = s->centre[1] + up;
}

/* Neighbouring pixels are different numbers, with a digit or two to spare. */
static bool is_fine_enough(const cli_fractal *m)
{
    const pc_mandelbrot_options *r = &m->spec;
    const double dx = (r->x_max - r->x_min) / m->width, dy = (r->y_max - r->y_min) / m->height;
    const double x = fmax(fabs(r->x_min), fabs(r->x_max)), y = fmax(fabs(r->y_min), fabs(r->y_max));
    if (dx > x * 0x1p-50 && dy > y * 0x1p-50)
        return true;
    cli_error(
        m->p.command,
        "pixels %.2g apart are too close for float64 here; go less deep, or take fewer pixels (--width, --height)",
        fmin(dx, dy));
    return false;
}

bool cli_mandelbrot_count(void *context)
{
    cli_fractal *m = context;
    return pc_mandelbrot(m->counts, m->spec) == PC_OK;
}

static bool count_on_the_host(void *context)
{
    cli_fractal *m = context;
    return pc_mandelbrot(m->host, m->spec) == PC_OK;
}

static bool work(cli_fractal *m)
{
    cli_program *p = &m->p;
    m->counts = cli_program_room(p, m->host);
    return m->counts && cli_program_first(p, cli_mandelbrot_count, m) &&
           cli_program_steady(p->device, cli_mandelbrot_count, m, &p->compute) &&
           (p->local || cli_program_steady(PC_DEVICE_CPU, count_on_the_host, m, &p->cpu)) &&
           (p->local || pc_fill(m->host, 0) == PC_OK) && cli_program_copy(p, m->host, m->counts);
}

static int plain_count(double cr, double ci, int iterations)
{
    double zr = 0, zi = 0;
    for (int i = 0; i < iterations; i++) {
        const double real = zr * zr - zi * zi + cr;
        zi = zr * zi + zi * zr + ci;
        zr = real;
        if (zr * zr + zi * zi >= 4)
            return i;
    }
    return iterations;
}

static int count_at(const void *counts, pc_dtype dtype, int64_t i)
{
    return dtype == PC_U8 ? ((const uint8_t *)counts)[i] : ((const int32_t *)counts)[i];
}

/* Compare with the plain loop: all rows, or every so many of them where all would take more than a second or two. The
 * plain loop's time is that of all, by proportion. */
static bool check(cli_fractal *m)
{
    const double most = 4e8; /* steps */
    const pc_mandelbrot_options *r = &m->spec;
    const double dx = (r->x_max - r->x_min) / m->width, dy = (r->y_max - r->y_min) / m->height;
    const int apart = (int)fmax(1, ceil((double)m->width * m->height * r->iterations / most));
    const pc_dtype dtype = pc_tensor_dtype(m->host);
    const void *counts = pc_data(m->host);
    int *row_counts = malloc((size_t)m->width * sizeof *row_counts);
    double took = 0, steps = 0;
    for (int row = 0; counts && row_counts && row < m->height; row += apart) {
        const double start = cli_now(), ci = r->y_min + row * dy;
        for (int column = 0; column < m->width; column++)
            row_counts[column] = plain_count(r->x_min + column * dx, ci, r->iterations);
        took += cli_now() - start;
        for (int column = 0; column < m->width; column++) {
            m->wrong += row_counts[column] != count_at(counts, dtype, (int64_t)row * m->width + column);
            steps += row_counts[column];
        }
        m->rows_checked++;
    }
    const bool fine = counts && row_counts;
    free(row_counts);
    const double share = (double)m->rows_checked / m->height;
    m->p.plain = took / share;
    m->p.work = steps / share;
    m->p.unit = "steps";
    return fine;
}

static void print_json(const cli_fractal *m, const char *file)
{
    printf("{\"program\": \"mandelbrot\", \"width\": %d, \"height\": %d, \"iterations\": %d, \"x\": [", m->width,
           m->height, m->spec.iterations);
    cli_json_number(stdout, m->spec.x_min);
    fputs(", ", stdout);
    cli_json_number(stdout, m->spec.x_max);
    fputs("], \"y\": [", stdout);
    cli_json_number(stdout, m->spec.y_min);
    fputs(", ", stdout);
    cli_json_number(stdout, m->spec.y_max);
    printf("], \"rows_checked\": %d, \"wrong\": %lld, \"file\": ", m->rows_checked, (long long)m->wrong);
    if (file)
        cli_json_text(stdout, file);
    else
        fputs("null", stdout);
    fputs(", ", stdout);
    cli_program_report(&m->p);
    puts("}");
}

static void print_text(const cli_fractal *m)
{
    char pixels[32];
    const int64_t n = (int64_t)m->width * m->height;
    printf("%s point%s, x %.10g to %.10g, y %.10g to %.10g, %d iteration%s in float64; ", cli_thousands(n, pixels),
           n == 1 ? "" : "s", m->spec.x_min, m->spec.x_max, m->spec.y_min, m->spec.y_max, m->spec.iterations,
           m->spec.iterations == 1 ? "" : "s");
    if (m->rows_checked == m->height)
        printf("all");
    else
        printf("%d of %d rows", m->rows_checked, m->height);
    printf(" compared with a plain loop: %s\n\n", m->wrong ? "WRONG" : "equal");
    cli_program_report(&m->p);
}

static bool prepare(cli_fractal *m, const cli_fractal_settings *s)
{
    const double bytes = (double)s->width * s->height * 12; /* counts, fractions, colours */
    if (!cli_program_fits(&m->p, bytes, "take a smaller --width or --height"))
        return false;
    const pc_dtype dtype = s->iterations <= UINT8_MAX ? PC_U8 : PC_I32;
    m->host = cli_program_host(&m->p, PC_SHAPE(m->height, m->width), dtype, s->pinned);
    if (!m->host) {
        cli_failed(m->p.command);
        return false;
    }
    return true;
}

static int run_all(cli_fractal *m, const cli_fractal_settings *s)
{
    if (!prepare(m, s))
        return CLI_FAILED;
    if (s->frames > 0)
        return cli_mandelbrot_frames(m, s);
    if (s->out && !cli_picture_may_write(m->p.command, s->out))
        return CLI_FAILED;
    if (!work(m) || !check(m))
        return cli_failed(m->p.command);
    if ((s->out || s->view) && !cli_mandelbrot_picture(m, s, s->out))
        return CLI_FAILED;
    if (s->json)
        print_json(m, s->out);
    else
        print_text(m);
    if (!m->wrong)
        return CLI_FINE;
    cli_error(m->p.command, "%lld points are not those of a plain loop", (long long)m->wrong);
    return CLI_FAILED;
}

static int run(const cli_call *call)
{
    const cli_fractal_settings *s = call->settings;
    cli_fractal m = {.p.command = call->command, .width = s->width, .height = s->height};
    if (s->frames > 0 && (!s->out || s->zoom <= 1)) {
        cli_error(call->command, "--frames %d: needs --out FILE for their names, and --zoom for where they lead",
                  s->frames);
        return CLI_WRONG_USAGE;
    }
    if (!find_region(&m, s) || !is_fine_enough(&m))
        return CLI_WRONG_USAGE;
    if (!cli_program_open(&m.p, call, s->device, s->json))
        return CLI_FAILED;
    const int status = run_all(&m, s);
    pc_tensor_free(m.host);
    pc_tensor_free(m.counts);
    return status;
}

#define AT(member) offsetof(cli_fractal_settings, member)

static const cli_option options[] = {
    {"width", 'W', CLI_INT, AT(width), "1536", "PIXELS", .help = "Columns of the picture", .min = 1, .max = 65535},
    {"height", 'H', CLI_INT, AT(height), "1024", "PIXELS", .help = "Rows", .min = 1, .max = 65535},
    {"iterations", 'n', CLI_INT, AT(iterations), "20", "N",
     .help = "Steps after which a point counts as one of the set", .min = 1, .max = 1000000000},
    {"x", 'x', CLI_PAIR, AT(x), "-2,1", "A,B", .help = "The plane from left to right", .min = -1e6, .max = 1e6},
    {"y", 'y', CLI_PAIR, AT(y), "-1,1", "A,B", .help = "And from the top row down", .min = -1e6, .max = 1e6},
    {"centre", 'c', CLI_PAIR, AT(centre), "-0.5,0", "X,Y", .help = "Instead of both: the point in the middle",
     .min = -1e6, .max = 1e6},
    {"zoom", 'z', CLI_FLOAT, AT(zoom), "1", "FACTOR", .help = "And how many times closer than a width of 3", .min = 0,
     .max = 1e15, .above = true},
    {"out", 'o', CLI_PATH, AT(out), NULL, "FILE", .help = "Write the picture, PNG or JPEG by the name's end",
     .group = "The picture"},
    {"view", 'v', CLI_FLAG, AT(view), NULL, NULL, .help = "Show the picture in the terminal"},
    {"palette", 'p', CLI_CHOICE, AT(palette), "fire", "NAME", .help = "Its colours", .choices = cli_palettes},
    {"smooth", 's', CLI_FLAG, AT(smooth), "on", NULL, .help = "Colours without bands"},
    {"frames", 'f', CLI_INT, AT(frames), "0", "N",
     .help = "Write N pictures on the way to --zoom, numbered: FILE-0001.png and so on", .min = 0, .max = 9999},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices,
     .group = "Running"},
    {"pinned", 0, CLI_FLAG, AT(pinned), NULL, NULL, .help = CLI_PINNED_HELP},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_example examples[] = {
    {"paracord mandelbrot -o set.png", "The whole set"},
    {"paracord mandelbrot --view -n 200", "In the terminal"},
    {"paracord mandelbrot -c -0.74364,0.13183 -z 3000 -n 999 -p ocean -o sea.png", "A valley of it"},
    {"paracord mandelbrot -c -0.74364,0.13183 -z 3000 -n 999 -f 100 -o zoom.png", "The way there"},
    {0},
};

const cli_command cli_mandelbrot = {
    .name = "mandelbrot",
    .summary = "Draw the Mandelbrot set, and see where the time goes",
    .description = "Counts for each point c how long z = z * z + c stays below 2, in float64, compares the counts with "
                   "those of a plain loop, and tells the times as paracord add does. Counts are the same on every "
                   "device.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(cli_fractal_settings),
    .run = run,
};
