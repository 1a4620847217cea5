/* matmul.c: paracord matmul, the product of two square matrices. */
#include <math.h>
#include <stddef.h>

#include <paracord/ops.h>

#include "ladder.h"
#include "program.h"
#include "text.h"

typedef struct matmul_settings {
    const char *device;
    int size;
    bool json, pinned, tf32, ladder;
} matmul_settings;

typedef struct product {
    cli_program p;
    int64_t n, checked; /* rows that were compared with the plain loop */
    bool tf32;
    pc_tensor *host[3]; /* a, b, c */
    pc_tensor *a, *b, *c;
} product;

static bool multiply(void *context)
{
    product *s = context;
    pc_tensor_free(s->c);
    s->c = pc_matmul(s->a, s->b);
    return s->c != NULL;
}

static bool multiply_on_the_host(void *context)
{
    product *s = context;
    pc_tensor *c = pc_matmul(s->host[0], s->host[1]);
    pc_tensor_free(c);
    return c != NULL;
}

/* Numbers between -0.5 and 0.5 without a pattern. */
static void fill(float *values, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

static bool prepare(product *s, bool pinned)
{
    for (int i = 0; i < 3; i++) {
        s->host[i] = cli_program_host(&s->p, PC_SHAPE(s->n, s->n), PC_F32, pinned);
        float *values = s->host[i] ? pc_map(s->host[i], PC_MAP_WRITE) : NULL;
        if (!values)
            return false;
        fill(values, i < 2 ? s->n * s->n : 0, (uint32_t)i);
        if (pc_unmap(s->host[i]) != PC_OK)
            return false;
    }
    return true;
}

static bool work(product *s, bool pinned)
{
    cli_program *p = &s->p;
    if (!prepare(s, pinned))
        return false;
    s->a = cli_program_room(p, s->host[0]);
    s->b = cli_program_room(p, s->host[1]);
    pc_tensor *c = cli_program_room(p, s->host[2]);
    pc_tensor_free(c); /* to the cache, where the product finds it */
    return s->a && s->b && c && cli_program_copy(p, s->a, s->host[0]) && cli_program_copy(p, s->b, s->host[1]) &&
           cli_program_first(p, multiply, s) && (p->local || cli_program_copy(p, s->host[2], s->c)) &&
           cli_program_steady(p->device, multiply, s, &p->compute) &&
           (p->local || cli_program_steady(PC_DEVICE_CPU, multiply_on_the_host, s, &p->cpu));
}

/* Row i by the plain loop, and how many results of it are further off than float32 (or TF32) may be. */
static int64_t check_row(const product *s, int64_t i, const float *a, const float *b, const float *got)
{
    const double rounded = 4 + sqrt((double)s->n); /* how often, as far as it adds up */
    const double epsilon = s->tf32 ? 0x1p-9 : rounded * 0x1p-24;
    int64_t wrong = 0;
    for (int64_t j = 0; j < s->n; j++) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < s->n; k++) {
            const double term = (double)a[i * s->n + k] * (double)b[k * s->n + j];
            sum += term;
            size += fabs(term);
        }
        wrong += !(fabs((double)got[i * s->n + j] - sum) <= epsilon * size + 1e-30);
    }
    return wrong;
}

static double plain_rows(const product *s, int64_t step, const float *a, const float *b, float *sums)
{
    const double start = cli_now();
    for (int64_t i = 0; i < s->n; i += step)
        for (int64_t j = 0; j < s->n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < s->n; k++)
                sum += a[i * s->n + k] * b[k * s->n + j];
            sums[j] = sum;
        }
    return cli_now() - start;
}

/* Some rows, so that it takes about a second at most; the plain loop's time is that of all, by proportion. */
static int64_t check(product *s)
{
    const double most = 1.5e8; /* multiplications */
    const double of_a_row = (double)s->n * (double)s->n;
    const int64_t rows = (int64_t)fmin((double)s->n, fmax(1, most / of_a_row)), step = (s->n + rows - 1) / rows;
    const float *a = pc_data(s->host[0]), *b = pc_data(s->host[1]), *got = pc_data(s->p.local ? s->c : s->host[2]);
    pc_tensor *sums = pc_zeros(PC_SHAPE(s->n), PC_F32, PC_DEVICE_CPU);
    if (!a || !b || !got || !sums)
        return -1;
    int64_t wrong = 0;
    s->checked = (s->n + step - 1) / step;
    s->p.plain = plain_rows(s, step, a, b, pc_data(sums)) * (double)s->n / (double)s->checked;
    for (int64_t i = 0; i < s->n; i += step)
        wrong += check_row(s, i, a, b, got);
    pc_tensor_free(sums);
    return wrong;
}

static int report(product *s)
{
    const int64_t wrong = check(s);
    if (wrong < 0)
        return cli_failed(s->p.command);
    if (s->p.json) {
        printf(
            "{\"program\": \"matmul\", \"size\": %lld, \"dtype\": \"float32\", \"tf32\": %s, \"rows_checked\": %lld, "
            "\"wrong\": %lld, ",
            (long long)s->n, s->tf32 ? "true" : "false", (long long)s->checked, (long long)wrong);
        cli_program_report(&s->p);
        puts("}");
    } else {
        printf("%lld x %lld times %lld x %lld in %s, ", (long long)s->n, (long long)s->n, (long long)s->n,
               (long long)s->n, s->tf32 ? "TF32" : "float32");
        if (s->checked == s->n)
            printf("all rows");
        else
            printf("%lld of the rows", (long long)s->checked);
        printf(" compared with a plain loop: %s\n\n", wrong ? "WRONG" : "equal but for rounding");
        cli_program_report(&s->p);
    }
    if (!wrong)
        return CLI_FINE;
    cli_error(s->p.command, "%lld elements are not those of a plain loop", (long long)wrong);
    return CLI_FAILED;
}

static int run(const cli_call *call)
{
    const matmul_settings *settings = call->settings;
    product s = {.n = settings->size, .tf32 = settings->tf32};
    if (!cli_program_open(&s.p, call, settings->device, settings->json))
        return CLI_FAILED;
    if (settings->ladder)
        return cli_ladder_matmul(&s.p, settings->size);
    s.tf32 = s.tf32 && s.p.device.type == PC_CUDA;
    s.p.work = 2 * pow((double)s.n, 3);
    s.p.unit = "FLOP";
    if (!cli_program_fits(&s.p, 20 * pow((double)s.n, 2), "take a smaller --size"))
        return CLI_FAILED;
    (void)pc_matmul_precision_set(s.tf32 ? PC_PRECISION_TF32 : PC_PRECISION_F32);
    const int status = work(&s, settings->pinned) ? report(&s) : cli_failed(call->command);
    for (int i = 0; i < 3; i++)
        pc_tensor_free(s.host[i]);
    pc_tensor_free(s.a);
    pc_tensor_free(s.b);
    pc_tensor_free(s.c);
    return status;
}

#define AT(member) offsetof(matmul_settings, member)

static const cli_option options[] = {
    {"size", 's', CLI_INT, AT(size), "1024", "N",
     .help = "Rows and columns of the matrices; --ladder goes up to the next multiple of 128", .min = 1, .max = 65536},
    {"tf32", 0, CLI_FLAG, AT(tf32), NULL, NULL,
     .help =
         "Let a GPU round the factors to TF32 for its matrix units: three digits, several times as fast; other devices "
         "stay with float32"},
    {"ladder", 0, CLI_FLAG, AT(ladder), NULL, NULL,
     .help = "Climb from the simplest kernel to the library's, a rung at a time"},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices,
     .group = "Running"},
    {"pinned", 0, CLI_FLAG, AT(pinned), NULL, NULL, .help = CLI_PINNED_HELP},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_example examples[] = {
    {"paracord matmul --size 4096 --device cuda", "A product that a GPU is made for"},
    {"paracord matmul --ladder", "From three loops to the speed of the machine"},
    {0},
};

const cli_command cli_matmul = {
    .name = "matmul",
    .summary = "Multiply two matrices, and see where the time goes",
    .description =
        "N x N times N x N in float32. Work grows with N^3 and copies with N^2: from some size on a device is "
        "worth its copies. Rows of the result are compared with a plain loop, all of them up to some size; "
        "the times are told as paracord add does.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(matmul_settings),
    .run = run,
};
