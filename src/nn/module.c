/* module.c: what every module can do: own, visit, move, switch mode. */
#include "nn/module.h"

#include <paracord/autograd.h>

pc_module *pc_module_new(const pc_module_class *type, size_t bytes)
{
    if (!type || !type->name || !type->forward || bytes > SIZE_MAX / 2)
        return pc__null(PC_ERR_ARGUMENT, "pc_module_new: a class needs a name and a forward function");
    pc_module *module = pc__calloc(1, sizeof *module + bytes);
    if (!module)
        return NULL;
    module->type = type;
    module->training = true;
    return module;
}

void *pc_module_data(const pc_module *module)
{
    return module ? (void *)module->data : NULL;
}

const pc_module_class *pc_module_type(const pc_module *module)
{
    return module ? module->type : NULL;
}

void pc_module_free(pc_module *module)
{
    if (!module)
        return;
    if (module->type->destroy)
        module->type->destroy(module);
    for (int i = 0; i < module->parameter_count; i++)
        pc_tensor_free(module->parameters[i].object);
    for (int i = 0; i < module->child_count; i++)
        pc_module_free(module->children[i].object);
    pc__free(module->parameters);
    pc__free(module->children);
    pc__free(module);
}

static pc_status add(pc__named **list, int *count, int *room, const char *name, void *object)
{
    if (!name || !*name || strlen(name) >= PC__NAME_MAX || strchr(name, '.'))
        return pc__fail(PC_ERR_ARGUMENT, "\"%.60s\" is no name for a part of a module: 1 to %d characters without dots",
                        name ? name : "(null)", PC__NAME_MAX - 1);
    for (int i = 0; i < *count; i++)
        if (strcmp((*list)[i].name, name) == 0)
            return pc__fail(PC_ERR_ARGUMENT, "the module has a part named \"%s\" already", name);
    PC__TRY(pc__grow((void **)list, room, *count, sizeof **list));
    pc__named *entry = &(*list)[(*count)++];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->object = object;
    return PC_OK;
}

static pc_status null_part(const char *what)
{
    return pc_failed() ? pc_error_last()->status : pc__fail(PC_ERR_ARGUMENT, "the module or its new %s is NULL", what);
}

pc_status pc_module_add_parameter(pc_module *module, const char *name, pc_tensor *tensor)
{
    if (!module || !tensor)
        return null_part("parameter");
    if (!pc__is_contiguous(tensor))
        return pc__fail(PC_ERR_ARGUMENT,
                        "the parameter \"%.60s\" of shape %s is not contiguous; register a pc_contiguous of it",
                        name ? name : "(null)", PC__SHAPE_OF(tensor));
    PC__TRY(pc_require_grad(tensor, true));
    PC__TRY(add(&module->parameters, &module->parameter_count, &module->parameter_room, name, tensor));
    (void)pc_tensor_retain(tensor);
    return PC_OK;
}

pc_status pc_module_add_child(pc_module *module, const char *name, pc_module *child)
{
    if (child && (child->owned || child == module))
        return pc__fail(PC_ERR_ARGUMENT,
                        "the %s module for \"%.60s\" is a part of a module already; every place needs a module "
                        "of its own",
                        child->type->name, name ? name : "(null)");
    pc_status status = !module || !child
                           ? null_part("child")
                           : add(&module->children, &module->child_count, &module->child_room, name, child);
    if (status == PC_OK)
        child->owned = true;
    else
        pc_module_free(child);
    return status;
}

void pc_module_train(pc_module *module, bool training)
{
    if (!module)
        return;
    module->training = training;
    for (int i = 0; i < module->child_count; i++)
        pc_module_train(module->children[i].object, training);
}

bool pc_module_is_training(const pc_module *module)
{
    return module && module->training;
}

int pc_module_child_count(const pc_module *module)
{
    return module ? module->child_count : 0;
}

pc_module *pc_module_child(const pc_module *module, int i)
{
    return module && i >= 0 && i < module->child_count ? module->children[i].object : NULL;
}

pc_tensor *pc__module_own(const pc_module *module, const char *name)
{
    for (int i = 0; i < module->parameter_count; i++)
        if (strcmp(module->parameters[i].name, name) == 0)
            return module->parameters[i].object;
    return NULL;
}

static pc_status visit_below(pc_module *module, const char *prefix, pc__visit_fn visit, void *context)
{
    char name[sizeof((pc_parameter *)0)->name];
    for (int i = 0; i < module->parameter_count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, module->parameters[i].name);
        PC__TRY(visit(context, name, &module->parameters[i]));
    }
    for (int i = 0; i < module->child_count; i++) {
        snprintf(name, sizeof name, "%s%s.", prefix, module->children[i].name);
        PC__TRY(visit_below(module->children[i].object, name, visit, context));
    }
    return PC_OK;
}

pc_status pc__module_visit(pc_module *module, pc__visit_fn visit, void *context)
{
    return module ? visit_below(module, "", visit, context) : PC_OK;
}

typedef struct place {
    pc_device device;
    pc_dtype dtype;
} place;

static pc_status move(void *context, const char *name, pc__named *parameter)
{
    const place *to = context;
    pc_tensor *old = parameter->object;
    (void)name;
    if (pc_device_equal(pc_tensor_device(old), to->device) && old->dtype == to->dtype)
        return PC_OK;
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_tensor *moved = NULL;
        PC_NO_GRAD {
            moved = pc_to(old, to->device, to->dtype, true);
        }
        status = moved ? pc_require_grad(moved, true) : pc_error_last()->status;
        if (status == PC_OK) {
            parameter->object = pc_tensor_retain(moved);
            pc_tensor_free(old);
        }
    }
    return status;
}

pc_status pc_module_to(pc_module *module, pc_device device, pc_dtype dtype)
{
    if (!pc__is_float(dtype))
        return pc__fail(PC_ERR_DTYPE, "pc_module_to: parameters cannot be %s; use a floating dtype such as float32",
                        pc_dtype_name(dtype));
    return pc__module_visit(module, move, &(place){device, dtype});
}
