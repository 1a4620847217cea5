/* region.c: several element-by-element calls as one. A block of every value stays in the first-level cache: memory sees
 * inputs and outputs alone. */
#include "ops/region.h"

#include "cpu/level/each.h"
#include "cpu/level/halves.h"
#include "ops/number.h"

#include "base/parallel.h"

enum { BLOCK = 256, PIECE = 64 * BLOCK /* elements of a thread's share */ };

typedef struct work {
    const pc__region *region;
    const char *in[PC__REGION_IN];
    pc_dtype in_dtype[PC__REGION_IN];
    char *out[PC__REGION_STEPS]; /* of steps whose results are outputs; else NULL */
    int reads[PC__REGION_STEPS]; /* by later steps */
    bool kept[PC__REGION_STEPS]; /* results of 16 bits, before they are rounded */
} work;

typedef float row[BLOCK];

/* n numbers of a dtype as float32. */
static void load(float *to, const char *from, pc_dtype dtype, int64_t n)
{
    if (dtype == PC_F32)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        pc__load_halves(to, from, n, dtype == PC_F16);
}

static void repeat(float *to, const char *from, pc_dtype dtype, int64_t n)
{
    load(to, from, dtype, 1);
    for (int64_t k = 1; k < n; k++)
        to[k] = to[0];
}

/* Elements [i, i + n) of a broadcast input, run by run. */
static void spread(float *to, const char *from, pc_dtype dtype, const pc__region_in *in, int64_t i, int64_t n)
{
    const int64_t size = (int64_t)pc_dtype_size(dtype);
    for (int64_t k = 0, run; k < n; k += run) {
        const int64_t at = (i + k) / in->inner % in->n;
        if (in->inner == 1) {
            run = PC__MIN(in->n - at, n - k);
            load(to + k, from + at * size, dtype, run);
        } else {
            run = PC__MIN(in->inner - (i + k) % in->inner, n - k);
            repeat(to + k, from + at * size, dtype, run);
        }
    }
}

static const float *input(const work *w, int k, int64_t i, int64_t n, float *room)
{
    const pc__region_in *in = &w->region->in[k];
    const char *from = w->in[k] + (in->n ? 0 : i * (int64_t)pc_dtype_size(w->in_dtype[k]));
    if (!in->n && w->in_dtype[k] == PC_F32)
        return (const float *)(const void *)from;
    if (in->n)
        spread(room, from, w->in_dtype[k], in, i, n);
    else
        load(room, from, w->in_dtype[k], n);
    return room;
}

/* A step's 16-bit results: rounded where they are stored, or would have been; float32 again for who reads them. */
static void store_and_round(const work *w, int k, float *x, int64_t i, int64_t n)
{
    if (w->kept[k] && !w->out[k])
        return;
    pc_f16 halves[BLOCK];
    const bool is_f16 = w->region->step[k].dtype == PC_F16;
    char *to = w->out[k] ? w->out[k] + i * (int64_t)sizeof *halves : (char *)halves;
    pc__store_halves(to, x, n, is_f16);
    if (w->reads[k] && !w->kept[k])
        pc__load_halves(x, to, n, is_f16);
}

static bool has_number(const pc__region_step *s)
{
    return s->a == PC__REGION_NUMBER || s->b == PC__REGION_NUMBER;
}

/* A call's tensors are of one dtype, its number may be between those of 16 bits. */
static bool is_kept(const pc__region *r, int k)
{
    const pc__region_step *s = &r->step[k];
    return pc__is_kept(s->function) && (!has_number(s) || pc__number_fits((double)r->number[k], (pc_dtype)s->dtype));
}

/* An upper bound, min(a, b) with a number, of what a lower bound gave, and of nothing else: a clamp, which memory should
 * not wait for. */
static bool is_clamp(const work *w, int k)
{
    const pc__region *r = w->region;
    if (k + 1 >= r->steps || w->out[k] || w->reads[k] != 1)
        return false;
    const pc__region_step *low = &r->step[k], *high = low + 1;
    return low->function == PC__POINTWISE_maximum && high->function == PC__POINTWISE_minimum &&
           low->a != PC__REGION_NUMBER && low->b == PC__REGION_NUMBER && high->a == r->ins + k &&
           high->b == PC__REGION_NUMBER && low->dtype == PC_F32 && high->dtype == PC_F32 &&
           r->number[k] == r->number[k] && r->number[k + 1] == r->number[k + 1];
}

/* The bits of the two calls (ops/pointwise.def), for bounds that are numbers; NaN stays. */
static void clamp(float *to, const float *from, float low, float high, int64_t n)
{
    _Pragma("GCC ivdep") /* the result may be the input, in its place */
        for (int64_t i = 0; i < n; i++)
    {
        const float x = from[i], y = x <= low ? low : x;
        to[i] = y >= high ? high : y;
    }
}

/* numbers: those of the steps, repeated. */
static void block(const work *w, const row *numbers, int64_t i, int64_t n)
{
    _Alignas(64) row room[PC__REGION_VALUES];
    const float *value[PC__REGION_VALUES];
    const pc__region *r = w->region;
    for (int k = 0; k < r->ins; k++)
        value[k] = input(w, k, i, n, room[k]);
    for (int k = 0; k < r->steps; k++) {
        const bool clamps = is_clamp(w, k);
        const float *from = clamps ? value[r->step[k].a] : NULL;
        k += clamps;
        const pc__region_step *s = &r->step[k];
        const bool direct = w->out[k] && s->dtype == PC_F32;
        float *to = direct ? (float *)(void *)w->out[k] + i : room[r->ins + k];
        if (clamps)
            clamp(to, from, r->number[k - 1], r->number[k], n);
        else if (s->function == PC__REGION_CAST)
            memcpy(to, value[s->a], (size_t)n * sizeof *to);
        else
            pc__pointwise_f32[s->function](to, s->a == PC__REGION_NUMBER ? numbers[k] : value[s->a],
                                           s->b == PC__REGION_NUMBER ? numbers[k] : value[s->b], n,
                                           (double)r->number[k]);
        if (s->dtype != PC_F32)
            store_and_round(w, k, to, i, n);
        value[r->ins + k] = to;
    }
}

static void piece(void *context, int64_t part)
{
    const work *w = context;
    const pc__region *r = w->region;
    const int64_t end = PC__MIN((part + 1) * PIECE, r->count);
    _Alignas(64) row numbers[PC__REGION_STEPS];
    for (int k = 0; k < r->steps; k++)
        if (has_number(&r->step[k]))
            for (int i = 0; i < BLOCK; i++)
                numbers[k][i] = r->number[k];
    for (int64_t i = part * PIECE; i < end; i += BLOCK)
        block(w, numbers, i, PC__MIN(end - i, BLOCK));
}

PC__KERNEL(region)
{
    (void)stream;
    const pc__region *r = call->attributes;
    work w = {.region = r};
    for (int k = 0; k < r->ins; k++) {
        w.in[k] = pc__data(call->in[k]);
        w.in_dtype[k] = (pc_dtype)call->in[k]->dtype;
    }
    for (int k = 0; k < r->outs; k++)
        w.out[r->out[k] - r->ins] = pc__data(call->out[k]);
    for (int k = 0; k < r->steps; k++) {
        const int values[] = {r->step[k].a, r->step[k].b};
        w.kept[k] = is_kept(r, k);
        for (int j = 0; j < 2; j++)
            if (values[j] >= r->ins && values[j] != PC__REGION_NUMBER)
                w.reads[values[j] - r->ins]++;
    }
    pc__parallel(pc__threads(r->count * r->steps * 8), (r->count + PIECE - 1) / PIECE, piece, &w);
    return PC_OK;
}
