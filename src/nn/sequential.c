/* sequential.c: layers one after another. */
#include "nn/layers.h"

/* Say of an error that child i raised it: "layer 3 (Linear(...)): " in front, "layer 3.1 (...)" where the child has
 * said that of its own child 1. */
static void name_layer(const pc_module *module, int i)
{
    static const char inner[] = "layer ";
    const pc_module *child = pc_module_child(module, i);
    char inside[256] = "", words[384];
    if (child->type == &pc__sequential_class && strncmp(pc_error_last()->message, inner, strlen(inner)) == 0) {
        snprintf(words, sizeof words, "layer %d.", i);
        pc__error_before(words, strlen(inner));
        return;
    }
    if (child->type->describe)
        child->type->describe(child, inside, sizeof inside);
    snprintf(words, sizeof words, "layer %d (%s(%s)): ", i, child->type->name, inside);
    pc__error_before(words, 0);
}

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const int count = pc_module_child_count(module);
    const bool failed = pc_failed();
    pc_tensor *y = x;
    PC_SCOPE {
        for (int i = 0; i < count && y; i++) {
            y = pc_forward(pc_module_child(module, i), y);
            if (!y && !failed)
                name_layer(module, i);
        }
        y = pc_keep(y);
    }
    return y;
}

const pc_module_class pc__sequential_class = {"Sequential", forward, NULL, NULL};

/* Release the children from number `from` on that no module has; one that is listed twice comes once. */
static void release(pc_module *const *children, int from, int count)
{
    for (int i = from; i < count; i++) {
        bool again = false;
        for (int k = 0; k < i && !again; k++)
            again = children[k] == children[i];
        if (!again && children[i] && !children[i]->parent)
            pc_module_free(children[i]);
    }
}

pc_module *pc_sequential_new(pc_module *const *children, int count)
{
    if (count > 0)
        PC__NEED_OR(NULL, children);
    for (int i = 0; i < count; i++)
        if (!children[i] && !pc_failed())
            (void)pc__fail(PC_ERR_ARGUMENT, "pc_sequential: child %d is NULL", i);
    pc_module *module = count > 0 ? pc_module_new(&pc__sequential_class, 0)
                                  : pc__null(PC_ERR_ARGUMENT, "pc_sequential: there must be at least one module");
    int taken = 0;
    for (pc_status status = PC_OK; module && taken < count && status == PC_OK; taken++) {
        char name[16];
        snprintf(name, sizeof name, "%d", taken);
        status = pc_module_add_child(module, name, children[taken]);
    }
    if (module && module->child_count == count)
        return module;
    release(children, taken, count);
    pc_module_free(module);
    return NULL;
}
