/* compose.c: modules of modules: residual blocks, lists, dictionaries; and functions as modules. */
#include "nn/layers.h"
#include "ops/activation.h"
#include "ops/table.h"

/* --- residual blocks --- */

typedef struct residual_layer {
    pc_activation_kind activation;
} residual_layer;

static pc_tensor *residual(pc_module *module, pc_tensor *x)
{
    const residual_layer *layer = pc_module_data(module);
    pc_module *shortcut = pc_module_child(module, 1);
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *body = pc_forward(pc_module_child(module, 0), x);
        pc_tensor *rest = !body ? NULL : shortcut ? pc_forward(shortcut, x) : x;
        if (body && rest && !pc__same_shape(body, rest))
            (void)pc__fail(
                PC_ERR_SHAPE,
                "residual: the body gives %s and the shortcut %s; a shortcut such as a convolution of kernel "
                "1 brings x to the body's shape",
                PC__SHAPE_OF(body), PC__SHAPE_OF(rest));
        else if (body && rest)
            y = pc_keep(pc__activated(layer->activation, pc_add(body, rest)));
    }
    return y;
}

static void describe_residual(const pc_module *module, char *text, size_t n)
{
    const pc_activation_kind kind = ((const residual_layer *)pc_module_data(module))->activation;
    if (kind != PC_ACTIVATION_NONE)
        snprintf(text, n, "activation=%s", pc__activation_row_of(kind)->option);
}

static const pc_module_class residual_class = {.name = "Residual", .forward = residual, .describe = describe_residual};

/* It was listed before, so that somebody has it, or it is gone. */
static bool is_again(const pc_named_module *children, int i)
{
    for (int k = 0; k < i; k++)
        if (children[k].module == children[i].module)
            return true;
    return false;
}

/* The module with these children, which it owns. On failure all of them are released, and it too. A name of NULL stands
 * for the child's number. */
static pc_module *filled(pc_module *module, const pc_named_module *children, int count)
{
    pc_status status = module ? PC_OK : pc_error_last()->status;
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (status == PC_OK)
            status = pc_module_add_child(module, children[i].name ? children[i].name : number, children[i].module);
        else if (children[i].module && !is_again(children, i) && !children[i].module->parent)
            pc_module_free(children[i].module);
    }
    if (status == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

pc_module *pc_residual_new(pc_module *body, pc_residual_options options)
{
    const pc_named_module children[] = {{"body", body}, {"shortcut", options.shortcut}};
    pc_module *module = NULL;
    if (!pc__activation_row_of(options.activation))
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_residual: there is no activation %d", (int)options.activation);
    else if (!body)
        (void)(pc_failed() || pc__fail(PC_ERR_ARGUMENT, "pc_residual: body is NULL"));
    else if (options.shortcut || !pc_failed()) /* else the shortcut could not be made */
        module = pc_module_new(&residual_class, sizeof(residual_layer));
    if (module)
        ((residual_layer *)pc_module_data(module))->activation = options.activation;
    return filled(module, children, options.shortcut ? 2 : 1);
}

/* --- lists and dictionaries --- */

static pc_tensor *no_forward(pc_module *module, pc_tensor *x)
{
    (void)x;
    return pc__null(PC_ERR_UNSUPPORTED,
                    "forward: a %s has no forward pass of its own; a module of yours calls pc_forward of its children",
                    module->type->name);
}

const pc_module_class pc__module_list_class = {.name = "ModuleList", .forward = no_forward};
static const pc_module_class module_dict_class = {.name = "ModuleDict", .forward = no_forward};

static pc_module *container(const pc_module_class *type, const char *who, const pc_named_module *children, int count)
{
    const bool named = type != &pc__module_list_class;
    int whole = 0;
    if (count < 0)
        return pc__null(PC_ERR_ARGUMENT, "%s: %d children; there cannot be fewer than none", who, count);
    while (whole < count && children[whole].module && (children[whole].name || !named))
        whole++;
    if (whole < count && !pc_failed())
        (void)pc__fail(PC_ERR_ARGUMENT, "%s: %s %d is NULL", who,
                       children[whole].module ? "the name of child" : "child", whole);
    return filled(whole == count ? pc_module_new(type, 0) : NULL, children, count);
}

pc_module *pc_module_of_new(const pc_module_class *type, const pc_named_module *children, int count)
{
    if (count > 0)
        PC__NEED_OR(NULL, children);
    if (!type) {
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_module_of_new: type is NULL");
        return filled(NULL, children, count);
    }
    return container(type, "pc_module_of", children, count);
}

pc_module *pc_module_dict_new(const pc_named_module *children, int count)
{
    if (count > 0)
        PC__NEED_OR(NULL, children);
    return container(&module_dict_class, "pc_module_dict", children, count);
}

pc_module *pc_module_list_new(pc_module *const *children, int count)
{
    if (count > 0)
        PC__NEED_OR(NULL, children);
    if (count <= 0)
        return container(&pc__module_list_class, "pc_module_list", NULL, count);
    pc_named_module *named = pc__calloc((size_t)count, sizeof *named);
    if (!named) {
        pc__modules_release(children, 0, count);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        named[i].module = children[i];
    pc_module *list = container(&pc__module_list_class, "pc_module_list", named, count);
    pc__free(named);
    return list;
}

pc_status pc_module_append(pc_module *list, pc_module *child)
{
    char number[16];
    const bool takes = list && (list->type == &pc__module_list_class || list->type == &pc__sequential_class);
    PC__NEED(child);
    if (!takes && !child->parent)
        pc_module_free(child);
    PC__NEED(list);
    if (!takes)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_module_append: a %s is no list; pc_module_add_child gives its child a name",
                        list->type->name);
    snprintf(number, sizeof number, "%d", list->child_count);
    return pc_module_add_child(list, number, child);
}

/* --- functions --- */

typedef struct function_layer {
    pc_module_fn function;
    void *context;
} function_layer;

static pc_status call_function(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    const function_layer *layer = pc_module_data(module);
    (void)in_count, (void)out_count;
    out[0] = layer->function(layer->context, in[0]);
    return out[0] ? PC_OK
           : pc_failed()
               ? pc_error_last()->status
               : pc__fail(PC_ERR_ARGUMENT, "forward: the function of a Function returned NULL without an error");
}

static const pc_module_class function_class = {
    .name = "Function", .forward_many = call_function, .inputs = 1, .outputs = 1};

pc_module *pc_function_module(pc_module_fn function, void *context)
{
    PC__NEED_OR(NULL, function);
    pc_module *module = pc_module_new(&function_class, sizeof(function_layer));
    if (module)
        *(function_layer *)pc_module_data(module) = (function_layer){function, context};
    return module;
}
