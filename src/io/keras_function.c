/* keras_function.c: the modules themselves: made, called, printed. */
#include "io/keras_function.h"

#include "ops/table.h"

static const pc__keras_apply applies[PC__KERAS_KIND_COUNT] = {
    [PC__KERAS_CONV2D] = pc__keras_apply_conv2d,
    [PC__KERAS_DEPTHWISE_CONV2D] = pc__keras_apply_depthwise,
    [PC__KERAS_SEPARABLE_CONV2D] = pc__keras_apply_separable,
    [PC__KERAS_DENSE] = pc__keras_apply_dense,
    [PC__KERAS_GLOBAL_MAX_POOL2D] = pc__keras_apply_global_max,
    [PC__KERAS_GLOBAL_AVG_POOL2D] = pc__keras_apply_global_mean,
    [PC__KERAS_ZERO_PADDING2D] = pc__keras_apply_padding,
    [PC__KERAS_CROPPING2D] = pc__keras_apply_cropping,
    [PC__KERAS_UP_SAMPLING2D] = pc__keras_apply_up_sampling,
    [PC__KERAS_FLATTEN] = pc__keras_apply_flatten,
    [PC__KERAS_RESHAPE] = pc__keras_apply_reshape,
    [PC__KERAS_PERMUTE] = pc__keras_apply_permute,
    [PC__KERAS_SPATIAL_DROPOUT2D] = pc__keras_apply_spatial_dropout,
    [PC__KERAS_NOISE] = pc__keras_apply_noise,
    [PC__KERAS_ACTIVATION] = pc__keras_apply_activation,
    [PC__KERAS_PRELU] = pc__keras_apply_prelu,
    [PC__KERAS_RESCALING] = pc__keras_apply_rescaling,
    [PC__KERAS_NORMALIZATION] = pc__keras_apply_normalization,
    [PC__KERAS_BATCH_NORM] = pc__keras_apply_batch_norm,
    [PC__KERAS_LAYER_NORM] = pc__keras_apply_layer_norm,
    [PC__KERAS_ADD] = pc__keras_apply_join,
    [PC__KERAS_SUBTRACT] = pc__keras_apply_join,
    [PC__KERAS_MULTIPLY] = pc__keras_apply_join,
    [PC__KERAS_AVERAGE] = pc__keras_apply_join,
    [PC__KERAS_MAXIMUM] = pc__keras_apply_join,
    [PC__KERAS_MINIMUM] = pc__keras_apply_join,
    [PC__KERAS_CONCATENATE] = pc__keras_apply_concatenate,
    [PC__KERAS_CHANNELS] = pc__keras_apply_channels,
    [PC__KERAS_STACK] = pc__keras_apply_stack,
};

/* Our pictures are [n, c, h, w], in memory that is [n, h, w, c] behind a convolution: turning them costs nothing. */
static pc_tensor *to_keras(pc_tensor *x)
{
    return x->ndim == 4 ? pc_permute(x, PC_SHAPE(0, 2, 3, 1)) : x;
}

static pc_tensor *from_keras(pc_tensor *y)
{
    return y && y->ndim == 4 ? pc_permute(y, PC_SHAPE(0, 3, 1, 2)) : y ? pc__share(y) : NULL;
}

pc_tensor *pc__keras_function_join(pc_module *module, pc_tensor *const *in, int count)
{
    const pc__keras_layer *layer = pc_module_data(module);
    pc_tensor **turned = pc__calloc((size_t)count, sizeof *turned), *y = NULL;
    bool good = turned != NULL;
    PC_SCOPE {
        for (int i = 0; i < count && good; i++) {
            turned[i] = to_keras(in[i]);
            good = turned[i] != NULL;
        }
        y = good ? pc_keep(from_keras(applies[layer->kind](module, layer, turned, count))) : NULL;
    }
    pc__free(turned);
    return y;
}

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    return pc__keras_function_join(module, &x, 1);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const pc__keras_layer *layer = pc_module_data(module);
    snprintf(text, n, "%.40s", layer->name);
}

static void destroy(pc_module *module)
{
    pc__free(((pc__keras_layer *)pc_module_data(module))->raw);
}

static const pc_module_class classes[PC__KERAS_KIND_COUNT] = {
#define CLASS(code, word) [code] = {.name = word, .forward = forward, .describe = describe, .destroy = destroy},
    PC__KERAS_KINDS(CLASS)
#undef CLASS
};

const pc__keras_layer *pc__keras_function_layer(const pc_module *module)
{
    return module && module->type->forward == forward ? pc_module_data(module) : NULL;
}

static pc_status add_weight(pc_module *module, const pc__keras_weight *weight)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = pc_from_data(weight->value, pc_shape_of(weight->rank, weight->shape), PC_F32, PC_DEVICE_CPU);
        status = !t              ? pc_error_last()->status
                 : weight->fixed ? pc__module_add_buffer(module, weight->word, t)
                                 : pc_module_add_parameter(module, weight->word, t);
    }
    return status;
}

pc_module *pc__keras_function_new(const pc__keras_layer *layer)
{
    pc_module *module = pc_module_new(&classes[layer->kind], sizeof *layer);
    if (!module)
        return NULL;
    pc__keras_layer *own = pc_module_data(module);
    *own = *layer;
    own->location = NULL;
    own->raw = layer->raw ? pc__strdup(layer->raw) : NULL;
    pc_status status = !layer->raw || own->raw ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < layer->weight_count && status == PC_OK; i++)
        status = add_weight(module, &layer->weights[i]);
    for (int i = 0; i < PC__KERAS_WEIGHTS_MAX; i++)
        own->weights[i].value = own->weights[i].slot[0] = own->weights[i].slot[1] = NULL;
    if (status == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
