/* forward.c: the way into a module's forward pass. */
#include "nn/forward.h"

pc_tensor *pc_forward(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc__watch_asked(module);
    return module->type->forward(module, x);
}

static _Thread_local pc__aside waiting;

pc__aside pc__aside_take(void)
{
    const pc__aside aside = waiting;
    waiting = (pc__aside){NULL, NULL};
    return aside;
}

pc_tensor *pc__forward_with(pc_module *module, pc_tensor *x, pc_status (*function)(void *context), void *context)
{
    waiting = (pc__aside){function, context};
    pc_tensor *y = pc_forward(module, x);
    pc__aside left = pc__aside_take();
    return y && pc__aside_do(&left) == PC_OK ? y : NULL;
}
