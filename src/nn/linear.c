/* linear.c: the fully connected layer. */
#include "nn/init.h"
#include "nn/layers.h"
#include "ops/activation.h"

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const pc__linear_layer *layer = pc_module_data(module);
    return pc__linear_forward(module, x, layer->activation);
}

pc_tensor *pc__linear_forward(const pc_module *module, pc_tensor *x, pc_activation_kind activation)
{
    return pc_fn_linear(x, pc__module_own(module, "weight"), pc__module_own(module, "bias"), activation);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const pc__linear_layer *layer = pc_module_data(module);
    const char *activation = pc__activation_name(layer->activation);
    snprintf(text, n, "in_features=%lld, out_features=%lld, bias=%s%s%s", (long long)layer->in, (long long)layer->out,
             pc__module_own(module, "bias") ? "True" : "False", activation ? ", activation=" : "",
             activation ? activation : "");
}

const pc_module_class pc__linear_class = {.name = "Linear", .forward = forward, .describe = describe};

pc_module *pc_linear_new(int64_t in, int64_t out, pc_linear_options options)
{
    if (in < 1 || out < 1 || in > INT32_MAX || out > INT32_MAX || !pc__activation_row_of(options.activation))
        return pc__null(PC_ERR_ARGUMENT,
                        "linear: %lld inputs, %lld outputs, activation %d: both sizes must be at least 1 and the "
                        "activation one of pc_activation_kind",
                        (long long)in, (long long)out, (int)options.activation);
    pc_module *module = pc_module_new(&pc__linear_class, sizeof(pc__linear_layer));
    if (!module)
        return NULL;
    *(pc__linear_layer *)pc_module_data(module) = (pc__linear_layer){in, out, options.activation};
    if (pc__add_weights(module, PC_SHAPE(out, in), options.no_bias, options.init) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
