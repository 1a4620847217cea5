/* forward.c: the way into a module's forward pass. */
#include "nn/forward.h"

#include "nn/copies.h"
#include "nn/layers.h"
#include "ops/autocast.h"

/* Of the layers that cast their parameters; modules of other classes may use theirs as they are. */
static pc_status take_own(const pc_module *module)
{
    static const char *const names[] = {"weight", "bias"};
    if (!pc__layer(module, &pc__linear_class) && !pc__layer(module, &pc__conv2d_class))
        return PC_OK;
    for (int i = 0; i < 2; i++) {
        pc_tensor *t = pc__module_own(module, names[i]), *copy = NULL;
        if (!t || !pc__autocast_lacks(t))
            continue;
        PC__TRY(pc__copy_of(t, pc_autocast_dtype(), &copy));
        if (copy)
            PC__TRY(pc__autocast_known(t, copy));
    }
    return PC_OK;
}

/* What the layer, and those below, would cast and the optimiser has in 16 bits. */
static pc_status take_copies(const pc_module *module)
{
    PC__TRY(take_own(module));
    for (int i = 0; i < module->child_count; i++)
        PC__TRY(take_copies(module->children[i].object));
    return PC_OK;
}

pc_tensor *pc_forward(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc__watch_asked(module);
    if (pc__autocasting() && pc__copies_watched() && take_copies(module) != PC_OK)
        return NULL;
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
