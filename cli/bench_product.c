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

/* A side whose product takes some tens of milliseconds at half of the device's limit. Nothing is tried: the first call
 * of this size is then the first call of all. */
static int64_t choose(const bench *b, const bench_result *r)
{
    const bool gpu = b->p.device.type == PC_CUDA;
    const int64_t most = gpu ? 8192 : 2048;
    const double rate = r->limit.rate > 0 ? r->limit.rate / 2 : gpu ? 1e13 : 2e10;
    int64_t side = gpu ? 2048 : 256;
    while (side < most && 2 * pow(2 * (double)side, 3) / rate < 0.05)
        side *= 2;
    return side;
}

static bool run(bench *b, pc_dtype dtype, bench_result *r)
{
    const pc_device device = b->p.device;
    const int64_t side = choose(b, r);
    factors f;
    const double pair = 2.0 * (double)(side * side) * (double)pc_dtype_size(dtype);
    const double past = 4.0 * (double)bench_elements(device) * (device.type == PC_CUDA ? 0.5 : 1);
    const int sets = (int)fmin(fmax(ceil(past / pair), 1), SETS);
    snprintf(r->size, sizeof r->size, "%lld x %lld", (long long)side, (long long)side);
    r->flops = r->amount = 2.0 * pow((double)side, 3);
    r->bytes = 1.5 * pair;
    const bool fine = fill(&f, sets, side, dtype, device) && bench_time(device, false, multiply, &f, r);
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
