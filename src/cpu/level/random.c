/* random.c: drawing tensors. Element i is word i % 4 of block i / 4 (ops/random.h), whatever the number of threads. */
#include "ops/random.h"

#include "cpu/level/kernels.h"
#include "tensor/half.h"

/* Blocks of four numbers come in pieces, so that claiming one costs little beside drawing it. */
#define BLOCKS 1024

typedef struct drawing {
    const pc__random_attributes *a;
    const pc_call *call;
    uint64_t stream;
    int64_t n; /* numbers */
    void (*draw)(const struct drawing *d, int64_t block);
} drawing;

static void draw_piece(void *context, int64_t piece)
{
    const drawing *d = context;
    int64_t end = PC__MIN((piece + 1) * BLOCKS, (d->n + 3) / 4);
    for (int64_t block = piece * BLOCKS; block < end; block++)
        d->draw(d, block);
}

static pc_status draw_all(const pc_call *call, int cost, void (*draw)(const drawing *d, int64_t block))
{
    const pc__random_attributes *a = call->attributes;
    uint64_t base = call->n_in == 2 ? *(const uint64_t *)pc__data(call->in[1]) : 0;
    drawing d = {a, call, a->stream + 4 * base, pc_tensor_count(call->out[0]), draw};
    pc__parallel(pc__threads(d.n * cost), ((d.n + 3) / 4 + BLOCKS - 1) / BLOCKS, draw_piece, &d);
    return PC_OK;
}

static void put(pc_tensor *t, int64_t i, double value)
{
    switch ((pc_dtype)t->dtype) {
    case PC_F16:
        ((pc_f16 *)pc__data(t))[i] = pc__f16_of((float)value);
        break;
    case PC_BF16:
        ((pc_bf16 *)pc__data(t))[i] = pc__bf16_of((float)value);
        break;
    case PC_F32:
        ((float *)pc__data(t))[i] = (float)value;
        break;
    default:
        ((double *)pc__data(t))[i] = value;
    }
}

/* In [0, 1). Of the word's 24 bits 16-bit numbers take as many as they hold: rounded, the largest would be 1. */
static double unit(const pc_tensor *t, uint32_t word)
{
    uint32_t left_out = t->dtype == PC_F16 ? 1u << 21 : t->dtype == PC_BF16 ? 1u << 24 : 1;
    return (double)pc_uniform_f32(word & ~(left_out - 1));
}

static void draw_uniform(const drawing *d, int64_t block)
{
    uint32_t w[4];
    pc_philox(d->a->seed, d->stream, (uint64_t)block, w);
    for (int64_t k = 0; k < 4 && block * 4 + k < d->n; k++)
        put(d->call->out[0], block * 4 + k, d->a->low + (d->a->high - d->a->low) * unit(d->call->out[0], w[k]));
}

PC__KERNEL(uniform)
{
    (void)stream;
    return draw_all(call, 30, draw_uniform);
}

static void draw_normal(const drawing *d, int64_t block)
{
    uint32_t w[4];
    float z[4];
    pc_philox(d->a->seed, d->stream, (uint64_t)block, w);
    pc_normal_pair(w[0], w[1], z);
    pc_normal_pair(w[2], w[3], z + 2);
    for (int64_t k = 0; k < 4 && block * 4 + k < d->n; k++)
        put(d->call->out[0], block * 4 + k, d->a->low + d->a->high * (double)z[k]);
}

PC__KERNEL(normal)
{
    (void)stream;
    return draw_all(call, 100, draw_normal);
}

static void draw_dropout(const drawing *d, int64_t block)
{
    const pc_tensor *x = d->call->in[0];
    const void *from = pc__data(x);
    bool *kept = pc__data(d->call->out[1]);
    double scale = d->a->low < 1 ? 1 / (1 - d->a->low) : 0;
    uint32_t w[4];
    pc_philox(d->a->seed, d->stream, (uint64_t)block, w);
    for (int64_t k = 0; k < 4 && block * 4 + k < d->n; k++) {
        int64_t i = block * 4 + k;
        kept[i] = (double)pc_uniform_f32(w[k]) >= d->a->low;
        double value = x->dtype == PC_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
        put(d->call->out[0], i, kept[i] ? value * scale : 0);
    }
}

PC__KERNEL(dropout)
{
    (void)stream;
    return draw_all(call, 30, draw_dropout);
}
