/* scatter.c: single elements by indices along a dimension. Tensors are seen as [outer, along, inner]. 16-bit numbers come as
 * float32, but for what is only picked. */
#include "cpu/level/places.h"

enum { COLUMNS = 1024 /* of inner, that a thread claims */ };

typedef struct scattering {
    const pc_call *call;
    const int64_t *index;
    const char *from;
    char *to;
    int64_t n, count, inner, parts; /* n: places along dim of what is picked from, or added to; parts of one of outer */
    int64_t next_outer, next, next_inner; /* elements from one to the next in what is picked from */
    int64_t outers, together;             /* of outer in all, and in a task, which has whole ones where `parts` is 1 */
} scattering;

typedef void (*element_fn)(const scattering *s, int64_t outer, int64_t first, int64_t end);

/* Element [i][c] of the index, and of what goes with it; and the place it names. */
#define EACH_ENTRY(T, from_type, what)                                                                                 \
    const from_type *from = (const from_type *)(const void *)s->from;                                                  \
    T *to = (T *)(void *)s->to;                                                                                        \
    for (int64_t i = 0; i < s->count; i++)                                                                             \
        for (int64_t c = first; c < end; c++) {                                                                        \
            const int64_t entry = (outer * s->count + i) * s->inner + c;                                               \
            const int64_t place = (outer * s->n + s->index[entry]) * s->inner + c;                                     \
            what;                                                                                                      \
        }
/* Where nothing is beside an element, entries are a run. */
#define GATHER(T)                                                                                                      \
    static void gather_##T(const scattering *s, int64_t outer, int64_t first, int64_t end)                             \
    {                                                                                                                  \
        if (s->inner == 1) {                                                                                           \
            const T *restrict row = (const T *)(const void *)s->from + outer * s->next_outer;                          \
            const int64_t *restrict index = s->index + outer * s->count;                                               \
            T *restrict out = (T *)(void *)s->to + outer * s->count;                                                   \
            if (s->next == 1)                                                                                          \
                for (int64_t i = 0; i < s->count; i++)                                                                 \
                    out[i] = row[index[i]];                                                                            \
            else                                                                                                       \
                for (int64_t i = 0; i < s->count; i++)                                                                 \
                    out[i] = row[index[i] * s->next];                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        const T *from = (const T *)(const void *)s->from + outer * s->next_outer;                                      \
        for (int64_t i = 0, at = outer * s->count * s->inner; i < s->count; i++, at += s->inner)                       \
            for (int64_t c = first; c < end; c++)                                                                      \
                ((T *)(void *)s->to)[at + c] = from[s->index[at + c] * s->next + c * s->next_inner];                   \
    }
GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)
#define SCATTER(T, plus)                                                                                               \
    static void scatter_##T(const scattering *s, int64_t outer, int64_t first, int64_t end)                            \
    {                                                                                                                  \
        EACH_ENTRY(T, T, to[place] = (T)(to[place] plus from[entry]))                                                  \
    }
SCATTER(bool, |)
SCATTER(uint8_t, +)
SCATTER(uint32_t, +)
SCATTER(uint64_t, +)
SCATTER(float, +)
SCATTER(double, +)

typedef struct running {
    const scattering *s;
    element_fn element;
} running;

static void run_part(void *context, int64_t part)
{
    const running *r = context;
    const scattering *s = r->s;
    const int64_t first = part % s->parts * COLUMNS, outer = part / s->parts * s->together;
    for (int64_t i = outer; i < PC__MIN(outer + s->together, s->outers); i++)
        r->element(s, i, first, PC__MIN(first + COLUMNS, s->inner));
}

/* `whole` is [outer, n, inner], the index [outer, count, inner]. */
static pc_status run(scattering *s, const pc_tensor *whole, element_fn element)
{
    const pc__index_attributes *a = s->call->attributes;
    const pc_tensor *index = s->call->in[1];
    s->index = pc__data(index);
    s->n = whole->shape[a->dim];
    s->count = index->shape[a->dim];
    s->inner = pc__inner_of(index, a->dim);
    s->parts = (s->inner + COLUMNS - 1) / COLUMNS;
    s->outers = pc__outer_of(index, a->dim);
    s->together = s->parts == 1 ? PC__MAX(COLUMNS / PC__MAX(s->count * s->inner, 1), 1) : 1;
    pc__gather_strides(whole, (int)a->dim, &s->next_outer, &s->next, &s->next_inner);
    PC__TRY(pc__places_check(s->call->op->name, index, s->n));
    const int64_t entries = pc_tensor_count(index);
    if (entries)
        pc__parallel(pc__threads(entries * 32), (s->outers + s->together - 1) / s->together * s->parts, run_part,
                     &(running){s, element});
    return PC_OK;
}

PC__KERNEL(gather)
{
    (void)stream;
    const pc_tensor *from = call->in[0];
    const size_t bytes = pc_dtype_size(from->dtype);
    scattering s = {.call = call, .from = pc__data(from), .to = pc__data(call->out[0])};
    return run(&s, from,
               bytes == 1   ? gather_uint8_t
               : bytes == 2 ? gather_uint16_t
               : bytes == 4 ? gather_uint32_t
                            : gather_uint64_t);
}

static pc_status scatter(const pc_call *call, const pc_tensor *base, const pc_tensor *from)
{
    static const element_fn scatters[PC_DTYPE_COUNT] = {
        [PC_BOOL] = scatter_bool,    [PC_U8] = scatter_uint8_t, [PC_I32] = scatter_uint32_t,
        [PC_I64] = scatter_uint64_t, [PC_F32] = scatter_float,  [PC_F64] = scatter_double};
    pc_tensor *to = call->out[0];
    const size_t bytes = (size_t)pc_tensor_count(to) * pc_dtype_size(to->dtype);
    scattering s = {.call = call, .from = pc__data(from), .to = pc__data(to)};
    if (base && bytes)
        memcpy(s.to, pc__data(base), bytes);
    else if (bytes)
        memset(s.to, 0, bytes);
    return run(&s, to, scatters[to->dtype]);
}

PC__KERNEL(gather_backward)
{
    (void)stream;
    return scatter(call, NULL, call->in[0]);
}

PC__KERNEL(scatter_add)
{
    (void)stream;
    return scatter(call, call->in[0], call->in[2]);
}

PC__KERNEL(one_hot)
{
    (void)stream;
    const int64_t classes = ((const pc__index_attributes *)call->attributes)->size;
    const int64_t *index = pc__data(call->in[0]), n = pc_tensor_count(call->in[0]);
    int64_t *to = pc__data(call->out[0]);
    PC__TRY(pc__places_check(call->op->name, call->in[0], classes));
    if (n)
        memset(to, 0, (size_t)(n * classes) * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        to[i * classes + index[i]] = 1;
    return PC_OK;
}
