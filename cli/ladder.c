/* ladder.c: add --ladder and matmul --ladder: every rung timed, compared with the library's result, and explained. */
#include "ladder.h"

#include <math.h>
#include <string.h>

#include <paracord/ladder.h>
#include <paracord/ops.h>

#include "text.h"

typedef struct ladder {
    cli_program *p;
    pc_ladder which;
    int rung;
    pc_tensor *a, *b, *c, *best; /* best: the library's result */
    double limit;                /* of the device, in units of work a second */
    const char *unit;
    int printed;
} ladder;

static bool climb(void *context)
{
    ladder *l = context;
    return pc_ladder_climb(l->which, l->rung, l->a, l->b, l->c) == PC_OK;
}

static bool library(void *context)
{
    ladder *l = context;
    pc_tensor_free(l->best);
    l->best = l->which == PC_LADDER_ADD ? pc_add(l->a, l->b) : pc_matmul(l->a, l->b);
    return l->best != NULL;
}

/* --- limits, measured --- */

static bool copy(void *context)
{
    ladder *l = context;
    return pc_copy(l->c, l->a) == PC_OK;
}

static bool multiply_adds(void *context)
{
    return pc_ladder_fma(context, 4096) == PC_OK;
}

/* The best of three: a limit that other work on the machine lowers is none. */
static bool best_time(const ladder *l, cli_body body, void *context, double *best)
{
    *best = HUGE_VAL;
    for (int i = 0; i < 3; i++) {
        double seconds;
        if (!cli_program_steady(l->p->device, body, context, &seconds))
            return false;
        *best = fmin(*best, seconds);
    }
    return true;
}

/* The sum's limit: bytes a second of a copy. */
static bool copy_rate(ladder *l)
{
    double seconds;
    if (!best_time(l, copy, l, &seconds))
        return false;
    l->limit = 8 * (double)pc_tensor_count(l->a) / seconds;
    return true;
}

/* The product's: operations a second where nothing is loaded. */
static bool fma_rate(ladder *l)
{
    double seconds = NAN;
    const int64_t n = 768 * (l->p->device.type == PC_CUDA ? 132 * 64 : 256);
    pc_tensor *x = pc_zeros(PC_SHAPE(n), PC_F32, l->p->device);
    const bool fine = x && multiply_adds(x) && best_time(l, multiply_adds, x, &seconds);
    pc_tensor_free(x);
    l->limit = 2.0 * 4096 * (double)n / seconds;
    return fine;
}

/* --- one rung --- */

static double work_of(const ladder *l, const pc_tensor *t)
{
    return l->which == PC_LADDER_ADD ? 12 * (double)pc_tensor_count(t) : 2 * pow((double)pc_tensor_size(t, 0), 3);
}

/* The largest difference between two results, as a part of the largest number. */
static double difference(pc_tensor *a, pc_tensor *b)
{
    double apart = NAN;
    PC_SCOPE {
        pc_tensor *d = pc_sub(a, b);
        const double most = pc_item(pc_max(pc_mul(a, a)));
        apart = sqrt(pc_item(pc_max(pc_mul(d, d))) / (most > 0 ? most : 1));
    }
    return apart;
}

static void print_rung(ladder *l, const char *name, const char *why, double seconds, double apart)
{
    char time[32], rate[32];
    const double share = work_of(l, l->c) / seconds / l->limit;
    if (l->p->json) {
        printf("%s{\"rung\": ", l->printed++ ? ", " : "");
        cli_json_text(stdout, name);
        fputs(", \"seconds\": ", stdout);
        cli_json_number(stdout, seconds);
        printf(", \"size\": %lld, \"rate\": ",
               (long long)(l->which == PC_LADDER_ADD ? pc_tensor_count(l->c) : pc_tensor_size(l->c, 0)));
        cli_json_number(stdout, work_of(l, l->c) / seconds);
        fputs(", \"share\": ", stdout);
        cli_json_number(stdout, share);
        fputs(", \"difference\": ", stdout);
        cli_json_number(stdout, apart);
        fputs(", \"why\": ", stdout);
        cli_json_text(stdout, why);
        putchar('}');
        return;
    }
    printf("%-24s %10s %14s %6.1f%%\n    ", name, cli_seconds(seconds, time),
           cli_rate(work_of(l, l->c), seconds, l->unit, rate), 100 * share);
    cli_wrap(stdout, why, 4, 4, cli_width(stdout));
    putchar('\n');
    fflush(stdout);
}

/* Tensors for a size; the library's result for it. */
static bool make(ladder *l, int64_t size)
{
    const pc_shape shape = l->which == PC_LADDER_ADD ? PC_SHAPE(size) : PC_SHAPE(size, size);
    l->a = pc_rand(shape, PC_F32, l->p->device);
    l->b = pc_rand(shape, PC_F32, l->p->device);
    l->c = pc_zeros(shape, PC_F32, l->p->device);
    return l->a && l->b && l->c && library(l);
}

static void drop(ladder *l)
{
    pc_tensor_free(l->a);
    pc_tensor_free(l->b);
    pc_tensor_free(l->c);
    pc_tensor_free(l->best);
    l->a = l->b = l->c = l->best = NULL;
}

/* A rung that is too slow for `size` gets a smaller one: rates can be compared all the same. */
static bool run_rung(ladder *l, const pc_rung *rung, int64_t size)
{
    double seconds, apart = NAN;
    ladder small = *l; /* with tensors of its own where it shrinks */
    const bool shrink = rung->most && size > rung->most;
    if (shrink)
        small.a = small.b = small.c = small.best = NULL;
    if (shrink && !make(&small, rung->most)) {
        drop(&small);
        return false;
    }
    bool fine = pc_fill(small.c, NAN) == PC_OK && climb(&small);
    fine = fine && cli_program_steady(l->p->device, climb, &small, &seconds);
    apart = fine ? difference(small.best, small.c) : NAN;
    if (fine && !(apart < 1e-5))
        fine = pc_fail(PC_ERR_STATE, "the rung \"%s\" computes something else than the library", rung->name) == PC_OK;
    if (fine)
        print_rung(&small, rung->name, rung->why, seconds, apart);
    l->printed = small.printed;
    if (shrink)
        drop(&small);
    return fine && !pc_failed();
}

static bool run_library(ladder *l)
{
    double seconds;
    const bool tensor_units = l->which == PC_LADDER_MATMUL && l->p->device.type == PC_CUDA;
    if (!cli_program_steady(l->p->device, library, l, &seconds))
        return false;
    print_rung(l, "the library", l->which == PC_LADDER_ADD ? "what pc_add does" : "what pc_matmul does", seconds, 0);
    if (!tensor_units)
        return true;
    const pc_precision before = pc_matmul_precision_set(PC_PRECISION_TF32);
    const bool fine = library(l) && cli_program_steady(l->p->device, library, l, &seconds);
    (void)pc_matmul_precision_set(before);
    if (fine)
        print_rung(l, "the library in TF32", "matrix units, which take factors of three digits", seconds, NAN);
    return fine;
}

static void print_head(const ladder *l, int64_t size, const char *limit)
{
    char name[PC_DEVICE_NAME_MAX], rate[32], n[32];
    pc_device_name(l->p->device, name);
    cli_rate(l->limit, 1, l->unit, rate);
    if (l->p->json) {
        printf("{\"program\": \"%s\", \"device\": \"%s\", \"size\": %lld, \"limit\": ",
               l->which == PC_LADDER_ADD ? "add" : "matmul", name, (long long)size);
        cli_json_number(stdout, l->limit);
        fputs(", \"rungs\": [", stdout);
        return;
    }
    if (l->which == PC_LADDER_ADD)
        printf("%s sums of float32 on %s", cli_thousands(size, n), name);
    else
        printf("%lld x %lld times %lld x %lld in float32 on %s", (long long)size, (long long)size, (long long)size,
               (long long)size, name);
    printf("; share: of %s, %s\n\n", rate, limit);
}

static int finish(ladder *l, bool fine)
{
    drop(l);
    if (fine && l->p->json)
        puts("]}");
    return fine ? CLI_FINE : cli_failed(l->p->command);
}

static int run(ladder *l, int64_t size, const char *limit, bool (*measure)(ladder *))
{
    const pc_rung *rungs;
    const int count = pc_ladder_rungs(l->which, l->p->device, &rungs);
    bool fine = make(l, size) && measure(l);
    if (fine)
        print_head(l, size, limit);
    for (l->rung = 0; fine && l->rung < count; l->rung++)
        fine = run_rung(l, &rungs[l->rung], size);
    return finish(l, fine && run_library(l));
}

int cli_ladder_add(cli_program *p, int64_t size)
{
    ladder l = {.p = p, .which = PC_LADDER_ADD, .unit = "B"};
    const int64_t fitting = p->device.type == PC_CUDA ? (int64_t)1 << 28 : (int64_t)1 << 25;
    size = size > 6 ? size : fitting;
    if (p->device.type != PC_CUDA && !cli_program_fits(p, 24 * (double)size, "take a smaller --size"))
        return CLI_FAILED;
    return run(&l, size, "what a copy reaches here", copy_rate);
}

int cli_ladder_matmul(cli_program *p, int64_t size)
{
    ladder l = {.p = p, .which = PC_LADDER_MATMUL, .unit = "FLOP"};
    size = (size + 127) / 128 * 128;
    if (p->device.type != PC_CUDA && !cli_program_fits(p, 24 * (double)size * (double)size, "take a smaller --size"))
        return CLI_FAILED;
    return run(&l, size, "what multiply-adds alone reach here", fma_rate);
}
