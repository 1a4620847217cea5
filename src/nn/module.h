/* module.h: a module's inside. */
#ifndef PC__MODULE_H
#define PC__MODULE_H

#include "tensor/tensor.h"

#include <paracord/group.h>
#include <paracord/module.h>

#define PC__NAME_MAX 48
#define PC__MODULE_DEPTH_MAX 1000 /* walks over modules are recursive */

/* Which part of a parameter a rank has (parallel/cut.h). Dimension `dim` of the whole one is `blocks` of one size, one behind
 * the other, and the ranks have equal parts of each. Where they cannot share it equally, there is one block, and the last ranks
 * have zeros behind its end. It lies in the data of the module that has the parameter. */
typedef struct pc__cut {
    pc_group *group;
    int dim, blocks;
    int64_t size; /* of that dimension, of the whole */
} pc__cut;

typedef struct pc__named {
    char name[PC__NAME_MAX];
    const char *full;   /* of a piece: the name of the parameter that it is of, with dots; NULL: it is `name` */
    void *object;       /* pc_tensor or pc_module */
    bool kept;          /* of buffers: in the state dict */
    const pc__cut *cut; /* of parameters: which part of a whole one it is; NULL: it is whole */
    bool apart;         /* of parameters: other ranks have other parts of it */
} pc__named;

typedef struct pc__hook {
    int number;
    pc_before_fn before;
    pc_after_fn after;
    void *context;
} pc__hook;

struct pc_module {
    const pc_module_class *type;
    atomic_bool training; /* pc_module_is_training says what holds for a thread */
    int height;           /* levels of modules below */
    pc_module *parent;    /* that has it as a child; NULL: none */
    atomic_int holders;   /* its owner, and who watches it (watch.h) */
    unsigned version;     /* counts changes of its parts, and its end */
    size_t bytes;         /* of data */
    pc__hook *hooks;
    int hook_count, hook_room, last_hook;
    bool is_part;                               /* other ranks have other parts of its parameters */
    bool hosted;                                /* what an optimiser keeps of them lies in pinned host memory */
    bool checkpointed;                          /* its forward passes keep nothing but inputs and results */
    pc__named *parameters, *children, *buffers; /* buffers: tensors that go where the module goes, and that no optimiser
                                                 * knows: running statistics of a normalisation */
    int parameter_count, parameter_room, child_count, child_room, buffer_count, buffer_room;
    max_align_t data[]; /* the class's own */
};

/* Call visit(context, full name, parameter) for every parameter below, in order; stops at the first failure, which may be
 * that a name is too long for pc_parameter (PC_ERR_ARGUMENT). */
typedef pc_status (*pc__visit_fn)(void *context, const char *name, pc__named *parameter);
pc_status pc__module_visit(pc_module *module, pc__visit_fn visit, void *context);

/* The same for what is in the state dict: behind each module's parameters its kept buffers. */
pc_status pc__module_visit_state(pc_module *module, pc__visit_fn visit, void *context);

/* Both for those who need no names ("" is given), and nothing but a visit fails. */
pc_status pc__module_each(pc_module *module, pc__visit_fn visit, void *context);
pc_status pc__module_each_state(pc_module *module, pc__visit_fn visit, void *context);

/* Each module of a network gets the mode of that in the same place of one of the same kind, or where that has none, of the one
 * that it would be in. */
void pc__module_set_modes(pc_module *module, const pc_module *like);

/* Until it is left, all modules are in evaluation mode for the calling thread: asking a network changes nothing of it
 * that others could see. */
typedef struct pc__evaluating {
    int open;
} pc__evaluating;
pc__evaluating pc__evaluate_enter(void);
void pc__evaluate_leave(pc__evaluating *scope);
bool pc__is_evaluating(void);
#define PC__EVALUATE                                                                                                   \
    for (pc__evaluating pc__evaluating_here __attribute__((cleanup(pc__evaluate_leave))) = pc__evaluate_enter();       \
         pc__evaluating_here.open; pc__evaluate_leave(&pc__evaluating_here))

/* forward.c: the class's own function; results may be anybody's. */
pc_status pc__forward_own(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count);

/* Whether somebody wants to see its forward pass by itself: it is not done as a part of another's. */
bool pc__forward_is_watched(const pc_module *module);

/* Until NULL is given, forward passes of the calling thread are told: in front of one, and behind it. */
typedef struct pc__observer {
    void *context;
    void (*enter)(void *context, const pc_module *module);
    void (*leave)(void *context, const pc_module *module, pc_tensor *const *out, int out_count);
} pc__observer;
PC__SHARED void pc__forward_observe(const pc__observer *observer);

/* hooks.c: those in front of a forward pass, and behind it. */
pc_status pc__hooks_before(pc_module *module, pc_tensor **in, int in_count);
pc_status pc__hooks_after(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count);

/* checkpoint.c: pc__forward_own of one result, which the backward pass runs again; or as it is, where nothing would be
 * kept for one. */
enum { PC__CHECKPOINT_INPUTS = 4 };
pc_status pc__forward_again(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out);

/* Release the modules from number `from` on that no module has; one that is listed twice comes once. */
void pc__modules_release(pc_module *const *modules, int from, int count);

/* Hand the tensor, of which the caller has an owner of its own, to the open scope; NULL: out of memory. */
pc_tensor *pc__hand_out(pc_tensor *owned);

/* Keep the memory of the module, and give it back: what is in it goes when it is freed. */
void pc__module_hold(pc_module *module);
void pc__module_let_go(pc_module *module);

/* watch.c: the calling thread's work depends on the module and all below it; it has set the module's mode. */
void pc__watch_asked(const pc_module *module);
void pc__watch_told(const pc_module *module);

/* The kept buffers of the module and all below, in order: how many, and number i, borrowed. */
int pc__module_buffer_count(const pc_module *module);
pc_tensor *pc__module_buffer_at(const pc_module *module, int i);

/* Register a buffer that no state dict has: one more owner of it. Names as of parameters. */
pc_status pc__module_add_buffer(pc_module *module, const char *name, pc_tensor *tensor);

/* The parameter or buffer registered under a name in this very module, or NULL. No error. */
PC__SHARED pc_tensor *pc__module_own(const pc_module *module, const char *name);

#endif
