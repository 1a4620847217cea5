/* stress_slots.h: what a random program works on: its dice, its tensors in slots, and the streams it goes on on. What
 * it keeps alive on a device is bounded, so that any device with MEMORY bytes does. */
#ifndef PC_TEST_STRESS_SLOTS_H
#define PC_TEST_STRESS_SLOTS_H

#include "support.h"

#include <paracord.h>
#include <stdio.h>

enum { DEVICES = 4, STREAMS = 8, SLOTS = 64, STORES = 4096, GRAPHS = 6, HOST = -1 };
#define BUDGET ((size_t)3 << 20) /* bytes that a program keeps alive on a device, beside its graphs */
#define MEMORY ((int64_t)12 << 20)

/* A storage that slots and graphs share, for the budget and so as not to copy a tensor onto itself. */
typedef struct store {
    int references, device;
    size_t bytes;
} store;

typedef struct slot {
    pc_tensor *tensor;
    int device, store;
} slot;

typedef struct graph {
    pc_graph *graph;
    int store[2];
} graph;

typedef struct program {
    uint64_t seed, thrown, placed;
    int64_t ops;
    bool many;     /* four devices and their streams; otherwise everything is on one stream of `home` */
    bool borrowed; /* the streams are other programs' too: none is freed, and none recorded */
    pc_device home;
    pc_stream *stream[DEVICES][STREAMS];
    slot slot[SLOTS];
    store store[STORES];
    size_t alive[DEVICES];
    graph graph[GRAPHS];
    uint64_t digest;
    char wrong[1200];
} program;

static inline uint32_t draw(uint64_t seed, uint64_t stream, uint64_t *counter)
{
    uint32_t word[4];
    pc_philox(seed, stream, (*counter)++, word);
    return word[0];
}

static inline int dice(program *p, int sides)
{
    return (int)(draw(p->seed, 1, &p->thrown) % (uint32_t)sides);
}

static inline bool must(program *p, bool fine, const char *what)
{
    if (!fine && !p->wrong[0])
        snprintf(p->wrong, sizeof p->wrong, "seed %llu, die %llu: %s: %s (%s)", (unsigned long long)p->seed,
                 (unsigned long long)p->thrown, what, pc_error_last()->message, pc_error_last()->cause);
    return fine;
}

static inline pc_device device_of(const program *p, int device)
{
    return device == HOST ? PC_DEVICE_CPU : p->many ? (pc_device){PC_SIM, (int16_t)device} : p->home;
}

/* Go on on other streams; now and then with one of them freed and made anew. */
static inline void place(program *p)
{
    for (int d = 0; p->many && d < DEVICES; d++) {
        uint32_t die = draw(p->seed, 2, &p->placed);
        pc_stream **s = &p->stream[d][die % STREAMS];
        if (!p->borrowed && (die >> 8) % 2048 == 0) {
            pc_stream_free(*s);
            *s = pc_stream(device_of(p, d), .priority = (int)(die >> 20) % 3 - 1);
            must(p, *s != NULL, "a new stream");
        }
        must(p, pc_stream_set_current(device_of(p, d), (die >> 4) % 16 ? *s : NULL) == PC_OK, "another stream");
    }
}

static inline void drop_store(program *p, int i)
{
    store *s = &p->store[i];
    if (--s->references == 0 && s->device != HOST)
        p->alive[s->device] -= s->bytes;
}

static inline void empty_slot(program *p, slot *s)
{
    if (!s->tensor)
        return;
    pc_tensor_free(s->tensor);
    drop_store(p, s->store);
    s->tensor = NULL;
}

static inline void free_graph(program *p, graph *g)
{
    if (!g->graph)
        return;
    pc_graph_free(g->graph);
    g->graph = NULL;
    for (int i = 0; i < 2; i++)
        drop_store(p, g->store[i]);
}

static inline void make_room(program *p, int device, size_t bytes)
{
    for (int i = 0; device != HOST && i < SLOTS && p->alive[device] + bytes > BUDGET; i++)
        if (p->slot[i].device == device)
            empty_slot(p, &p->slot[i]);
    for (int i = 0; device != HOST && i < GRAPHS && p->alive[device] + bytes > BUDGET; i++)
        free_graph(p, &p->graph[i]);
}

static inline int new_store(program *p, int device, size_t bytes)
{
    int i = 0;
    while (p->store[i].references)
        i++;
    p->store[i] = (store){0, device, bytes};
    if (device != HOST)
        p->alive[device] += bytes;
    return i;
}

static inline size_t bytes_of(const pc_tensor *t)
{
    return (size_t)pc_tensor_count(t) * pc_dtype_size(pc_tensor_dtype(t));
}

/* The tensor takes the place of another one, which is freed whatever still goes on with it. `like`: a view of it. */
static inline slot *put(program *p, pc_tensor *t, int device, const slot *like)
{
    if (!must(p, t != NULL, "an op"))
        return NULL;
    int number = like ? like->store : new_store(p, device, bytes_of(t));
    p->store[number].references++;
    slot *s = &p->slot[dice(p, SLOTS)];
    empty_slot(p, s);
    *s = (slot){t, device, number};
    make_room(p, device, 0);
    return s->tensor ? s : NULL;
}

static inline pc_shape any_shape(program *p)
{
    static const int sizes[][2] = {{1, 7}, {8, 16}, {16, 8}, {32, 32}, {3, 50}, {64, 64}, {40, 100}, {256, 300}};
    int i = dice(p, 100) ? dice(p, 7) : 7;
    return PC_SHAPE(sizes[i][0], sizes[i][1]);
}

static inline slot *new_tensor(program *p, int device)
{
    pc_shape shape = any_shape(p);
    pc_dtype dtype = dice(p, 4) ? PC_F32 : PC_I64;
    pc_device dev = device_of(p, device);
    make_room(p, device, (size_t)(shape.dim[0] * shape.dim[1]) * 8);
    switch (dice(p, 4)) {
    case 0:
        return put(p, pc_full(shape, dice(p, 100), dtype, dev), device, NULL);
    case 1:
        return put(p, pc_randn(shape, PC_F32, dev), device, NULL);
    case 2: {
        int64_t data[256 * 300];
        for (int i = 0; i < shape.dim[0] * shape.dim[1]; i++)
            data[i] = (i * 37 + shape.dim[1]) % 101;
        return put(p, pc_from_data(data, shape, PC_I64, dev), device, NULL);
    }
    default: {
        pc_tensor *pinned =
            device == HOST ? pc_empty_pinned(shape, dtype, device_of(p, 0)) : pc_ones(shape, dtype, dev);
        if (device == HOST)
            must(p, pc_fill(pinned, 3) == PC_OK, "fill");
        return put(p, pinned, device, NULL);
    }
    }
}

static inline slot *any(program *p)
{
    slot *s = &p->slot[dice(p, SLOTS)];
    while (!s->tensor)
        s = new_tensor(p, dice(p, 8) ? dice(p, DEVICES) : HOST);
    return s;
}

static inline bool alike(const slot *a, const slot *b)
{
    return pc_tensor_dtype(a->tensor) == pc_tensor_dtype(b->tensor) &&
           pc_tensor_size(a->tensor, 0) == pc_tensor_size(b->tensor, 0) &&
           pc_tensor_size(a->tensor, 1) == pc_tensor_size(b->tensor, 1);
}

/* Another tensor of the same shape and dtype with memory of its own, on the same device or (`there`) on another. */
static inline slot *partner(program *p, const slot *a, bool there)
{
    int from = dice(p, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        slot *b = &p->slot[(from + i) % SLOTS];
        if (b->tensor && b->store != a->store && (b->device != a->device) == there && alike(a, b))
            return b;
    }
    return NULL;
}

static inline bool is_float(const slot *s)
{
    return pc_tensor_dtype(s->tensor) == PC_F32;
}

#endif
