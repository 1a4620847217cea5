/* plan.h: the inside of plans: a list of nodes, in the order of the program. Passes take nodes out and change them; the
 * last ones change their order (branches.c, aside.c). */
#ifndef PC__PLAN_H
#define PC__PLAN_H

#include "device/graph.h"
#include "device/plan.h"
#include "tensor/call.h"

/* What is done to a plan when its recording ends. */
typedef enum pc__pass {
    PC__PASS_NONE,
    PC__PASS_DUPLICATES,
    PC__PASS_DEAD,
    PC__PASS_SHADOWS,
    PC__PASS_EPILOGUES,
    PC__PASS_GELU,
    PC__PASS_NORMS,
    PC__PASS_COPIES,
    PC__PASS_PLACES,
    PC__PASS_REGIONS,
    PC__PASS_CASTS,
    PC__PASS_PITCHES,
    PC__PASS_LOSSES,
    PC__PASS_BRANCHES,
    PC__PASS_ASIDE,
    PC__PASS_SHARING, /* of memory by temporaries */
    PC__PASSES
} pc__pass;

typedef enum pc__node_kind { PC__NODE_CALL, PC__NODE_COPY, PC__NODE_FUNCTION, PC__NODE_WAIT } pc__node_kind;

/* What a call asks of the thread that does it. */
typedef struct pc__settings {
    pc_precision precision;
    pc_choice choice;
} pc__settings;

typedef struct pc__plan_node {
    pc__node_kind kind;
    pc_stream *stream;
    pc__work work;
    pc__pass gone; /* the pass that took it out */
    bool early;    /* it is in front of what was recorded before it */
    int aside;     /* the run of those beside the recording's own stream that it is part of, from 1; 0: none */
    int meets;     /* the last run that is done in front of it; 0: it waits for none */
    pc_call *call; /* calls: a copy, with the storages themselves */
    pc__kernel kernel;
    unsigned again;        /* calls: the work done again that it is part of (ops/again.h); 0: none */
    pc__settings settings; /* calls: of the thread that recorded them; built by others they would have other bits */
    pc__bytes to, from;    /* copies */
    size_t bytes;
    void (*function)(void *context); /* functions */
    void *context;
    pc_stream *other; /* waits: until the graph is built */
    uint32_t other_id;
    const char *note; /* how the backend does the call, once it is built; NULL: it does not say */
    int *number;      /* of each storage that it uses, as the plan's text names them: inputs, then outputs */
} pc__plan_node;

/* Where a storage's memory is. */
typedef enum pc__plan_place {
    PC__PLACE_BEFORE,    /* it was there when the recording began */
    PC__PLACE_KEPT,      /* made in the recording, and somebody holds it: memory of its own */
    PC__PLACE_SHADOW,    /* a parameter's shadow, which stays from launch to launch */
    PC__PLACE_TEMPORARY, /* nobody can see it but the recording: a part of the arena */
    PC__PLACE_NONE       /* nothing that is left uses it */
} pc__plan_place;

typedef struct pc__plan_storage {
    pc__storage *storage; /* temporaries: a reference */
    size_t bytes;
    pc__plan_place place;
    size_t offset;           /* in the arena */
    int writes;              /* nodes that write it */
    bool used;               /* by nodes that are left */
    const pc_stream *writer; /* while it is built: the last write, which has this ticket; NULL: there was none */
    uint64_t wrote;
} pc__plan_storage;

/* A parameter of an optimiser's step, with what the step writes beside it. */
typedef struct pc__plan_shadow {
    pc__storage *of;
    pc__shadow *shadow; /* of it; a hold on it */
    /* while a launch is made */
    unsigned found; /* the parameter's version in front of it */
    bool stale;     /* the shadow did not hold */
} pc__plan_shadow;

typedef struct pc__plan {
    pc__plan_node *node;
    int count, room;
    pc__plan_shadow *shadow;
    int shadows, shadow_room;
    pc__plan_storage *storage; /* by number; made when the recording ends */
    int storages;
    const pc__plan_node *at; /* while it is built: the node that the backend has */
} pc__plan;

/* How many storages the node uses, which they are, and whether it writes them. */
int pc__node_uses(const pc__plan_node *node);
pc__storage *pc__node_storage(const pc__plan_node *node, int i);
bool pc__node_writes(const pc__plan_node *node, int i);
/* Whether it writes all of storage i, and reads nothing of it. */
bool pc__node_renews(const pc__plan_node *node, int i);

/* The node becomes this call on these storages, inputs first, which `kernel` does. False: no memory, and nothing changed.
 */
bool pc__node_become(pc__plan_node *node, const pc_call *call, const int *number, pc__kernel kernel);

/* What the node has goes. */
void pc__plan_node_drop(pc__plan_node *node);

/* Operand i is this storage from now on. */
void pc__node_rename(const pc__plan *plan, pc__plan_node *node, int i, int number);

/* Set them in this thread; what was set before. */
pc__settings pc__settings_set(pc__settings wanted);

/* --- use.c: who uses which storage, in a plan as it was when this was made --- */

typedef struct pc__plan_uses {
    const pc__plan *plan;
    int *writer; /* by storage: the last node that writes it, or -1 */
    int *first;  /* by storage, and one more: where its readers begin in the list */
    int *reader; /* nodes, once for every operand that they read */
} pc__plan_uses;

/* False: PC_ERR_MEMORY. */
bool pc__plan_uses_make(pc__plan_uses *uses, const pc__plan *plan);
void pc__plan_uses_free(pc__plan_uses *uses);

/* --- passes --- */

/* Calls and copies whose results nobody can see. */
void pc__pass_dead(pc__plan *plan);

/* Calls that compute what is there. */
void pc__pass_duplicates(pc__plan *plan);

/* Casts of parameters to 16 bits whose results the optimiser's step can leave there for the next launch. */
void pc__pass_shadows(pc_graph *graph);

/* Activations, max-poolings and copies into C order that convolutions and linear layers do on the way out. */
void pc__pass_epilogues(pc__plan *plan, const pc__backend *backend);

/* gelu_tanh of 16 bits that linear layers do on the way out. */
void pc__pass_gelu(pc__plan *plan, const pc__backend *backend);

/* Normalisations that write 16 bits, and gradients of them that read 16 bits, where a cast did; that add what a residual
 * network adds around them; and, of channels, that do a ReLU and an addition on the way out. */
void pc__pass_norms(pc__plan *plan, const pc__backend *backend);

/* Copies of what an element-by-element call made, and nobody else reads: it makes the copy. */
void pc__pass_copies(pc__plan *plan);

/* Copies into memory that is there of what a call made, and nobody else reads: it writes that itself. */
void pc__pass_places(pc__plan *plan);

/* Element-by-element calls that become a step of a region (ops/region.h). */
void pc__pass_regions(pc__plan *plan, const pc__backend *backend);

/* Casts between float32 and 16 bits that can be done together become one call. */
void pc__pass_casts(pc__plan *plan, const pc__backend *backend);

/* Rows of temporaries on 16 bytes, for products. */
void pc__pass_pitches(pc__plan *plan, const pc__backend *backend);

/* Losses of many classes that make their gradient, too. */
void pc__pass_losses(pc__plan *plan, const pc__backend *backend);

/* Branches are begun as early as they can be, where the device has room for them. */
void pc__pass_branches(const pc_graph *graph);

/* Small work of the recording's own stream that only its end needs runs beside it. */
void pc__pass_aside(const pc_graph *graph);

/* --- halves.c --- */

/* Gradients of convolutions that have two gradients become two calls where these share nothing. */
void pc__plan_halve(pc__plan *plan);

/* --- shadow.c --- */

/* The storage's float32 in dtype, made where there is none, with room for so many zeros behind it, until it is let go as
 * often. NULL: there is one of another dtype, or no memory. */
pc__shadow *pc__shadow_hold(pc__storage *of, pc_dtype dtype, int64_t zeros, pc_stream *stream);
void pc__shadow_let_go(pc__storage *of);

/* --- memory.c --- */

/* What each storage is, and who uses it. */
pc_status pc__plan_survey(pc_graph *graph);

/* Give memory to all that has none yet, and note in the graph what its launches use. */
pc_status pc__plan_memory(pc_graph *graph);

/* --- plan_env.c: what PARACORD_PLAN says --- */

void pc__plan_print(const pc_graph *graph);
const char *pc__pass_name(pc__pass pass);
bool pc__plan_allows(pc__pass pass);

/* text.c: the plan as lines of text, for pc__free; NULL: PC_ERR_MEMORY. */
char *pc__plan_text(const pc_graph *graph);

#endif
