/* sort.c: order along a dimension. Elements become keys whose order as whole numbers is theirs; with their places no two of
 * them are equal, so that any way of sorting is stable. 16-bit numbers come as float32. */
#include "cpu/level/kernels.h"
#include "ops/index.h"
#include "ops/sort_key.h"

enum { FEW = 16 /* that are sorted one by one */ };

typedef struct item {
    uint64_t key;
    int64_t place;
} item;

static inline bool before(const item *a, const item *b)
{
    return a->key < b->key || (a->key == b->key && a->place < b->place);
}

static void insert_all(item *list, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const item one = list[i];
        int64_t k = i;
        for (; k > 0 && before(&one, &list[k - 1]); k--)
            list[k] = list[k - 1];
        list[k] = one;
    }
}

/* list[first, middle) and list[middle, end) into one. */
static void merge(item *to, const item *list, int64_t first, int64_t middle, int64_t end)
{
    int64_t a = first, b = middle;
    for (int64_t i = first; i < end; i++)
        to[i] = b == end || (a < middle && before(&list[a], &list[b])) ? list[a++] : list[b++];
}

/* The sorted list, which is in `list` or in `room`, of as many. */
static const item *sort_all(item *list, item *room, int64_t n)
{
    for (int64_t i = 0; i < n; i += FEW)
        insert_all(list + i, PC__MIN(n - i, FEW));
    for (int64_t run = FEW; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run)
            merge(room, list, i, PC__MIN(i + run, n), PC__MIN(i + 2 * run, n));
        item *other = list;
        list = room;
        room = other;
    }
    return list;
}

/* The first `count` of them in front, in any order: a heap, the last of them on top. */
static void sink(item *heap, int64_t count, int64_t i)
{
    for (;;) {
        int64_t last = i;
        for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            if (before(&heap[last], &heap[child]))
                last = child;
        if (last == i)
            return;
        const item one = heap[i];
        heap[i] = heap[last];
        heap[last] = one;
        i = last;
    }
}

static void select_first(item *list, int64_t n, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;)
        sink(list, count, i);
    for (int64_t i = count; i < n; i++)
        if (before(&list[i], &list[0])) {
            list[0] = list[i];
            sink(list, count, 0);
        }
}

typedef struct sorting {
    const pc_call *call;
    int64_t n, count, inner;
    bool descending;
    item *room; /* of each thread, 2 n */
} sorting;

#define KEYS(name, T)                                                                                                  \
    static void keys_##name(item *to, const void *from, int64_t n, int64_t step)                                       \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = (item){pc__key_##name(x[i * step]), i};                                                            \
    }
KEYS(u8, uint8_t)
KEYS(i32, int32_t)
KEYS(i64, int64_t)
KEYS(f32, float)
KEYS(f64, double)
static void (*const keys[PC_DTYPE_COUNT])(item *to, const void *from, int64_t n, int64_t step) = {
    [PC_BOOL] = keys_u8, [PC_U8] = keys_u8,   [PC_I32] = keys_i32,
    [PC_I64] = keys_i64, [PC_F32] = keys_f32, [PC_F64] = keys_f64};

static void sort_list(void *context, int64_t l)
{
    const sorting *s = context;
    const pc_tensor *from = s->call->in[0];
    const size_t bytes = pc_dtype_size(from->dtype);
    const int64_t outer = l / s->inner, c = l % s->inner;
    const char *x = (const char *)pc__data(from) + (size_t)(outer * s->n * s->inner + c) * bytes;
    char *values = (char *)pc__data(s->call->out[0]) + (size_t)(outer * s->count * s->inner + c) * bytes;
    int64_t *places = (int64_t *)pc__data(s->call->out[1]) + outer * s->count * s->inner + c;
    item *list = s->room + pc__thread() * 2 * s->n;
    keys[from->dtype](list, x, s->n, s->inner);
    for (int64_t i = 0; s->descending && i < s->n; i++)
        list[i].key = ~list[i].key;
    const bool some = s->count < s->n / 8;
    if (some && s->count)
        select_first(list, s->n, s->count);
    const item *sorted = sort_all(list, list + s->n, some ? s->count : s->n);
    for (int64_t i = 0; i < s->count; i++) {
        places[i * s->inner] = sorted[i].place;
        memcpy(values + (size_t)(i * s->inner) * bytes, x + (size_t)(sorted[i].place * s->inner) * bytes, bytes);
    }
}

PC__KERNEL(sort)
{
    (void)stream;
    const pc__sort_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    sorting s = {.call = call,
                 .n = t->shape[a->dim],
                 .count = a->count,
                 .inner = pc__inner_of(t, a->dim),
                 .descending = a->descending};
    const int64_t lists = pc__outer_of(t, a->dim) * s.inner, elements = pc_tensor_count(t);
    if (elements == 0 || s.count == 0)
        return PC_OK;
    const int threads = pc__threads(elements * 256);
    s.room = pc__alloc_aligned((size_t)(threads * 2 * s.n) * sizeof *s.room, 64);
    if (!s.room)
        return PC_ERR_MEMORY;
    pc__parallel(threads, lists, sort_list, &s);
    pc__free(s.room);
    return PC_OK;
}

/* --- searching --- */

typedef struct searching {
    const pc_call *call;
    int64_t n, each, rows; /* each: values for one of `rows` sorted lists */
    bool right;
} searching;

/* How many of x, ascending, are not at least the value, or not above it: NaN is behind all. */
#define SEARCH(name, T)                                                                                                \
    static void search_##name(void *context, int64_t r)                                                                \
    {                                                                                                                  \
        const searching *s = context;                                                                                  \
        const T *x = (const T *)pc__data(s->call->in[0]) + r * s->n;                                                   \
        const T *values = (const T *)pc__data(s->call->in[1]) + r * s->each;                                           \
        int64_t *to = (int64_t *)pc__data(s->call->out[0]) + r * s->each;                                              \
        for (int64_t i = 0; i < s->each; i++) {                                                                        \
            int64_t low = 0, high = s->n;                                                                              \
            while (low < high) {                                                                                       \
                const int64_t middle = low + (high - low) / 2;                                                         \
                if (s->right ? x[middle] > values[i] : x[middle] >= values[i])                                         \
                    high = middle;                                                                                     \
                else                                                                                                   \
                    low = middle + 1;                                                                                  \
            }                                                                                                          \
            to[i] = low;                                                                                               \
        }                                                                                                              \
    }
SEARCH(u8, uint8_t)
SEARCH(i32, int32_t)
SEARCH(i64, int64_t)
SEARCH(f32, float)
SEARCH(f64, double)

PC__KERNEL(searchsorted)
{
    (void)stream;
    static const pc__part_fn searches[PC_DTYPE_COUNT] = {
        [PC_BOOL] = search_u8, [PC_U8] = search_u8,   [PC_I32] = search_i32,
        [PC_I64] = search_i64, [PC_F32] = search_f32, [PC_F64] = search_f64};
    const pc_tensor *sorted = call->in[0], *values = call->in[1];
    const int64_t count = pc_tensor_count(values);
    if (count == 0)
        return PC_OK;
    searching s = {.call = call,
                   .n = sorted->shape[sorted->ndim - 1],
                   .rows = pc__count(sorted->ndim - 1, sorted->shape),
                   .right = ((const pc__search_attributes *)call->attributes)->right};
    s.each = count / s.rows;
    pc__parallel(pc__threads(count * 128), s.rows, searches[sorted->dtype], &s);
    return PC_OK;
}
