/* ladder.c: add --ladder and matmul --ladder: every rung timed, compared with the library's result, and explained. */
#include "ladder.h"

#include "ladder_blas.h"

#include <math.h>
#include <string.h>

#include <paracord/ladder.h>
#include <paracord/ops.h>

#include "text.h"

enum { RUNGS_MAX = 16 };

typedef struct result {
    char name[48], why[160];
    double seconds; /* NaN: not there; `why` says why */
    double work, apart;
    int64_t size;
} result;

typedef struct ladder {
    cli_program *p;
    pc_ladder which;
    int rung;
    pc_tensor *a, *b, *c, *best; /* best: the library's result */
    double limit;                /* of the device, in units of work a second */
    const char *unit, *origin;   /* where the limit is from */
    result results[RUNGS_MAX];
    int count;
    cli_blas blas;
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

static bool read_all(void *context)
{
    pc_tensor *sum = pc_sum(((ladder *)context)->a);
    pc_tensor_free(sum);
    return sum != NULL;
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

/* The sum's limit: bytes a second of a copy, or of reading alone. */
static bool memory_rate(ladder *l)
{
    double copying, reading;
    if (!best_time(l, copy, l, &copying) || !best_time(l, read_all, l, &reading))
        return false;
    const double n = (double)pc_tensor_count(l->a);
    l->limit = fmax(8 * n / copying, 4 * n / reading);
    l->origin = 2 * reading > copying ? "what a copy reaches here" : "what reading reaches here";
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
    l->origin = "what multiply-adds alone reach here";
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

static void keep(ladder *l, const pc_tensor *c, const char *name, const char *why, double seconds, double apart)
{
    result *r = &l->results[l->count < RUNGS_MAX - 1 ? l->count++ : l->count];
    *r = (result){.seconds = seconds, .work = work_of(l, c), .apart = apart};
    r->size = l->which == PC_LADDER_ADD ? pc_tensor_count(c) : pc_tensor_size(c, 0);
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->why, sizeof r->why, "%s", why);
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

/* The device's time for `body`, which computes l->c; kept when its result is the library's. */
static bool run_body(ladder *l, cli_body body, const char *name, const char *why)
{
    double seconds;
    if (pc_fill(l->c, NAN) != PC_OK || !body(l) || !cli_program_steady(l->p->device, body, l, &seconds))
        return false;
    const double apart = difference(l->best, l->c);
    if (!(apart < 1e-5) && !pc_failed())
        return pc_fail(PC_ERR_STATE, "the rung \"%s\" computes something else than the library", name) == PC_OK;
    keep(l, l->c, name, why, seconds, apart);
    return !pc_failed();
}

/* A rung that is too slow for `size` gets a smaller one: rates can be compared all the same. */
static bool run_rung(ladder *l, const pc_rung *rung, int64_t size)
{
    if (!rung->most || size <= rung->most)
        return run_body(l, climb, rung->name, rung->why);
    ladder large = *l;
    l->a = l->b = l->c = l->best = NULL;
    const bool fine = make(l, rung->most) && run_body(l, climb, rung->name, rung->why);
    drop(l);
    l->a = large.a;
    l->b = large.b;
    l->c = large.c;
    l->best = large.best;
    return fine;
}

static bool run_library(ladder *l)
{
    double seconds;
    const bool tensor_units = l->which == PC_LADDER_MATMUL && l->p->device.type == PC_CUDA;
    if (!cli_program_steady(l->p->device, library, l, &seconds))
        return false;
    keep(l, l->c, "the library",
         l->which == PC_LADDER_MATMUL ? "what pc_matmul does"
         : l->p->device.type == PC_CUDA
             ? "what pc_add does"
             : "what pc_add does: its result goes through the caches, for whoever reads it next",
         seconds, 0);
    if (!tensor_units)
        return true;
    const pc_precision before = pc_matmul_precision_set(PC_PRECISION_TF32);
    const bool fine = library(l) && cli_program_steady(l->p->device, library, l, &seconds);
    (void)pc_matmul_precision_set(before);
    if (fine)
        keep(l, l->c, "the library in TF32", "matrix units, which take factors of three digits", seconds, NAN);
    return fine;
}

static bool multiply_by_blas(void *context)
{
    ladder *l = context;
    const float *a = pc_data(l->a), *b = pc_data(l->b);
    float *c = pc_data(l->c);
    if (!a || !b || !c)
        return false;
    cli_blas_multiply(&l->blas, (int)pc_tensor_size(l->c, 0), a, b, c);
    return true;
}

/* Beside the library, another one, where it is installed; the last, since its threads go on waiting for work. */
static bool run_blas(ladder *l)
{
    if (l->which != PC_LADDER_MATMUL || l->p->device.type != PC_CPU)
        return true;
    if (!l->best || !cli_blas_open(&l->blas)) {
        keep(l, l->c, "BLAS", CLI_BLAS_MISSING, NAN, NAN);
        return true;
    }
    return run_body(l, multiply_by_blas, "BLAS", l->blas.name);
}

/* --- the report --- */

static void print_json(const ladder *l)
{
    char name[PC_DEVICE_NAME_MAX];
    printf("{\"program\": \"%s\", \"device\": \"%s\", \"size\": %lld, \"limit\": ",
           l->which == PC_LADDER_ADD ? "add" : "matmul", pc_device_name(l->p->device, name),
           (long long)(l->which == PC_LADDER_ADD ? pc_tensor_count(l->c) : pc_tensor_size(l->c, 0)));
    cli_json_number(stdout, l->limit);
    fputs(", \"limit_origin\": ", stdout);
    cli_json_text(stdout, l->origin);
    fputs(", \"rungs\": [", stdout);
    for (int i = 0; i < l->count; i++) {
        const result *r = &l->results[i];
        printf("%s{\"rung\": ", i ? ", " : "");
        cli_json_text(stdout, r->name);
        fputs(", \"seconds\": ", stdout);
        cli_json_number(stdout, r->seconds);
        printf(", \"size\": %lld, \"rate\": ", (long long)r->size);
        cli_json_number(stdout, r->work / r->seconds);
        fputs(", \"share\": ", stdout);
        cli_json_number(stdout, r->work / r->seconds / l->limit);
        fputs(", \"difference\": ", stdout);
        cli_json_number(stdout, r->apart);
        fputs(", \"why\": ", stdout);
        cli_json_text(stdout, r->why);
        putchar('}');
    }
    puts("]}");
}

static void print_rung(const ladder *l, const result *r, int64_t size)
{
    char time[32], rate[32];
    if (isnan(r->seconds))
        printf("%-24s %10s", r->name, "-");
    else
        printf("%-24s %10s %14s %6.1f%%", r->name, cli_seconds(r->seconds, time),
               cli_rate(r->work, r->seconds, l->unit, rate), 100 * r->work / r->seconds / l->limit);
    char why[256];
    if (r->size == size)
        snprintf(why, sizeof why, "%s", r->why);
    else
        snprintf(why, sizeof why, "%s (so slow that it got %lld %s)", r->why, (long long)r->size,
                 l->which == PC_LADDER_ADD ? "elements" : "rows and columns");
    printf("\n    ");
    cli_wrap(stdout, why, 4, 4, cli_width(stdout));
    putchar('\n');
}

static void print_text(const ladder *l)
{
    char name[PC_DEVICE_NAME_MAX], rate[32], n[32];
    const int64_t size = pc_tensor_size(l->c, 0);
    pc_device_name(l->p->device, name);
    if (l->which == PC_LADDER_ADD)
        printf("%s sums of float32 on %s", cli_thousands(size, n), name);
    else
        printf("%lld x %lld times %lld x %lld in float32 on %s", (long long)size, (long long)size, (long long)size,
               (long long)size, name);
    printf("; share: of %s, %s\n\n", cli_rate(l->limit, 1, l->unit, rate), l->origin);
    for (int i = 0; i < l->count; i++)
        print_rung(l, &l->results[i], size);
}

/* What was measured is no limit where a rung in float32 goes beyond it. */
static void raise_limit(ladder *l)
{
    for (int i = 0; i < l->count; i++) {
        const double rate = l->results[i].work / l->results[i].seconds;
        if (rate > l->limit && !isnan(l->results[i].apart)) {
            l->limit = rate;
            l->origin = "the best here";
        }
    }
}

static int run(ladder *l, int64_t size, bool (*measure)(ladder *))
{
    const pc_rung *rungs;
    const int count = pc_ladder_rungs(l->which, l->p->device, &rungs);
    bool fine = make(l, size) && measure(l);
    for (l->rung = 0; fine && l->rung < count; l->rung++)
        fine = run_rung(l, &rungs[l->rung], size);
    fine = fine && run_library(l) && run_blas(l);
    if (fine) {
        raise_limit(l);
        if (l->p->json)
            print_json(l);
        else
            print_text(l);
    }
    drop(l);
    return fine ? CLI_FINE : cli_failed(l->p->command);
}

int cli_ladder_add(cli_program *p, int64_t size)
{
    ladder l = {.p = p, .which = PC_LADDER_ADD, .unit = "B"};
    const int64_t fitting = p->device.type == PC_CUDA ? (int64_t)1 << 28 : (int64_t)1 << 25;
    size = size > 6 ? size : fitting;
    if (p->device.type != PC_CUDA && !cli_program_fits(p, 24 * (double)size, "take a smaller --size"))
        return CLI_FAILED;
    return run(&l, size, memory_rate);
}

int cli_ladder_matmul(cli_program *p, int64_t size)
{
    ladder l = {.p = p, .which = PC_LADDER_MATMUL, .unit = "FLOP"};
    size = (size + 127) / 128 * 128;
    if (p->device.type != PC_CUDA && !cli_program_fits(p, 24 * (double)size * (double)size, "take a smaller --size"))
        return CLI_FAILED;
    return run(&l, size, fma_rate);
}
