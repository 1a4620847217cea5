/* bench_limits.c: what the machine could do at most: by its GPU's datasheet, by its link, or by what is measured. */
#include "bench.h"

#include <math.h>
#include <string.h>

#include <paracord-tools/cloud.h>
#include <paracord/ladder.h>
#include <paracord/ops.h>

#define NO_LIMIT ((bench_limit){NAN, NULL})

/* What the catalogue of GPUs says; it has no column for float64, whose rate follows from the architecture: that of its
 * matrix units, where it has such, beside that of float32. */
static void take_datasheet(bench_limits *l, const char *model)
{
    static const struct {
        int capability;
        double part; /* float64 of float32 */
    } doubles[] = {{70, 0.5},     {75, 1 / 32.}, {80, 1},    {86, 1 / 64.},
                   {89, 1 / 64.}, {90, 1},       {100, 0.5}, {120, 1 / 64.}};
    pc_cloud *cloud = pc_cloud_open_builtin();
    const pc_cloud_gpu *gpu = cloud ? pc_cloud_gpu_named(cloud, model) : NULL;
    if (gpu) {
        const double rates[] = {NAN, gpu->f32, gpu->tf32, gpu->half, gpu->half};
        snprintf(l->datasheet, sizeof l->datasheet, "datasheet of %.40s", gpu->name);
        l->memory = (bench_limit){gpu->bandwidth * 1e9, l->datasheet};
        for (int i = 0; i < BENCH_TYPES; i++)
            if (rates[i] > 0)
                l->math[i] = (bench_limit){rates[i] * 1e12, l->datasheet};
        for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
            if (gpu->capability == doubles[i].capability && gpu->f32 > 0)
                l->math[BENCH_F64] = (bench_limit){gpu->f32 * doubles[i].part * 1e12, l->datasheet};
    }
    pc_cloud_free(cloud);
}

static int number(const pc_fact *fact)
{
    return fact->known ? (int)fact->number : 0;
}

/* NVLinks of a device carry 25 GB/s each way, from the fifth generation on 50. */
static void take_links(bench_limits *l, const pc_probe_device *d)
{
    const int links = number(&d->nvlinks_active);
    l->pcie = (bench_link){number(&d->pcie_generation), number(&d->pcie_width), number(&d->pcie_generation_max),
                           number(&d->pcie_width_max)};
    if (l->pcie.generation_max && l->pcie.width_max) {
        snprintf(l->link_name, sizeof l->link_name, "PCIe %d.0 x%d", l->pcie.generation_max, l->pcie.width_max);
        l->link = (bench_limit){bench_link_rate(l->pcie.generation_max, l->pcie.width_max), l->link_name};
    }
    l->peer = links ? (bench_limit){links * (number(&d->nvlink_version) >= 5 ? 50e9 : 25e9), "its NVLinks"} : l->link;
}

void bench_known_limits(bench_limits *l, const pc_machine *m, int cuda_index)
{
    *l = (bench_limits){.memory = NO_LIMIT, .host = NO_LIMIT, .link = NO_LIMIT, .peer = NO_LIMIT};
    for (int i = 0; i < BENCH_TYPES; i++)
        l->math[i] = NO_LIMIT;
    for (int i = 0; m && i < m->device_count; i++) {
        const pc_probe_device *d = &m->devices[i];
        if (!d->index_cuda.known || (int)d->index_cuda.number != cuda_index)
            continue;
        take_links(l, d);
        if (d->clock_reasons.known && strcmp(d->clock_reasons.text, "nothing") && strcmp(d->clock_reasons.text, "idle"))
            snprintf(l->clocks, sizeof l->clocks, "%s", d->clock_reasons.text);
        if (d->model.known) {
            snprintf(l->model, sizeof l->model, "%s", d->model.text);
            take_datasheet(l, d->model.text);
        }
    }
    pc_error_clear(); /* what is unknown stays so */
}

/* --- measured --- */

typedef struct arrays {
    pc_tensor *a, *c;
} arrays;

static bool copy(void *context)
{
    arrays *s = context;
    return pc_copy(s->c, s->a) == PC_OK;
}

static bool read_all(void *context)
{
    arrays *s = context;
    pc_tensor *sum = pc_sum(s->a);
    pc_tensor_free(sum);
    return sum != NULL;
}

static bool multiply_adds(void *context)
{
    return pc_ladder_fma(context, 4096) == PC_OK;
}

static bool measure_memory(pc_device device, bench_limit *limit)
{
    const int64_t n = bench_elements(device);
    bench_result copying = {0}, reading = {0};
    arrays s = {pc_zeros(PC_SHAPE(n), PC_F32, device), pc_zeros(PC_SHAPE(n), PC_F32, device)};
    const bool fine = s.a && s.c && pc_fill(s.a, 1) == PC_OK && bench_time(device, false, copy, &s, &copying) &&
                      bench_time(device, false, read_all, &s, &reading);
    const double copied = 8.0 * (double)n / copying.best, read = 4.0 * (double)n / reading.best;
    *limit = copied > read ? (bench_limit){copied, "measured: copying"} : (bench_limit){read, "measured: reading"};
    pc_tensor_free(s.a);
    pc_tensor_free(s.c);
    return fine;
}

/* Operations a second where nothing is loaded. Vectors hold half as many float64; 16-bit numbers become float32. */
static bool measure_math(bench *b)
{
    const pc_device device = b->p.device;
    const int64_t n = 768 * (device.type == PC_CUDA ? 132 * 64 : 256);
    bench_result r = {0};
    bench_limit *math = b->limits.math;
    pc_tensor *x = pc_zeros(PC_SHAPE(n), PC_F32, device);
    const bool fine = x && bench_time(device, false, multiply_adds, x, &r);
    pc_tensor_free(x);
    math[BENCH_F32] = (bench_limit){2.0 * 4096 * (double)n / r.best, "measured: multiply-adds alone"};
    if (device.type == PC_CUDA)
        return fine;
    math[BENCH_F16] = math[BENCH_BF16] = math[BENCH_F32];
    math[BENCH_F64] = (bench_limit){math[BENCH_F32].rate / 2, "measured: half of float32 multiply-adds"};
    return fine;
}

static bool wanted(const bench *b, bench_kind first, bench_kind second)
{
    for (int i = 0; i < bench_row_count; i++)
        if (b->chosen[i] && (bench_rows[i].kind == first || bench_rows[i].kind == second))
            return true;
    return false;
}

/* Without the room to measure a limit it is unknown; the rows will say the same of themselves. */
static void settle(bench_limit *limit, bool fine)
{
    if (fine)
        return;
    *limit = NO_LIMIT;
    pc_error_clear();
}

void bench_find_limits(bench *b, const pc_machine *machine)
{
    bench_limits *l = &b->limits;
    bench_known_limits(l, machine, b->p.device.type == PC_CUDA ? b->p.device.index : -1);
    snprintf(l->simd, sizeof l->simd, "%s", pc_cpu_level());
    const bool products = wanted(b, BENCH_PRODUCT, BENCH_PRODUCT), streams = wanted(b, BENCH_HOST, BENCH_HOST);
    if (!(l->memory.rate > 0) && (products || wanted(b, BENCH_MEMORY, BENCH_LAUNCH) || (b->p.local && streams)))
        settle(&l->memory, measure_memory(b->p.device, &l->memory));
    if (!(l->math[BENCH_F32].rate > 0) && products && !measure_math(b))
        for (int i = 0; i < BENCH_TYPES; i++)
            settle(&l->math[i], false);
    if (b->p.local)
        l->host = l->memory;
    else if (streams)
        settle(&l->host, measure_memory(PC_DEVICE_CPU, &l->host));
}

static bool is_measured(const bench_limit *limit)
{
    return limit->origin && !strncmp(limit->origin, "measured", 8);
}

static void raise(bench_limit *limit, double rate)
{
    if (is_measured(limit) && rate > limit->rate)
        *limit = (bench_limit){rate, "measured: the best here"};
}

/* The limit that a row is measured against; NULL: it has one of its own. */
static bench_limit *limit_of(bench *b, const bench_row *row)
{
    bench_limits *l = &b->limits;
    return row->kind == BENCH_PRODUCT                                             ? &l->math[row->which]
           : row->kind == BENCH_MEMORY || (row->kind == BENCH_HOST && b->p.local) ? &l->memory
           : row->kind == BENCH_HOST                                              ? &l->host
                                                                                  : NULL;
}

void bench_raise_limits(bench *b)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < bench_row_count; i++) {
            bench_limit *limit = limit_of(b, &bench_rows[i]);
            bench_result *r = &b->results[i];
            if (!limit || !b->chosen[i] || *r->why)
                continue;
            if (pass == 0)
                raise(limit, bench_rate(r));
            else
                r->limit = *limit;
        }
    if (b->p.local)
        b->limits.host = b->limits.memory;
}
