/* saxpy.c: paracord saxpy, y = a x + y, the exercise after the addition. */
#include <math.h>
#include <stddef.h>

#include <paracord/ops.h>

#include "program.h"
#include "text.h"

typedef struct saxpy_settings {
    const char *device;
    double a;
    int size;
    bool json, pinned;
} saxpy_settings;

typedef struct saxpy {
    cli_program p;
    double a;
    int64_t n;
    pc_tensor *host[3]; /* x, y, and the result */
    pc_tensor *x, *y;
    pc_tensor *again; /* the CPU's y */
} saxpy;

static bool step(void *context)
{
    saxpy *s = context;
    return pc_saxpy(s->y, s->a, s->x) == PC_OK;
}

static bool step_on_the_host(void *context)
{
    saxpy *s = context;
    return pc_saxpy(s->again, s->a, s->host[0]) == PC_OK;
}

static bool prepare(saxpy *s, bool pinned)
{
    float *values[2];
    for (int i = 0; i < 3; i++) {
        s->host[i] = cli_program_host(&s->p, PC_SHAPE(s->n), PC_F32, pinned);
        if (!s->host[i] || (i < 2 && !(values[i] = pc_map(s->host[i], PC_MAP_WRITE))))
            return false;
    }
    for (int64_t i = 0; i < s->n; i++) {
        values[0][i] = (float)(i % 1009) / 1009;
        values[1][i] = 1 - (float)(i % 499) / 499;
    }
    return pc_unmap(s->host[0]) == PC_OK && pc_unmap(s->host[1]) == PC_OK;
}

/* On the CPU y is a copy, so that the check still has the old one. */
static bool make_room(saxpy *s)
{
    s->x = cli_program_room(&s->p, s->host[0]);
    s->y = s->p.local ? pc_clone(s->host[1]) : cli_program_room(&s->p, s->host[1]);
    s->again = s->p.local ? NULL : pc_clone(s->host[1]);
    return s->x && s->y && (s->p.local || s->again);
}

static bool work(saxpy *s, bool pinned)
{
    return prepare(s, pinned) && make_room(s) && cli_program_copy(&s->p, s->x, s->host[0]) &&
           (s->p.local || cli_program_copy(&s->p, s->y, s->host[1])) && cli_program_first(&s->p, step, s) &&
           (s->p.local ? pc_copy(s->host[2], s->y) == PC_OK : cli_program_copy(&s->p, s->host[2], s->y)) &&
           cli_program_steady(s->p.device, step, s, &s->p.compute) &&
           (s->p.local || cli_program_steady(PC_DEVICE_CPU, step_on_the_host, s, &s->p.cpu));
}

/* The plain loop over y, and how many results are further from it than the rounding of its product: a device may fuse
 * the two operations into one. */
static int64_t check(saxpy *s)
{
    const float *x = pc_data(s->host[0]), *got = pc_data(s->host[2]);
    float *y = pc_data(s->host[1]);
    const float a = (float)s->a;
    if (!x || !got || !y)
        return -1;
    double start = cli_now();
    for (int64_t i = 0; i < s->n; i++)
        y[i] = a * x[i] + y[i];
    s->p.plain = cli_now() - start;
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->n; i++)
        wrong += !(fabsf(got[i] - y[i]) <= 0x1p-23f * (fabsf(a * x[i]) + fabsf(y[i])));
    return wrong;
}

static int report(saxpy *s)
{
    char n[32];
    const int64_t wrong = check(s);
    if (wrong < 0)
        return cli_failed(s->p.command);
    if (s->p.json) {
        printf("{\"program\": \"saxpy\", \"size\": %lld, \"dtype\": \"float32\", \"wrong\": %lld, ", (long long)s->n,
               (long long)wrong);
        cli_program_report(&s->p);
        puts("}");
    } else {
        printf("y = %g x + y, %s element%s of float32, all compared with a plain loop: %s\n\n", s->a,
               cli_thousands(s->n, n), s->n == 1 ? "" : "s", wrong ? "WRONG" : "equal but for rounding");
        cli_program_report(&s->p);
    }
    return cli_program_verdict(&s->p, wrong, s->n);
}

static int run(const cli_call *call)
{
    const saxpy_settings *settings = call->settings;
    saxpy s = {.a = settings->a, .n = settings->size};
    if (!cli_program_open(&s.p, call, settings->device, settings->json))
        return CLI_FAILED;
    s.p.work = 12.0 * (double)s.n;
    s.p.unit = "B";
    if (!cli_program_fits(&s.p, 16.0 * (double)s.n, "take a smaller --size"))
        return CLI_FAILED;
    const int status = work(&s, settings->pinned) ? report(&s) : cli_failed(call->command);
    for (int i = 0; i < 3; i++)
        pc_tensor_free(s.host[i]);
    pc_tensor_free(s.x);
    pc_tensor_free(s.y);
    pc_tensor_free(s.again);
    return status;
}

#define AT(member) offsetof(saxpy_settings, member)

static const cli_option options[] = {
    {"size", 's', CLI_INT, AT(size), "16777216", "N", .help = "Elements of x and y", .min = 0, .max = 2147483647},
    {"factor", 'a', CLI_FLOAT, AT(a), "2", "A", .help = "The factor a", .min = -1e6, .max = 1e6},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices,
     .group = "Running"},
    {"pinned", 0, CLI_FLAG, AT(pinned), NULL, NULL, .help = CLI_PINNED_HELP},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_example examples[] = {
    {"paracord saxpy", "On the fastest device"},
    {"paracord saxpy --device cuda --pinned", "On a GPU, with the copies as fast as they get"},
    {0},
};

const cli_command cli_saxpy = {
    .name = "saxpy",
    .summary = "Compute y = a x + y, and see where the time goes",
    .description = "Two operations for twelve bytes: any device is as fast as its memory here. Every element is "
                   "compared with a plain loop; the times are told as paracord add does.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(saxpy_settings),
    .run = run,
};
