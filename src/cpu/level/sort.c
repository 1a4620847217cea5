/* sort.c: order along a dimension. Elements become keys whose order as whole numbers is theirs; with their places no two of
 * them are equal, so that any way of sorting is stable. 16-bit numbers come as float32. */
#include "cpu/level/kernels.h"
#include "ops/index.h"
#include "ops/sort_key.h"

enum {
    FEW = 16,       /* that are sorted one by one */
    TOGETHER = 4096 /* elements of a task */
};

typedef struct item {
    uint64_t key;
    int64_t place;
} item;

static inline bool before(const item *a, const item *b)
{
    return a->key < b->key || (a->key == b->key && a->place < b->place);
}

#define ITEM item
#define BEFORE(a, b) before(a, b)
#define NAMED(name) name##_items
#include "cpu/level/sort_list.inc"
#undef ITEM
#undef BEFORE
#undef NAMED

/* A key of 32 bits, and its place below it. */
#define ITEM uint64_t
#define BEFORE(a, b) (*(a) < *(b))
#define NAMED(name) name##_packed
#include "cpu/level/sort_list.inc"

typedef struct sorting {
    const pc_call *call;
    int64_t n, count, inner, lists, together;
    bool descending;
    item *room; /* of each thread, 2 n */
} sorting;

#define KEYS(name, T)                                                                                                  \
    static void keys_##name(item *to, const void *from, int64_t n, int64_t step, uint64_t turned)                      \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = (item){pc__key_##name(x[i * step]) ^ turned, i};                                                   \
    }
#define PACKED(name, T)                                                                                                \
    static void packed_##name(uint64_t *to, const void *from, int64_t n, int64_t step, uint64_t turned)                \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = (pc__key_##name(x[i * step]) ^ turned) << 32 | (uint64_t)i;                                        \
    }
KEYS(u8, uint8_t)
KEYS(i32, int32_t)
KEYS(i64, int64_t)
KEYS(f32, float)
KEYS(f64, double)
PACKED(u8, uint8_t)
PACKED(i32, int32_t)
PACKED(f32, float)
static void (*const keys[PC_DTYPE_COUNT])(item *to, const void *from, int64_t n, int64_t step, uint64_t turned) = {
    [PC_BOOL] = keys_u8, [PC_U8] = keys_u8,   [PC_I32] = keys_i32,
    [PC_I64] = keys_i64, [PC_F32] = keys_f32, [PC_F64] = keys_f64};
static void (*const packed[PC_DTYPE_COUNT])(uint64_t *to, const void *from, int64_t n, int64_t step,
                                            uint64_t turned) = {
    [PC_BOOL] = packed_u8, [PC_U8] = packed_u8, [PC_I32] = packed_i32, [PC_F32] = packed_f32};

/* The places of a list's first elements. */
static void find_places(const sorting *s, const char *x, int64_t *places)
{
    const pc_dtype dtype = (pc_dtype)s->call->in[0]->dtype;
    const bool some = s->count < s->n / 8;
    const int64_t sorted = some ? s->count : s->n;
    item *list = s->room + pc__thread() * 2 * s->n;
    if (packed[dtype] && s->n <= UINT32_MAX) {
        uint64_t *keyed = (uint64_t *)(void *)list;
        packed[dtype](keyed, x, s->n, s->inner, s->descending ? UINT32_MAX : 0);
        if (some)
            select_first_packed(keyed, s->n, s->count);
        const uint64_t *in_order = sort_all_packed(keyed, keyed + s->n, sorted);
        for (int64_t i = 0; i < s->count; i++)
            places[i * s->inner] = (int64_t)(in_order[i] & UINT32_MAX);
        return;
    }
    keys[dtype](list, x, s->n, s->inner, s->descending ? UINT64_MAX : 0);
    if (some)
        select_first_items(list, s->n, s->count);
    const item *in_order = sort_all_items(list, list + s->n, sorted);
    for (int64_t i = 0; i < s->count; i++)
        places[i * s->inner] = in_order[i].place;
}

static void sort_list(const sorting *s, int64_t l)
{
    const pc_tensor *from = s->call->in[0];
    const size_t bytes = pc_dtype_size(from->dtype);
    const int64_t outer = l / s->inner, c = l % s->inner;
    const char *x = (const char *)pc__data(from) + (size_t)(outer * s->n * s->inner + c) * bytes;
    char *values = (char *)pc__data(s->call->out[0]) + (size_t)(outer * s->count * s->inner + c) * bytes;
    int64_t *places = (int64_t *)pc__data(s->call->out[1]) + outer * s->count * s->inner + c;
    find_places(s, x, places);
    for (int64_t i = 0; i < s->count; i++)
        memcpy(values + (size_t)(i * s->inner) * bytes, x + (size_t)(places[i * s->inner] * s->inner) * bytes, bytes);
}

static void some_lists(void *context, int64_t task)
{
    const sorting *s = context;
    for (int64_t l = task * s->together; l < PC__MIN((task + 1) * s->together, s->lists); l++)
        sort_list(s, l);
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
    const int64_t elements = pc_tensor_count(t);
    if (elements == 0 || s.count == 0)
        return PC_OK;
    if (s.n == 1) {
        memcpy(pc__data(call->out[0]), pc__data(t), (size_t)elements * pc_dtype_size(t->dtype));
        memset(pc__data(call->out[1]), 0, (size_t)elements * sizeof(int64_t));
        return PC_OK;
    }
    s.lists = pc__outer_of(t, a->dim) * s.inner;
    s.together = PC__MAX(TOGETHER / s.n, 1);
    const int threads = pc__threads(elements * 256);
    s.room = pc__alloc_aligned((size_t)(threads * 2 * s.n) * sizeof *s.room, 64);
    if (!s.room)
        return PC_ERR_MEMORY;
    pc__parallel(threads, (s.lists + s.together - 1) / s.together, some_lists, &s);
    pc__free(s.room);
    return PC_OK;
}

/* --- searching --- */

typedef struct searching {
    const pc_call *call;
    int64_t n, each, all; /* each: values for one sorted list, of `all` */
    bool right;
} searching;

/* How many of x, ascending, are not at least the value, or not above it: NaN is behind all. */
#define SEARCH(name, T)                                                                                                \
    static void search_##name(void *context, int64_t task)                                                             \
    {                                                                                                                  \
        const searching *s = context;                                                                                  \
        const T *all = pc__data(s->call->in[0]), *values = pc__data(s->call->in[1]);                                   \
        int64_t *to = pc__data(s->call->out[0]);                                                                       \
        for (int64_t i = task * TOGETHER; i < PC__MIN((task + 1) * TOGETHER, s->all); i++) {                           \
            const T *x = all + i / s->each * s->n;                                                                     \
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
                   .each = count / pc__count(sorted->ndim - 1, sorted->shape),
                   .all = count,
                   .right = ((const pc__search_attributes *)call->attributes)->right};
    pc__parallel(pc__threads(count * 128), (count + TOGETHER - 1) / TOGETHER, searches[sorted->dtype], &s);
    return PC_OK;
}
