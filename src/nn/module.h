/* module.h: a module's inside. */
#ifndef PC__MODULE_H
#define PC__MODULE_H

#include "tensor/tensor.h"

#include <paracord/nn.h>

#define PC__NAME_MAX 48

typedef struct pc__named {
    char name[PC__NAME_MAX];
    void *object; /* pc_tensor or pc_module */
} pc__named;

struct pc_module {
    const pc_module_class *type;
    bool training, owned; /* owned: by the module that has it as a child */
    pc__named *parameters, *children;
    int parameter_count, parameter_room, child_count, child_room;
    max_align_t data[]; /* the class's own */
};

/* Call visit(context, full name, parameter) for every parameter below, in order; stops at the first failure. */
typedef pc_status (*pc__visit_fn)(void *context, const char *name, pc__named *parameter);
pc_status pc__module_visit(pc_module *module, pc__visit_fn visit, void *context);

/* The tensor registered under a name in this very module, or NULL. No error. */
pc_tensor *pc__module_own(const pc_module *module, const char *name);

#endif
