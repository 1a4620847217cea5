/* index.c: rows by an index along a dimension. Tensors are seen as [outer, along, row]. */
#include "cpu/level/halves.h"
#include "cpu/level/pick.h"
#include "cpu/level/places.h"

enum { TOGETHER = 256, PIECE = 1 << 16 /* bytes, of rows and their numbers, that a thread claims */ };

/* --- picking --- */

typedef struct picking {
    const char *from;
    char *to;
    const int64_t *index;
    int64_t n, count, all, together; /* rows of `from` and of `to` in one of outer; of `to` in all; that are a piece */
    size_t row;                      /* bytes */
    int64_t run, run_end;            /* of the index: neighbours, each one behind the one before */
} picking;

/* Where `row` is known when this is compiled, or not. */
static inline __attribute__((always_inline)) void pick_rows(char *to, const char *from, const int64_t *index, int64_t n,
                                                            const size_t row)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * row, from + (size_t)index[i] * row, row);
}

/* Rows of some more bytes than `half`: two moves that lie over each other. */
static inline __attribute__((always_inline)) void pick_halves(char *to, const char *from, const int64_t *index,
                                                              int64_t n, size_t row, const size_t half)
{
    const size_t last = row - half;
    for (int64_t i = 0; i < n; i++, to += row) {
        const char *at = from + (size_t)index[i] * row;
        memcpy(to, at, half);
        memcpy(to + last, at + last, half);
    }
}

void pc__pick_rows(char *to, const char *from, const int64_t *index, int64_t n, size_t row)
{
    if (row > 8 && row <= 64 && row != 16) {
        row < 16    ? pick_halves(to, from, index, n, row, 8)
        : row <= 32 ? pick_halves(to, from, index, n, row, 16)
                    : pick_halves(to, from, index, n, row, 32);
        return;
    }
    switch (row) {
    case 1:
        pick_rows(to, from, index, n, 1);
        break;
    case 2:
        pick_rows(to, from, index, n, 2);
        break;
    case 4:
        pick_rows(to, from, index, n, 4);
        break;
    case 8:
        pick_rows(to, from, index, n, 8);
        break;
    case 16:
        pick_rows(to, from, index, n, 16);
        break;
    default:
        pick_rows(to, from, index, n, row);
    }
}

/* Rows [first, first + n) of those that are picked from a block. Neighbours that stay neighbours are one copy. */
static void pick_some(const picking *p, char *to, const char *from, int64_t first, int64_t n)
{
    const int64_t end = first + n, run = PC__MIN(PC__MAX(p->run, first), end),
                  last = PC__MIN(PC__MAX(p->run_end, run), end);
    pc__pick_rows(to, from, p->index + first, run - first, p->row);
    if (last > run)
        memcpy(to + (size_t)(run - first) * p->row, from + (size_t)p->index[run] * p->row,
               (size_t)(last - run) * p->row);
    pc__pick_rows(to + (size_t)(last - first) * p->row, from, p->index + last, end - last, p->row);
}

static void pick_piece(void *context, int64_t piece)
{
    const picking *p = context;
    const int64_t end = PC__MIN((piece + 1) * p->together, p->all);
    for (int64_t r = piece * p->together, n; r < end; r += n) {
        const int64_t outer = r / p->count, first = r - outer * p->count;
        n = PC__MIN(p->count - first, end - r);
        pick_some(p, p->to + (size_t)(outer * p->count + first) * p->row, p->from + (size_t)(outer * p->n) * p->row,
                  first, n);
    }
}

/* The longest run of neighbours, where it is a copy worth a call and there are several blocks: a padded row is most of one. */
static void find_run(picking *p)
{
    enum { BLOCKS = 4, BYTES = 64 };
    for (int64_t i = 0, begin = 0; p->all >= BLOCKS * p->count && i < p->count; i++) {
        if (i > begin && p->index[i] != p->index[i - 1] + 1)
            begin = i;
        if (i + 1 - begin > p->run_end - p->run)
            p->run = begin, p->run_end = i + 1;
    }
    if ((p->run_end - p->run) * (int64_t)p->row < BYTES)
        p->run = p->run_end = 0;
}

PC__KERNEL(index_select)
{
    (void)stream;
    const pc__index_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const size_t row = (size_t)pc__inner_of(t, a->dim) * pc_dtype_size(t->dtype);
    PC__TRY(pc__places_check(call->op->name, call->in[1], t->shape[a->dim]));
    if (pc_tensor_count(call->out[0]) == 0)
        return PC_OK;
    picking p = {.from = pc__data(t),
                 .to = pc__data(call->out[0]),
                 .index = pc__data(call->in[1]),
                 .n = t->shape[a->dim],
                 .count = call->in[1]->shape[0],
                 .row = row};
    p.all = pc__outer_of(t, a->dim) * p.count;
    p.together = PC__MAX(PIECE / (int64_t)(row + sizeof *p.index), 1);
    find_run(&p);
    pc__parallel(pc__threads(p.all * (int64_t)(4 * row + 16)), (p.all + p.together - 1) / p.together, pick_piece, &p);
    return PC_OK;
}

PC__KERNEL(embedding)
{
    return PC__K(op_index_select)(stream, call);
}

/* --- putting --- */

/* to[i] += from[i] */
typedef void (*add_fn)(void *to, const void *from, int64_t n);
#define ADD(T, plus)                                                                                                   \
    static void add_##T(void *to, const void *from, int64_t n)                                                         \
    {                                                                                                                  \
        T *restrict y = to;                                                                                            \
        const T *restrict x = from;                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = (T)(y[i] plus x[i]);                                                                                \
    }
ADD(bool, |)
ADD(uint8_t, +)
ADD(uint32_t, +)
ADD(uint64_t, +)
ADD(float, +)
ADD(double, +)
static const add_fn adds[PC_DTYPE_COUNT] = {
    [PC_BOOL] = add_bool, [PC_U8] = add_uint8_t, [PC_I32] = add_uint32_t, [PC_I64] = add_uint64_t,
    [PC_F16] = add_float, [PC_BF16] = add_float, [PC_F32] = add_float,    [PC_F64] = add_double};

/* to = base, or 0, with the rows of `from` added or put at their places. */
typedef struct putting {
    const char *base, *from; /* base NULL: zeros */
    char *to;
    pc__by_place by;
    add_fn add; /* NULL: the last one is copied */
    int64_t n, count, all, together, row;
    size_t bytes; /* of an element */
    bool half, is_f16;
} putting;

static void start_row(const putting *p, char *to, const char *base, int64_t n)
{
    if (base)
        memcpy(to, base, (size_t)n * p->bytes);
    else
        memset(to, 0, (size_t)n * p->bytes);
}

/* Up to TOGETHER 16-bit numbers of a row, in float32: rounded once. */
static void sum_halves(const putting *p, char *to, const char *base, const char *from, const int64_t *entry,
                       int64_t entries, int64_t n)
{
    float sum[TOGETHER], one[TOGETHER];
    if (base)
        pc__load_halves(sum, base, n, p->is_f16);
    else
        memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t k = 0; k < entries; k++) {
        pc__load_halves(one, from + (size_t)(entry[k] * p->row) * p->bytes, n, p->is_f16);
        add_float(sum, one, n);
    }
    pc__store_halves(to, sum, n, p->is_f16);
}

/* Of a place that something comes to. */
static void put_row(const putting *p, int64_t outer, int64_t place, pc__entries of)
{
    const size_t at = (size_t)((outer * p->n + place) * p->row) * p->bytes;
    const int64_t *entry = of.at, entries = of.count;
    const char *from = p->from + (size_t)(outer * p->count * p->row) * p->bytes, *base = p->base ? p->base + at : NULL;
    char *to = p->to + at;
    if (!p->add) {
        start_row(p, to, from + (size_t)(entry[entries - 1] * p->row) * p->bytes, p->row);
        return;
    }
    for (int64_t c = 0; c < p->row; c += TOGETHER) {
        const int64_t n = PC__MIN(p->row - c, TOGETHER);
        const size_t skip = (size_t)c * p->bytes;
        if (p->half) {
            sum_halves(p, to + skip, base ? base + skip : NULL, from + skip, entry, entries, n);
            continue;
        }
        start_row(p, to + skip, base ? base + skip : NULL, n);
        for (int64_t k = 0; k < entries; k++)
            p->add(to + skip, from + (size_t)(entry[k] * p->row) * p->bytes + skip, n);
    }
}

/* Places that nothing comes to are a run. */
static void put_piece(void *context, int64_t piece)
{
    const putting *p = context;
    const int64_t end = PC__MIN((piece + 1) * p->together, p->all);
    for (int64_t r = piece * p->together, many; r < end; r += many) {
        const int64_t outer = r / p->n, place = r - outer * p->n, behind = place + PC__MIN(end - r, p->n - place);
        const size_t at = (size_t)(r * p->row) * p->bytes;
        pc__entries entries = {NULL, 0};
        const int64_t next = pc__next_place(&p->by, place, behind, &entries);
        many = next - place;
        if (many > 0)
            start_row(p, p->to + at, p->base ? p->base + at : NULL, many * p->row);
        if (next < behind)
            put_row(p, outer, next, entries), many++;
    }
}

/* --- adding single numbers --- */

/* Each thread adds those of some of outer, as they come: the order that places have, too. */
typedef struct adding {
    const putting *p;
    const int64_t *index;
    int64_t skip, outer, together;
    float *rooms; /* of 16 bits: sums of one of outer, for each thread */
} adding;

#define ADD_NUMBERS(name, T)                                                                                           \
    static void add_##name##_numbers(const adding *a, const T *restrict from, T *restrict to)                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < a->p->count; i++)                                                                      \
            if (a->index[i] != a->skip)                                                                                \
                to[a->index[i]] += from[i];                                                                            \
    }
ADD_NUMBERS(f32, float)
ADD_NUMBERS(f64, double)

static void add_half_numbers(const adding *a, const char *base, const char *from, char *to)
{
    const putting *p = a->p;
    float *sums = a->rooms + pc__thread() * p->n, some[TOGETHER];
    if (base)
        pc__load_halves(sums, base, p->n, p->is_f16);
    else
        memset(sums, 0, (size_t)p->n * sizeof *sums);
    for (int64_t first = 0; first < p->count; first += TOGETHER) {
        const int64_t n = PC__MIN(p->count - first, TOGETHER);
        pc__load_halves(some, from + 2 * first, n, p->is_f16);
        for (int64_t i = 0; i < n; i++)
            if (a->index[first + i] != a->skip)
                sums[a->index[first + i]] += some[i];
    }
    pc__store_halves(to, sums, p->n, p->is_f16);
}

static void add_some(void *context, int64_t piece)
{
    const adding *a = context;
    const putting *p = a->p;
    const size_t row = (size_t)p->n * p->bytes;
    const int64_t begin = piece * a->together;
    for (int64_t o = begin; o < PC__MIN(begin + a->together, a->outer); o++) {
        const char *from = p->from + (size_t)(o * p->count) * p->bytes;
        const char *base = p->base ? p->base + (size_t)o * row : NULL;
        char *to = p->to + (size_t)o * row;
        if (p->half) {
            add_half_numbers(a, base, from, to);
            continue;
        }
        start_row(p, to, base, p->n);
        if (p->bytes == 4)
            add_f32_numbers(a, (const float *)(const void *)from, (float *)(void *)to);
        else
            add_f64_numbers(a, (const double *)(const void *)from, (double *)(void *)to);
    }
}

/* Pieces of whole lists; 0: entries are few beside the places, which threads had better share. */
static int64_t pieces_of(const putting *p, int64_t together, int threads)
{
    enum { PART = 8 };
    const int64_t pieces = (p->all / p->n + together - 1) / together;
    return p->count >= p->n / PART || (!p->half && pieces >= threads) ? pieces : 0;
}

static pc_status add_numbers(const putting *p, const int64_t *index, int64_t skip, int64_t pieces, int64_t together,
                             int threads)
{
    adding a = {.p = p, .index = index, .skip = skip, .outer = p->all / p->n, .together = together};
    threads = (int)PC__MIN(threads, pieces);
    if (p->half && !(a.rooms = pc__alloc((size_t)(threads * p->n) * sizeof *a.rooms)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, pieces, add_some, &a);
    pc__free(a.rooms);
    return PC_OK;
}

static pc_status put(const pc_call *call, const pc_tensor *base, const pc_tensor *from, add_fn add)
{
    const pc__index_attributes *a = call->attributes;
    const pc_tensor *to = call->out[0], *index = call->in[1];
    putting p = {.base = base ? pc__data(base) : NULL,
                 .from = pc__data(from),
                 .to = pc__data(to),
                 .add = add,
                 .n = to->shape[a->dim],
                 .count = index->shape[0],
                 .row = pc__inner_of(to, a->dim),
                 .bytes = pc_dtype_size(to->dtype),
                 .half = pc__is_half(to->dtype),
                 .is_f16 = to->dtype == PC_F16};
    PC__TRY(pc__places_check(call->op->name, index, p.n));
    if (pc_tensor_count(to) == 0)
        return PC_OK;
    p.all = pc__outer_of(to, a->dim) * p.n;
    const int64_t work = (pc_tensor_count(to) + pc_tensor_count(from)) * (int64_t)(4 * p.bytes) + p.all * 16;
    const int threads = pc__threads(work);
    if (p.row == 1 && (add == add_float || add == add_double)) {
        const int64_t together = PC__MAX(PIECE / ((p.n + p.count) * (int64_t)p.bytes), 1);
        const int64_t pieces = pieces_of(&p, together, threads);
        if (pieces)
            return add_numbers(&p, pc__data(index), a->skip, pieces, together, threads);
    }
    PC__TRY(pc__sort_places(&p.by, pc__data(index), p.count, p.n, a->skip));
    p.together = PC__MAX(PIECE / (p.row * (int64_t)p.bytes), 1);
    pc__parallel(threads, (p.all + p.together - 1) / p.together, put_piece, &p);
    pc__free(p.by.start);
    return PC_OK;
}

PC__KERNEL(index_select_backward)
{
    (void)stream;
    return put(call, NULL, call->in[0], adds[call->out[0]->dtype]);
}

PC__KERNEL(index_add)
{
    (void)stream;
    return put(call, call->in[0], call->in[2], adds[call->out[0]->dtype]);
}

PC__KERNEL(index_copy)
{
    (void)stream;
    return put(call, call->in[0], call->in[2], NULL);
}
