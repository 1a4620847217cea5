/* sequential.c: layers one after another. What a convolution or linear layer can do on the way out is part of its call, as plans
 * would make it (plan/epilogues.c), so that a step has the same bits whether it is recorded or not. */
#include "nn/layers.h"

/* The window of a max-pooling that a convolution can do itself: square, not overlapping, not padded. 0: not such. */
static int fusable_pool(const pc_module *module)
{
    const pc__pool2d_layer *layer = pc__layer(module, &pc__max_pool2d_class);
    if (!layer)
        return 0;
    const pc_fn_pool2d_options *s = &layer->spec;
    bool plain = s->kernel[0] == s->kernel[1] && s->stride[0] == s->kernel[0] && s->stride[1] == s->kernel[0] &&
                 !s->padding[0] && !s->padding[1] && !s->ceil_mode && !layer->extra[0] && !layer->extra[1] &&
                 s->kernel[0] <= 16;
    return plain ? s->kernel[0] : 0;
}

static pc_module *at(const pc__chain *chain, int i)
{
    return i < chain->count ? pc_module_child(chain->module, chain->steps ? chain->steps[i] : i) : NULL;
}

/* NULL for one whose forward pass somebody wants to see. */
static pc_module *unwatched(pc_module *module)
{
    return module && pc__forward_is_watched(module) ? NULL : module;
}

pc_tensor *pc__chain_run(const pc__chain *chain, int i, pc_tensor *x, int *next)
{
    pc_module *child = at(chain, i);
    const pc__linear_layer *linear = pc__layer(child, &pc__linear_class);
    const pc__conv2d_layer *conv = pc__layer(child, &pc__conv2d_class);
    *next = i + 1;
    if ((!linear && !conv) || pc__forward_is_watched(child))
        return pc_forward(child, x);

    pc_activation_kind activation = linear ? linear->activation : conv->spec.activation;
    const pc__activation_layer *follows = pc__activation_of(unwatched(at(chain, *next)));
    if (follows && activation == PC_ACTIVATION_NONE) {
        activation = follows->kind;
        ++*next;
    }
    if (linear)
        return pc__linear_forward(child, x, activation);
    int pool = fusable_pool(unwatched(at(chain, *next)));
    *next += pool > 0;
    return pc__conv2d_forward(child, x, activation, pool);
}

/* Say of an error that child i raised it: "layer 3 (Linear(...)): " in front, by its name, "layer 3.1 (...)" where the
 * child has said that of its own child 1. */
static void name_layer(const pc_module *module, int i)
{
    static const char inner[] = "layer ";
    const pc_module *child = pc_module_child(module, i);
    const char *name = pc_module_child_name(module, i);
    char inside[256] = "", words[384];
    if (pc__is_chain(child) && strncmp(pc_error_last()->message, inner, strlen(inner)) == 0) {
        snprintf(words, sizeof words, "layer %s.", name);
        pc__error_before(words, strlen(inner));
        return;
    }
    if (child->type->describe)
        child->type->describe(child, inside, sizeof inside);
    snprintf(words, sizeof words, "layer %s (%s(%s)): ", name, child->type->name, inside);
    pc__error_before(words, 0);
}

pc_tensor *pc__run_in_order(pc_module *module, pc_tensor *x)
{
    int count = pc_module_child_count(module);
    const pc__chain chain = {module, NULL, count};
    const bool failed = pc_failed();
    pc_tensor *y = x;
    PC_SCOPE {
        for (int i = 0, next = 0; i < count && y; i = next) {
            y = pc__chain_run(&chain, i, y, &next);
            if (!y && !failed)
                name_layer(module, i);
        }
        y = y ? pc_keep(y) : NULL;
    }
    return y;
}

const pc_module_class pc__sequential_class = {.name = "Sequential", .forward = pc__run_in_order};

void pc__modules_release(pc_module *const *children, int from, int count)
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
    pc__modules_release(children, taken, count);
    pc_module_free(module);
    return NULL;
}
