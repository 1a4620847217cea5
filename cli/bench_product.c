/* bench_product.c: products of square matrices in each type, and how large they are so that a row stays short. */
#include "bench.h"

#include <math.h>

#include <paracord/ops.h>

enum { SETS = 8 };

typedef struct factors {
    pc_tensor *a[SETS], *b[SETS], *c;
    int sets, at;
} factors;

/* The next pair each time, so that no cache has it. */
static bool multiply(void *context)
{
    factors *f = context;
    pc_tensor_free(f->c);
    f->c = pc_matmul(f->a[f->at], f->b[f->at]);
    f->at = (f->at + 1) % f->sets;
    return f->c != NULL;
}

static pc_tensor *numbers(int64_t side, pc_dtype dtype, pc_device device)
{
    pc_tensor *wide = pc_randn(PC_SHAPE(side, side), PC_F32, device);
    pc_tensor *t = wide ? pc_cast(wide, dtype) : NULL;
    pc_tensor_free(wide);
    return t;
}

static bool fill(factors *f, int sets, int64_t side, pc_dtype dtype, pc_device device)
{
    *f = (factors){.sets = sets};
    for (int i = 0; i < sets; i++) {
        f->a[i] = numbers(side, dtype, device);
        f->b[i] = numbers(side, dtype, device);
        if (!f->a[i] || !f->b[i])
            return false;
    }
    return true;
}

static void drop(factors *f)
{
    for (int i = 0; i < f->sets; i++) {
        pc_tensor_free(f->a[i]);
        pc_tensor_free(f->b[i]);
    }
    pc_tensor_free(f->c);
}

/* A side whose product takes some tens of milliseconds: small ones say how fast this device is. */
static bool choose(bench *b, pc_dtype dtype, bench_result *r, int64_t *side)
{
    const pc_device device = b->p.device;
    const int64_t small = device.type == PC_CUDA ? 2048 : 256, most = device.type == PC_CUDA ? 8192 : 2048;
    factors f;
    double second = HUGE_VAL;
    bool fine = fill(&f, 1, small, dtype, device);
    double start = cli_now();
    fine = fine && multiply(&f) && pc_device_synchronize(device) == PC_OK;
    r->first = cli_now() - start;
    for (int i = 0; i < 5 && fine; i++) {
        start = cli_now();
        fine = multiply(&f) && pc_device_synchronize(device) == PC_OK;
        second = fmin(second, cli_now() - start);
    }
    drop(&f);
    for (*side = small; *side < most && second * 8 < 0.05; *side *= 2)
        second *= 8;
    return fine;
}

static bool run(bench *b, pc_dtype dtype, bench_result *r)
{
    const pc_device device = b->p.device;
    int64_t side;
    factors f;
    if (!choose(b, dtype, r, &side))
        return false;
    const double first = r->first, pair = 2.0 * (double)(side * side) * (double)pc_dtype_size(dtype);
    const double past = 4.0 * (double)bench_elements(device) * (device.type == PC_CUDA ? 0.5 : 1);
    const int sets = (int)fmin(fmax(ceil(past / pair), 1), SETS);
    snprintf(r->size, sizeof r->size, "%lld x %lld", (long long)side, (long long)side);
    r->flops = r->amount = 2.0 * pow((double)side, 3);
    r->bytes = 1.5 * pair;
    const bool fine = fill(&f, sets, side, dtype, device) && bench_time(device, false, multiply, &f, r);
    r->first = first; /* of all calls, the first one of this type */
    drop(&f);
    return fine;
}

bool bench_product(bench *b, const bench_row *row, bench_result *r)
{
    static const pc_dtype dtypes[] = {[BENCH_F64] = PC_F64,
                                      [BENCH_F32] = PC_F32,
                                      [BENCH_TF32] = PC_F32,
                                      [BENCH_F16] = PC_F16,
                                      [BENCH_BF16] = PC_BF16};
    if (row->which == BENCH_TF32 && b->p.device.type != PC_CUDA)
        return bench_absent(r, "only GPUs multiply in TF32");
    r->limit = b->limits.math[row->which];
    const pc_precision wanted = row->which == BENCH_TF32 ? PC_PRECISION_TF32 : PC_PRECISION_F32;
    const pc_precision before = pc_matmul_precision_set(wanted);
    const bool fine = run(b, dtypes[row->which], r);
    (void)pc_matmul_precision_set(before);
    return fine;
}
