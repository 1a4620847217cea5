/* forward.h: a forward pass with other work queued on the way. */
#ifndef PC__FORWARD_H
#define PC__FORWARD_H

#include "nn/module.h"

typedef struct pc__aside {
    pc_status (*function)(void *context); /* NULL: nothing to do */
    void *context;
} pc__aside;

/* pc_forward. `function` is called once on the way, in front of the last Linear layer of a Sequential; else behind all.
 * NULL and the error where it fails. */
pc_tensor *pc__forward_with(pc_module *module, pc_tensor *x, pc_status (*function)(void *context), void *context);

/* For the module that is run: what there is to do is now its own. */
pc__aside pc__aside_take(void);

/* Once. */
static inline pc_status pc__aside_do(pc__aside *aside)
{
    pc_status (*function)(void *context) = aside->function;
    aside->function = NULL;
    return function ? function(aside->context) : PC_OK;
}

#endif
