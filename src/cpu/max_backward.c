/* max_backward.c: the gradient of maxima: that of a result goes to the element at its place, or in equal parts to all elements
 * of the whole that are the maximum. It moves memory, which every level's kernel does alike, of 16-bit numbers too but for
 * parts. */
#include "cpu/cpu.h"
#include "base/parallel.h"
#include "ops/reduce.h"
#include "tensor/call.h"

enum { PIECE = 16384 }; /* elements of a task */

typedef struct work {
    const pc__reduce_attributes *a;
    const void *g, *x, *most;
    const int64_t *place;
    void *dx;
    int64_t count, rows; /* elements in all, rows of `inner` in a task */
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
PLACES(uint16_t)
PLACES(uint32_t)
PLACES(uint64_t)

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
        const int64_t tasks = (a->outer * a->reduced + w.rows - 1) / w.rows;
        const size_t size = pc_dtype_size(call->in[0]->dtype);
        pc__parallel(threads, tasks, size == 2 ? places_uint16_t : size == 4 ? places_uint32_t : places_uint64_t, &w);
        return PC_OK;
    }
    const int64_t tasks = (w.count + PIECE - 1) / PIECE;
    w.x = pc__data(call->in[1]), w.most = pc__data(call->in[2]);
    pc__parallel(threads, tasks, wide ? count_double : count_float, &w);
    pc__parallel(threads, tasks, wide ? share_double : share_float, &w);
    return PC_OK;
}
