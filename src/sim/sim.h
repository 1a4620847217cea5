/* sim.h: the pieces of the sim backend. One lock guards all queues; engines work without it. */
#ifndef PC__SIM_H
#define PC__SIM_H

#include "device/graph.h"
#include "tensor/freeze.h"

#include <paracord/sim.h>

typedef enum pc__sim_engine_kind {
    PC__SIM_COMPUTE,
    PC__SIM_COPY_IN,
    PC__SIM_COPY_OUT,
    PC__SIM_HOST,
    PC__SIM_LINK, /* collectives, which wait for other ranks */
    PC__SIM_ENGINES
} pc__sim_engine_kind;

typedef enum pc__sim_kind {
    PC__SIM_KERNEL,
    PC__SIM_COPY,
    PC__SIM_CALL,
    PC__SIM_EVENT,
    PC__SIM_WAIT,
    PC__SIM_GRAPH,
    PC__SIM_NOTHING,
    PC__SIM_SPARE /* the same, in the stream's own memory */
} pc__sim_kind;

typedef struct pc__sim_stream pc__sim_stream;
typedef struct pc__sim_graph pc__sim_graph;

typedef struct pc__sim_event {
    int references; /* the event, and marks that are queued */
    uint64_t mark;  /* the number of the one recorded last, which alone has the time */
    int64_t time;   /* 0: not passed, or skipped */
} pc__sim_event;

/* One piece of queued work. */
typedef struct pc__sim_command {
    struct pc__sim_command *next;
    pc__sim_kind kind;
    bool spoilt; /* by PC_SIM_CORRUPT */
    pc__work work;
    union {
        struct {
            pc__kernel run;
            pc_call *call; /* frozen; owned */
        } kernel;
        struct {
            void *to;
            const void *from;
            size_t bytes;
            pc__sim_engine_kind engine;
            bool between; /* two devices */
        } copy;
        struct {
            void (*function)(void *context);
            void *context;
        } call;
        struct {
            pc__sim_event *event;
            uint64_t number;
        } mark;
        struct {
            pc__sim_stream *other; /* a reference */
            uint64_t ticket;
        } wait;
        struct {
            pc__sim_graph *graph; /* a reference */
            struct pc__sim_command *at;
        } graph;
    };
} pc__sim_command;

struct pc__sim_graph {
    int references;
    pc__sim_command *first, **last;
};

/* Work from one ticket (0: none) to another was not done, or on what was not done. */
typedef struct pc__sim_failure {
    uint64_t from, to;
} pc__sim_failure;

#define PC__SIM_FAILURES 8

struct pc__sim_stream {
    int references; /* the stream's, and those of work that waits for it */
    pc_stream *stream;
    struct pc__sim_device *device;
    pc__sim_command *first, **last, spare;
    bool spare_queued;
    bool busy;               /* the first one is with an engine, in its line, or waits for another stream */
    uint64_t queued, done;   /* tickets */
    pc__sim_stream *waiting; /* streams whose first one waits for a ticket of this one */
    pc__sim_stream *next;    /* in such a list, or in an engine's line */
    int host_waiters;
    pthread_cond_t progress;
    pc__sim_failure failed[PC__SIM_FAILURES]; /* the newest first: others may still come to wait for older ones */
    bool failing;                             /* nobody has been told yet */
    pc_error error;
};

typedef struct pc__sim_engine {
    pc__sim_stream *ready; /* the line of streams whose first piece of work is for it */
    pthread_cond_t work;
} pc__sim_engine;

/* Of several groups some may wait while others go on. */
#define PC__SIM_LINKS 4

#define PC__SIM_KERNELS_MAX 16

/* A thread of an engine. */
typedef struct pc__sim_lane {
    struct pc__sim_device *device;
    pc__sim_engine_kind engine;
    int number;
    pthread_t thread;
} pc__sim_lane;

typedef struct pc__sim_block {
    struct pc__sim_block *next;
    size_t offset, bytes;
    bool used;
} pc__sim_block;

typedef struct pc__sim_device {
    int index;
    bool open, lost, stop;
    bool has_links;
    bool forked; /* open in the process that this one is a child of: no thread of it is here */
    pc_error loss;
    pc__sim_engine engine[PC__SIM_ENGINES];
    pc__sim_lane lane[PC__SIM_KERNELS_MAX + 3 + PC__SIM_LINKS];
    int lanes;
    char *memory;          /* the addresses that storages hold: no access */
    size_t bytes;          /* and, that far behind, where engines find the contents */
    size_t reached;        /* of these: what lies further on was never allocated, and cannot be touched */
    pc__sim_block *blocks; /* in the order of addresses */
    pc_sim_fault fault;
    int64_t fault_in; /* operations until it happens; 0: none */
    int64_t injections;
    pthread_cond_t injected; /* what hangs goes on */
    int64_t operations;
} pc__sim_device;

typedef struct pc__sim_state {
    pthread_mutex_t lock;
    pc_sim_options options;
    char why_none[384]; /* why there are no devices, when there are none */
    pc__sim_device device[PC__DEVICES_MAX];
} pc__sim_state;
extern pc__sim_state pc__sim;

/* options.c: what the environment says is read once, before anything else. */
void pc__sim_start(void);

/* heap.c: device memory. The lock is held. */
pc_status pc__sim_heap_open(pc__sim_device *device);
void pc__sim_heap_close(pc__sim_device *device);
void *pc__sim_heap_take(pc__sim_device *device, size_t bytes);
void pc__sim_heap_give(pc__sim_device *device, void *block);
void pc__sim_heap_info(const pc__sim_device *device, pc__memory_info *info);

/* Where engines find what `address` of a device, or of the host, points to. */
static inline void *pc__sim_inside(pc_device device, const void *address)
{
    return (char *)(uintptr_t)address + (device.type == PC_SIM ? pc__sim.device[device.index].bytes : 0);
}

/* engine.c: threads. The lock is held; it is let go while they are joined. */
pc_status pc__sim_device_open(pc__sim_device *device);
void pc__sim_device_close(pc__sim_device *device);
pc_status pc__sim_links_open(pc__sim_device *device); /* before the first collective */

/* queue.c: the lock is held. */
void pc__sim_push(pc__sim_stream *s, pc__sim_command *command);
void pc__sim_advance(pc__sim_stream *s); /* go on as far as is possible without an engine */
pc__sim_command *pc__sim_at_hand(const pc__sim_stream *s);
void pc__sim_work_done(pc__sim_stream *s, const pc_error *error); /* the work at hand is; error: PC_OK, or why not */
void pc__sim_let_go(pc__sim_stream *s);
void pc__sim_command_free(pc__sim_command *command);

/* fault.c: the next operation of the device: PC_OK, or what goes wrong with it. The lock is held, but not while the
 * operation hangs. */
pc_status pc__sim_fault_now(pc__sim_device *device, pc__sim_command *command);
void pc__sim_spoil(const pc__sim_command *command); /* what it has written */

/* graph.c */
pc_status pc__sim_graph_begin(pc_graph *graph, pc_stream *stream);
pc_status pc__sim_graph_end(pc_graph *graph, pc_stream *stream);
pc_status pc__sim_graph_update(pc_graph *graph, pc_graph *newer);
void pc__sim_graph_close(pc_graph *graph);
void pc__sim_graph_add(pc__sim_graph *graph, pc__sim_command *command);
void pc__sim_graph_drop(pc__sim_graph *graph); /* the lock is held */

#endif
