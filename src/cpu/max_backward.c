/* max_backward.c: the gradient of maxima: that of a result goes to the element at its place, or in equal parts to all elements
 * of the whole that are the maximum. It moves memory, which every level's kernel does alike, of 16-bit numbers too but for
 * parts. */
#include "cpu/cpu.h"
#include "base/parallel.h"
#include "ops/reduce.h"
#include "tensor/call.h"

enum {
    PIECE = 16384, /* elements of a task */
    SOME = 64,     /* columns of one, at least */
};

typedef struct work {
    const pc__reduce_attributes *a;
    const void *g, *x, *most;
    const int64_t *place;
    void *dx;
    int64_t count, rows;     /* elements in all, rows of `inner` in a task; */
    int64_t columns, outers; /* or of inner and of outer in one that has all that is reduced; columns 0: not so */
    _Atomic int64_t chosen;
} work;

/* Rows of [outer * reduced] rows of `inner`: zero, but for what was chosen among them. */
#define PLACES(T)                                                                                                      \
    static void places_##T(void *context, int64_t task)                                                                \
    {                                                                                                                  \
        const work *w = context;                                                                                       \
        const int64_t inner = w->a->inner, reduced = w->a->reduced, first = task * w->rows;                            \
        const int64_t end = PC__MIN(first + w->rows, w->a->outer * reduced);                                           \
        T *dx = w->dx;                                                                                                 \
        memset(dx + first * inner, 0, (size_t)((end - first) * inner) * sizeof *dx);                                   \
        for (int64_t outer = first / reduced; outer * reduced < end; outer++)                                          \
            for (int64_t i = outer * inner; i < (outer + 1) * inner; i++) {                                            \
                const int64_t row = outer * reduced + w->place[i];                                                     \
                if (row >= first && row < end)                                                                         \
                    dx[row * inner + i - outer * inner] = ((const T *)w->g)[i];                                        \
            }                                                                                                          \
    }
/* The same of some columns of all rows that are reduced together. */
#define COLUMNS(T)                                                                                                     \
    static void columns_##T(void *context, int64_t task)                                                               \
    {                                                                                                                  \
        const work *w = context;                                                                                       \
        const int64_t inner = w->a->inner, reduced = w->a->reduced, across = (inner + w->columns - 1) / w->columns;    \
        const int64_t from = task % across * w->columns, n = PC__MIN(w->columns, inner - from);                        \
        const int64_t first = task / across * w->outers, end = PC__MIN(first + w->outers, w->a->outer);                \
        if (n == inner)                                                                                                \
            memset((T *)w->dx + first * reduced * inner, 0, (size_t)((end - first) * reduced * inner) * sizeof(T));    \
        for (int64_t outer = first; outer < end; outer++) {                                                            \
            T *dx = (T *)w->dx + outer * reduced * inner + from;                                                       \
            const T *g = (const T *)w->g + outer * inner + from;                                                       \
            const int64_t *place = w->place + outer * inner + from;                                                    \
            for (int64_t r = 0; n < inner && r < reduced; r++)                                                         \
                memset(dx + r * inner, 0, (size_t)n * sizeof *dx);                                                     \
            for (int64_t i = 0; i < n; i++)                                                                            \
                dx[place[i] * inner + i] = g[i];                                                                       \
        }                                                                                                              \
    }
#define MOVES(T) PLACES(T) COLUMNS(T)
MOVES(uint16_t)
MOVES(uint32_t)
MOVES(uint64_t)

#define OF_DTYPE(T)                                                                                                    \
    static bool is_most_##T(const work *w, int64_t i)                                                                  \
    {                                                                                                                  \
        const T x = ((const T *)w->x)[i];                                                                              \
        return x == *(const T *)w->most || x != x; /* where there is a NaN, the maximum is one */                      \
    }                                                                                                                  \
    static void count_##T(void *context, int64_t task)                                                                 \
    {                                                                                                                  \
        work *w = context;                                                                                             \
        int64_t chosen = 0;                                                                                            \
        for (int64_t i = task * PIECE; i < PC__MIN((task + 1) * PIECE, w->count); i++)                                 \
            chosen += is_most_##T(w, i);                                                                               \
        w->chosen += chosen;                                                                                           \
    }                                                                                                                  \
    static void share_##T(void *context, int64_t task)                                                                 \
    {                                                                                                                  \
        const work *w = context;                                                                                       \
        const T part = *(const T *)w->g / (T)w->chosen;                                                                \
        for (int64_t i = task * PIECE; i < PC__MIN((task + 1) * PIECE, w->count); i++)                                 \
            ((T *)w->dx)[i] = is_most_##T(w, i) ? part : 0;                                                            \
    }
OF_DTYPE(float)
OF_DTYPE(double)

/* Whether tasks have all that is reduced together, and no place is looked at twice: not of long rows that are few. */
static bool cut_by_columns(work *w)
{
    const int64_t inner = w->a->inner, whole = PC__MAX(w->a->reduced * inner, 1);
    if (whole > PIECE && inner < SOME)
        return false;
    w->outers = PC__MAX(PIECE / whole, 1);
    w->columns = whole <= PIECE ? PC__MAX(inner, 1) : PC__MIN(PC__MAX(PIECE / w->a->reduced / SOME, 1) * SOME, inner);
    return true;
}

/* To the places of single results. */
static void move_all(work *w, int threads, size_t size)
{
    const pc__reduce_attributes *a = w->a;
    if (!cut_by_columns(w)) {
        pc__parallel(threads, (a->outer * a->reduced + w->rows - 1) / w->rows,
                     size == 2   ? places_uint16_t
                     : size == 4 ? places_uint32_t
                                 : places_uint64_t,
                     w);
        return;
    }
    const int64_t tasks = (a->outer + w->outers - 1) / w->outers * ((a->inner + w->columns - 1) / w->columns);
    pc__parallel(threads, tasks, size == 2 ? columns_uint16_t : size == 4 ? columns_uint32_t : columns_uint64_t, w);
}

pc_status pc__cpu_max_backward(const pc_call *call)
{
    const pc__reduce_attributes *a = call->attributes;
    const bool wide = call->in[0]->dtype == PC_F64;
    work w = {.a = a,
              .g = pc__data(call->in[0]),
              .dx = pc__data(call->out[0]),
              .count = a->outer * a->reduced * a->inner,
              .rows = PC__MAX(1, PIECE / PC__MAX(a->inner, 1))};
    const int threads = pc__threads(w.count * 8);
    if (w.count == 0)
        return PC_OK;
    if (!a->whole) {
        w.place = pc__data(call->in[1]);
        move_all(&w, threads, pc_dtype_size(call->in[0]->dtype));
        return PC_OK;
    }
    const int64_t tasks = (w.count + PIECE - 1) / PIECE;
    w.x = pc__data(call->in[1]), w.most = pc__data(call->in[2]);
    pc__parallel(threads, tasks, wide ? count_double : count_float, &w);
    pc__parallel(threads, tasks, wide ? share_double : share_float, &w);
    return PC_OK;
}
