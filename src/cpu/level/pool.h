/* pool.h: what pooling forward and backward share: windows, a call's memory, rows of 16-bit numbers as float32. */
#ifndef PC__CPU_POOL_H
#define PC__CPU_POOL_H

#include "cpu/level/compute.h"
#include "cpu/level/halves.h"
#include "cpu/level/real.h"
#include "base/parallel.h"

/* The part of a window that lies inside the picture, along one axis, and how many places it has with the padding. */
typedef struct range {
    int64_t from, to, counted;
} range;

static inline range inside(int64_t out, int64_t stride, int64_t kernel, int64_t padding, int64_t size)
{
    const int64_t first = out * stride - padding;
    return (range){PC__MAX(first, 0), PC__MIN(first + kernel, size), PC__MIN(first + kernel, size + padding) - first};
}

static inline real window_scale(const pc__pool *s, range h, range w)
{
    const int64_t area = s->exclude_padding ? (h.to - h.from) * (w.to - w.from) : h.counted * w.counted;
    return 1 / (real)PC__MAX(area, 1);
}

/* pool_keys.c: maxima of 16-bit numbers without their places. */
#define pc__max_pool2d_keys PC__K(max_pool2d_keys)
pc_status pc__max_pool2d_keys(const pc__pool *s, const void *x, void *y);

/* One call's shapes and memory, for its tasks. */
typedef struct pooling {
    const pc__pool *s;
    const void *from;
    void *to;
    int32_t *argmax;
    int64_t together; /* rows of y in a task */
    real *rooms;      /* of each thread */
    int64_t size;     /* reals of one */
} pooling;

/* n elements from `at` on as reals: where they are, or in `room`. */
static inline const real *take(const pooling *p, int64_t at, int64_t n, real *room)
{
    if (!p->s->half)
        return (const real *)p->from + at;
    pc__load_halves((float *)(void *)room, (const pc_f16 *)p->from + at, n, p->s->is_f16);
    return room;
}

static inline void give(const pooling *p, int64_t at, int64_t n, const real *room)
{
    pc__store_halves((pc_f16 *)p->to + at, (const float *)(const void *)room, n, p->s->is_f16);
}

/* `tasks` tasks, each with room for `size` reals. */
static inline pc_status pool_run(pooling *p, int64_t size, int64_t tasks, pc__part_fn task)
{
    enum { ON_STACK = 1 << 14 };
    const pc__pool *s = p->s;
    const int64_t places = s->n * pc__pool_oh(s) * pc__pool_ow(s) * s->kh * s->kw * s->c;
    const int64_t slow = PC__MAX(W / PC__MAX(s->c, 1), 1); /* few channels fill no vectors */
    const int threads = pc__threads((s->half ? 24 : 8) * slow * places);
    _Alignas(64) real few[ON_STACK / sizeof(real)];
    p->rooms = few, p->size = round_up(size, W);
    if (s->n == 0 || s->c == 0)
        return PC_OK;
    const bool is_few = threads * p->size <= (int64_t)PC__COUNT(few);
    if (!is_few && !(p->rooms = pc__alloc_aligned((size_t)(threads * p->size) * sizeof(real), 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, tasks, task, p);
    if (!is_few)
        pc__free(p->rooms);
    return PC_OK;
}

#endif
