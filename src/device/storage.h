/* storage.h: blocks of memory, counted references to them, and the record of who uses them (device/order.h). */
#ifndef PC__STORAGE_H
#define PC__STORAGE_H

#include "device/backend.h"

typedef struct pc__use {
    uint32_t stream; /* id */
    bool write;
    uint64_t ticket;
} pc__use;

/* Who uses a storage: its owner's last write and read, and other streams' uses since. */
typedef struct pc__users {
    atomic_uint owner; /* id of a stream; 0: nobody yet */
    atomic_int others;
    atomic_uint_fast64_t wrote, read;
    uint64_t before; /* what `wrote` was in front of the owner's last writing work; UINT64_MAX: not known */
    uint64_t born;   /* the owner's ticket when the block left the cache: what came before is nobody's business */
    pc__use *other;
    int room;
} pc__users;

/* A storage's float32 in 16 bits, which recordings keep beside it (plan/shadow.c). */
typedef struct pc__shadow {
    struct pc__storage *storage; /* a reference */
    int dtype;
    int graphs;                  /* that hold it: it goes with the last one */
    atomic_int_fast64_t version; /* of the numbers that it was made of; -1: of none */
} pc__shadow;

/* One block, with the work that may still be under way on it. The struct travels with its memory through the cache, so
 * that nobody gets a block before its last uses. */
typedef struct pc__storage {
    atomic_int references;
    pc_device device;
    void *data;
    size_t bytes;        /* asked for */
    size_t capacity;     /* there; 0 for a part of another storage's memory */
    atomic_bool planned; /* made in a recording, which gives it memory when it ends: data is NULL until then */
    bool elsewhere;      /* planned, and never gets memory: ranks have it in parts (parallel/zero_whole.c) */
    atomic_uint version; /* counts writes in place, for the tape's check */
    pc__shadow *shadow;  /* NULL: no graph keeps one */
    pc__users order;
    atomic_uint failure;              /* of the work that was to make its contents (failure.h); 0: none that is known */
    const char *maker;                /* what it was made for: an op's or call's name */
    struct pc__storage *next, **link; /* in the cache, or among those in use */
    bool pinned; /* host memory that devices of `pinned_for` copy directly: the CPU's, or, where `device` is one of
                  * those, memory of that device as far as calls are concerned */
    int16_t pinned_for;
    atomic_bool exposed;                    /* the program holds a pointer to it, and may use it any time */
    atomic_int mapped;                      /* pc_map without pc_unmap */
    bool foreign;                           /* memory that belongs to the program */
    void (*foreign_release)(void *context); /* may be NULL */
    void *foreign_context;
} pc__storage;

/* A block of at least `bytes` bytes for use on `stream`, from the cache where one fits; `maker` (static storage) says
 * what for. Where the stream is recorded, it gets its memory when the recording ends. NULL: PC_ERR_MEMORY with the figures
 * of the device. One reference, the caller's. */
pc__storage *pc__storage_new(pc_stream *stream, size_t bytes, const char *maker) PC_MUST_USE;

/* The same with memory at once, in a recording too. */
pc__storage *pc__storage_block(pc_stream *stream, size_t bytes, const char *maker) PC_MUST_USE;

/* The same where work is being queued on the stream, whose lock is held: only what is there without waiting. */
PC__FOR_LEVELS pc__storage *pc__storage_at_once(pc_stream *stream, size_t bytes, const char *maker) PC_MUST_USE;

/* Give a planned storage memory of its own now: somebody outside of its recording is to use it. Work of `stream` may use
 * it next. No stream's lock is held: the cache may queue a wait. */
pc_status pc__storage_materialize(pc__storage *storage, pc_stream *stream);

/* The same where it is planned. */
static inline pc_status pc__storage_ensure(pc__storage *storage, pc_stream *stream)
{
    return atomic_load_explicit(&storage->planned, memory_order_acquire) ? pc__storage_materialize(storage, stream)
                                                                         : PC_OK;
}

/* A storage of so many bytes that are not there: who uses it gets PC_ERR_STATE, `maker` says why. NULL: PC_ERR_MEMORY. */
pc__storage *pc__storage_elsewhere(pc_device device, size_t bytes, const char *maker) PC_MUST_USE;

/* Host memory that devices of a type copy directly; nothing queued uses it. */
pc__storage *pc__storage_pinned(pc_device_type type, size_t bytes, const char *maker) PC_MUST_USE;

/* The same as memory of the device: its kernels go there over the bus, and the host does not. What is too large for the
 * device's own memory and is used once a step or so. On the CPU it is the CPU's memory as ever. */
pc__storage *pc__storage_hosted(pc_device device, size_t bytes, const char *maker) PC_MUST_USE;

static inline bool pc__is_hosted(const pc__storage *storage)
{
    return storage->pinned && storage->device.type != PC_CPU;
}

/* Where its bytes lie. */
static inline pc_device pc__storage_place(const pc__storage *storage)
{
    return storage->pinned ? PC_DEVICE_CPU : storage->device;
}

/* The program has a pointer to it: what it writes there no version counts. */
static inline bool pc__storage_is_open(const pc__storage *storage)
{
    return atomic_load_explicit(&storage->exposed, memory_order_relaxed) || atomic_load(&storage->mapped);
}

/* Wrap memory of the program; release(context) is called (when not NULL) once nothing uses it. */
pc__storage *pc__storage_wrap(pc_device device, void *data, size_t bytes, void (*release)(void *),
                              void *context) PC_MUST_USE;

void pc__storage_retain(pc__storage *storage);
PC__FOR_LEVELS void pc__storage_drop(pc__storage *storage);

#endif
