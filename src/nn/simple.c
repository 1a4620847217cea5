/* simple.c: layers without parameters: pooling, flatten, activations, dropout. */
#include "nn/layers.h"
#include "ops/activation.h"

#include <math.h>

static pc_tensor *max_pool(pc_module *module, pc_tensor *x)
{
    const pc__pool2d_layer *layer = pc_module_data(module);
    if (x->ndim != 4 || (!layer->extra[0] && !layer->extra[1]))
        return pc_fn_max_pool2d(x, layer->spec);
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = pc_keep(pc_fn_max_pool2d(pc__pad_end(x, layer->extra, -INFINITY), layer->spec));
    }
    return y;
}

/* Without the padding: the average that counts it as zeros, over that average of a picture of ones. */
static pc_tensor *avg_pool(pc_module *module, pc_tensor *x)
{
    const pc__pool2d_layer *layer = pc_module_data(module);
    if (x->ndim != 4 || !layer->exclude_padding)
        return pc_fn_avg_pool2d(x, layer->spec);
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *ones = pc_ones(PC_SHAPE(1, 1, x->shape[2], x->shape[3]), x->dtype, pc_tensor_device(x));
        pc_tensor *share = pc_fn_avg_pool2d(pc__pad_end(ones, layer->extra, 0), layer->spec);
        y = pc_keep(pc_div(pc_fn_avg_pool2d(pc__pad_end(x, layer->extra, 0), layer->spec), share));
    }
    return y;
}

/* A pair as PyTorch prints it: one number when both are the same. */
static const char *pair(const int v[2], char text[32])
{
    snprintf(text, 32, v[0] == v[1] ? "%d" : "(%d, %d)", v[0], v[1]);
    return text;
}

static void describe_pool(const pc_module *module, char *text, size_t n)
{
    const pc__pool2d_layer *layer = pc_module_data(module);
    const pc_fn_pool2d_options *s = &layer->spec;
    char kernel[32], stride[32], padding[32];
    bool uneven = layer->extra[0] || layer->extra[1];
    snprintf(text, n, "kernel_size=%s, stride=%s, padding=%s%s", pair(s->kernel, kernel), pair(s->stride, stride),
             uneven ? "same" : pair(s->padding, padding),
             module->type == &pc__max_pool2d_class
                 ? (s->ceil_mode ? ", dilation=1, ceil_mode=True" : ", dilation=1, ceil_mode=False")
             : layer->exclude_padding ? ", count_include_pad=False"
                                      : "");
}

const pc_module_class pc__max_pool2d_class = {.name = "MaxPool2d", .forward = max_pool, .describe = describe_pool};
const pc_module_class pc__avg_pool2d_class = {.name = "AvgPool2d", .forward = avg_pool, .describe = describe_pool};

pc_module *pc__pool2d_layer_new(const pc_module_class *type, const pc_fn_pool2d_options *spec)
{
    for (int i = 0; i < 2; i++)
        if (spec->kernel[i] < 1 || spec->stride[i] < 1 || spec->padding[i] < 0 ||
            spec->padding[i] > spec->kernel[i] / 2)
            return pc__null(PC_ERR_ARGUMENT,
                            "%s: kernel %d, stride %d, padding %d: kernel and stride must be at least 1, the "
                            "padding 0 to half the kernel",
                            type->name, spec->kernel[i], spec->stride[i], spec->padding[i]);
    pc_module *module = pc_module_new(type, sizeof(pc__pool2d_layer));
    if (module)
        ((pc__pool2d_layer *)pc_module_data(module))->spec = *spec;
    return module;
}

static pc_module *square_pool(const pc_module_class *type, int kernel, pc_pool2d_options options)
{
    int stride = options.stride ? options.stride : kernel;
    pc_fn_pool2d_options spec = {.kernel = {kernel, kernel},
                                 .stride = {stride, stride},
                                 .padding = {options.padding, options.padding},
                                 .ceil_mode = options.ceil_mode,
                                 .exclude_padding = options.exclude_padding};
    return pc__pool2d_layer_new(type, &spec);
}

pc_module *pc_max_pool2d_new(int kernel, pc_pool2d_options options)
{
    return square_pool(&pc__max_pool2d_class, kernel, options);
}

pc_module *pc_avg_pool2d_new(int kernel, pc_pool2d_options options)
{
    return square_pool(&pc__avg_pool2d_class, kernel, options);
}

static pc_tensor *flatten(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_flatten_from(x, x->ndim > 1 ? 1 : 0);
}

static void describe_flatten(const pc_module *module, char *text, size_t n)
{
    (void)module;
    snprintf(text, n, "start_dim=1, end_dim=-1");
}

const pc_module_class pc__flatten_class = {.name = "Flatten", .forward = flatten, .describe = describe_flatten};

pc_module *pc_flatten(void)
{
    return pc_module_new(&pc__flatten_class, 0);
}

static pc_tensor *activate(pc_module *module, pc_tensor *x)
{
    return pc__activation_row_of(((const pc__activation_layer *)pc_module_data(module))->kind)->function(x);
}

static void describe_activation(const pc_module *module, char *text, size_t n)
{
    snprintf(text, n, "%s",
             pc__activation_row_of(((const pc__activation_layer *)pc_module_data(module))->kind)->inside);
}

static const pc_module_class activations[] = {
#define PC__ACTIVATION(kind, fused, function, option, module, inside)                                                  \
    [PC_ACTIVATION_##kind] = {.name = module, .forward = activate, .describe = describe_activation},
#include "ops/activation.def"
#undef PC__ACTIVATION
};

const char *pc__activation_name(pc_activation_kind kind)
{
    return pc__activation_row_of(kind)->option;
}

const pc__activation_layer *pc__activation_of(const pc_module *module)
{
    return module && module->type->forward == activate ? pc_module_data(module) : NULL;
}

pc_module *pc_activation(pc_activation_kind kind)
{
    if (!pc__activation_row_of(kind))
        return pc__null(PC_ERR_ARGUMENT, "pc_activation: there is no activation %d", (int)kind);
    pc_module *module = pc_module_new(&activations[kind], sizeof(pc__activation_layer));
    if (module)
        ((pc__activation_layer *)pc_module_data(module))->kind = kind;
    return module;
}

static pc_tensor *dropout(pc_module *module, pc_tensor *x)
{
    const double p = ((const pc__dropout_layer *)pc_module_data(module))->p;
    return p > 0 && pc_module_is_training(module) ? pc_fn_dropout(x, p) : pc__share(x);
}

static void describe_dropout(const pc_module *module, char *text, size_t n)
{
    snprintf(text, n, "p=%g, inplace=False", ((const pc__dropout_layer *)pc_module_data(module))->p);
}

const pc_module_class pc__dropout_class = {.name = "Dropout", .forward = dropout, .describe = describe_dropout};

pc_module *pc_dropout(double p)
{
    if (!(p >= 0 && p <= 1))
        return pc__null(PC_ERR_ARGUMENT, "pc_dropout: p is %g; it must be 0 to 1", p);
    pc_module *module = pc_module_new(&pc__dropout_class, sizeof(pc__dropout_layer));
    if (module)
        ((pc__dropout_layer *)pc_module_data(module))->p = p;
    return module;
}
