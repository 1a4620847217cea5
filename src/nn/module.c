/* module.c: what every module can do: own, visit, switch mode. */
#include "nn/module.h"

#include <paracord/autograd.h>

pc_module *pc_module_new(const pc_module_class *type, size_t bytes)
{
    PC__NEED_OR(NULL, type);
    if (!type->name || (!type->forward && !type->forward_many) || bytes > SIZE_MAX / 2)
        return pc__null(PC_ERR_ARGUMENT, "pc_module_new: a class needs a name and a forward function");
    pc_module *module = pc__calloc(1, sizeof *module + bytes);
    if (!module)
        return NULL;
    module->type = type;
    module->training = true;
    module->holders = 1;
    module->bytes = bytes;
    return module;
}

void *pc_module_data(const pc_module *module)
{
    PC__NEED_OR(NULL, module);
    return (void *)module->data;
}

const pc_module_class *pc_module_type(const pc_module *module)
{
    PC__NEED_OR(NULL, module);
    return module->type;
}

void pc__module_hold(pc_module *module)
{
    atomic_fetch_add_explicit(&module->holders, 1, memory_order_relaxed);
}

void pc__module_let_go(pc_module *module)
{
    if (atomic_fetch_sub_explicit(&module->holders, 1, memory_order_acq_rel) == 1)
        pc__free(module);
}

static void release(pc_module *module)
{
    if (module->type->destroy)
        module->type->destroy(module);
    for (int i = 0; i < module->parameter_count; i++)
        pc_tensor_free(module->parameters[i].object);
    for (int i = 0; i < module->child_count; i++)
        release(module->children[i].object);
    for (int i = 0; i < module->buffer_count; i++)
        pc_tensor_free(module->buffers[i].object);
    pc__free(module->parameters);
    pc__free(module->children);
    pc__free(module->buffers);
    pc__free(module->hooks);
    module->hooks = NULL;
    module->hook_count = 0;
    module->parameters = module->children = module->buffers = NULL;
    module->parameter_count = module->child_count = module->buffer_count = 0;
    module->version++;
    pc__module_let_go(module);
}

void pc_module_free(pc_module *module)
{
    if (!module)
        return;
    if (module->parent)
        (void)pc__fail(PC_ERR_STATE,
                       "pc_module_free: the %s module is a part of a %s, which releases it; free the outermost module",
                       module->type->name, module->parent->type->name);
    else
        release(module);
}

static pc_status add(pc__named **list, int *count, int *room, const char *name, void *object)
{
    if (!*name || strlen(name) >= PC__NAME_MAX || strchr(name, '.'))
        return pc__fail(PC_ERR_ARGUMENT, "\"%.60s\" is no name for a part of a module: 1 to %d characters without dots",
                        name, PC__NAME_MAX - 1);
    for (int i = 0; i < *count; i++)
        if (strcmp((*list)[i].name, name) == 0)
            return pc__fail(PC_ERR_ARGUMENT, "the module has a part named \"%s\" already", name);
    PC__TRY(pc__grow((void **)list, room, *count, sizeof **list));
    pc__named *entry = &(*list)[(*count)++];
    *entry = (pc__named){.object = object};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return PC_OK;
}

static pc_status check_new(const pc_module *module, const char *name)
{
    return pc__module_own(module, name) ? pc__fail(PC_ERR_ARGUMENT, "the module has a part named \"%s\" already", name)
                                        : PC_OK;
}

pc_status pc_module_add_parameter(pc_module *module, const char *name, pc_tensor *tensor)
{
    PC__NEED(module);
    PC__NEED(name);
    PC__NEED(tensor);
    PC__TRY(check_new(module, name));
    if (!pc__is_contiguous(tensor))
        return pc__fail(PC_ERR_ARGUMENT,
                        "the parameter \"%.60s\" of shape %s is not contiguous; register a pc_contiguous of it", name,
                        PC__SHAPE_OF(tensor));
    PC__TRY(pc_require_grad(tensor, true));
    PC__TRY(add(&module->parameters, &module->parameter_count, &module->parameter_room, name, tensor));
    module->version++;
    (void)pc_tensor_retain(tensor);
    return PC_OK;
}

pc_status pc__module_add_buffer(pc_module *module, const char *name, pc_tensor *tensor)
{
    PC__NEED(module);
    PC__NEED(name);
    PC__NEED(tensor);
    PC__TRY(check_new(module, name));
    PC__TRY(add(&module->buffers, &module->buffer_count, &module->buffer_room, name, tensor));
    module->version++;
    (void)pc_tensor_retain(tensor);
    return PC_OK;
}

pc_status pc_module_add_buffer(pc_module *module, const char *name, pc_tensor *tensor)
{
    PC__TRY(pc__module_add_buffer(module, name, tensor));
    module->buffers[module->buffer_count - 1].kept = true;
    return PC_OK;
}

static bool is_inside(const pc_module *module, const pc_module *whole)
{
    while (module && module != whole)
        module = module->parent;
    return module != NULL;
}

static pc_status check_depth(const pc_module *module, const pc_module *child)
{
    int depth = child->height + 1;
    for (; module && depth <= PC__MODULE_DEPTH_MAX; module = module->parent)
        depth++;
    return depth <= PC__MODULE_DEPTH_MAX
               ? PC_OK
               : pc__fail(
                     PC_ERR_ARGUMENT,
                     "the %s module would be the %dth level of modules inside each other, and %d are the most; put "
                     "layers beside each other in one Sequential",
                     child->type->name, depth, PC__MODULE_DEPTH_MAX);
}

static void adopt(pc_module *module, pc_module *child)
{
    child->parent = module;
    for (int height = child->height + 1; module && module->height < height; height++) {
        module->height = height;
        module = module->parent;
    }
}

pc_status pc_module_add_child(pc_module *module, const char *name, pc_module *child)
{
    PC__NEED(child);
    if (child->parent || is_inside(module, child))
        return pc__fail(PC_ERR_ARGUMENT,
                        "the %s module for \"%.60s\" is a part of a module already; every place needs a module "
                        "of its own",
                        child->type->name, name ? name : "(null)");
    if (!module || !name)
        pc_module_free(child);
    PC__NEED(module);
    PC__NEED(name);
    pc_status status = check_depth(module, child);
    if (status == PC_OK)
        status = add(&module->children, &module->child_count, &module->child_room, name, child);
    if (status == PC_OK) {
        adopt(module, child);
        module->version++;
    } else
        pc_module_free(child);
    return status;
}

void pc_module_set_training(pc_module *module, bool training)
{
    PC__NEED_OR(, module);
    pc__watch_told(module);
    atomic_store_explicit(&module->training, training, memory_order_relaxed);
    for (int i = 0; i < module->child_count; i++)
        pc_module_set_training(module->children[i].object, training);
}

void pc__module_set_modes(pc_module *module, const pc_module *like)
{
    pc__watch_asked(like);
    pc__watch_told(module);
    atomic_store_explicit(&module->training, atomic_load_explicit(&like->training, memory_order_relaxed),
                          memory_order_relaxed);
    for (int i = 0; i < module->child_count; i++)
        pc__module_set_modes(module->children[i].object, i < like->child_count ? like->children[i].object : like);
}

static _Thread_local int evaluating;

pc__evaluating pc__evaluate_enter(void)
{
    evaluating++;
    return (pc__evaluating){1};
}

void pc__evaluate_leave(pc__evaluating *scope)
{
    evaluating -= scope->open;
    scope->open = 0;
}

bool pc__is_evaluating(void)
{
    return evaluating > 0;
}

bool pc_module_is_training(const pc_module *module)
{
    PC__NEED_OR(false, module);
    pc__watch_asked(module);
    return !evaluating && atomic_load_explicit(&module->training, memory_order_relaxed);
}

int pc_module_child_count(const pc_module *module)
{
    PC__NEED_OR(0, module);
    return module->child_count;
}

pc_module *pc_module_child(const pc_module *module, int i)
{
    PC__NEED_OR(NULL, module);
    return i >= 0 && i < module->child_count ? module->children[i].object : NULL;
}

const char *pc_module_child_name(const pc_module *module, int i)
{
    PC__NEED_OR(NULL, module);
    return i >= 0 && i < module->child_count ? module->children[i].name : NULL;
}

static pc_module *child_of(const pc_module *module, const char *name, size_t length)
{
    for (int i = 0; i < module->child_count; i++)
        if (strncmp(module->children[i].name, name, length) == 0 && !module->children[i].name[length])
            return module->children[i].object;
    return NULL;
}

pc_module *pc_module_child_named(const pc_module *module, const char *name)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, name);
    const pc_module *below = module;
    for (const char *at = name; below && *at;) {
        const size_t length = strcspn(at, ".");
        below = length < PC__NAME_MAX ? child_of(below, at, length) : NULL;
        at += length + (at[length] == '.' && at[length + 1]);
        if (*at == '.') /* "a..b", "a." */
            below = NULL;
    }
    return below && *name
               ? (pc_module *)(uintptr_t)below
               : pc__null(PC_ERR_NOT_FOUND, "the %s module has no child named \"%.80s\"", module->type->name, name);
}

pc_tensor *pc__module_own(const pc_module *module, const char *name)
{
    for (int i = 0; i < module->parameter_count; i++)
        if (strcmp(module->parameters[i].name, name) == 0)
            return module->parameters[i].object;
    for (int i = 0; i < module->buffer_count; i++)
        if (strcmp(module->buffers[i].name, name) == 0)
            return module->buffers[i].object;
    return NULL;
}

typedef struct visitor {
    pc__visit_fn visit;
    void *context;
    bool named, buffers; /* by their names; these too */
} visitor;

/* A name that was cut could be another one's, and would be none of the module's in a file. */
static pc_status give(const visitor *v, const char *prefix, pc__named *part)
{
    char name[sizeof((pc_parameter *)0)->name] = "";
    const char *own = part->full ? part->full : part->name;
    const int n = v->named ? snprintf(name, sizeof name, "%s%s", prefix, own) : 0;
    return n < (int)sizeof name ? v->visit(v->context, name, part)
                                : pc__fail(PC_ERR_ARGUMENT,
                                           "a name that begins with \"%.60s...\" is longer than %zu bytes; nest fewer "
                                           "modules or give them shorter names",
                                           name, sizeof name - 1);
}

static pc_status visit_below(pc_module *module, const char *prefix, const visitor *v)
{
    char below[sizeof((pc_parameter *)0)->name] = "";
    for (int i = 0; i < module->parameter_count; i++)
        PC__TRY(give(v, prefix, &module->parameters[i]));
    for (int i = 0; v->buffers && i < module->buffer_count; i++)
        if (module->buffers[i].kept)
            PC__TRY(give(v, prefix, &module->buffers[i]));
    for (int i = 0; i < module->child_count; i++) {
        if (v->named) /* a prefix that is cut leaves no room for any name */
            snprintf(below, sizeof below, "%s%s.", prefix, module->children[i].name);
        PC__TRY(visit_below(module->children[i].object, below, v));
    }
    return PC_OK;
}

pc_status pc__module_visit(pc_module *module, pc__visit_fn visit, void *context)
{
    return module ? visit_below(module, "", &(visitor){visit, context, true, false}) : PC_OK;
}

pc_status pc__module_visit_state(pc_module *module, pc__visit_fn visit, void *context)
{
    return module ? visit_below(module, "", &(visitor){visit, context, true, true}) : PC_OK;
}

pc_status pc__module_each(pc_module *module, pc__visit_fn visit, void *context)
{
    return module ? visit_below(module, "", &(visitor){visit, context, false, false}) : PC_OK;
}

pc_status pc__module_each_state(pc_module *module, pc__visit_fn visit, void *context)
{
    return module ? visit_below(module, "", &(visitor){visit, context, false, true}) : PC_OK;
}
