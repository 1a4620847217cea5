/* conv_transpose2d.c: the layer of convolutions led back, which make pictures larger. */
#include "nn/init.h"
#include "nn/layers.h"
#include "ops/activation.h"
#include "ops/convolve.h"
#include "ops/table.h"

typedef struct transposed_layer {
    int64_t in, out;
    int kernel[2];
    pc_fn_conv_transpose2d_options spec;
    pc_activation_kind activation;
} transposed_layer;

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const transposed_layer *layer = pc_module_data(module);
    if (x->ndim != 4)
        return pc__null(PC_ERR_SHAPE, "conv_transpose2d: the input has shape %s; it must be [n, %lld, h, w]",
                        PC__SHAPE_OF(x), (long long)layer->in);
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *own = pc__channels_last(x);
        y = own ? pc_fn_conv_transpose2d(own, pc__module_own(module, "weight"), pc__module_own(module, "bias"),
                                         layer->spec)
                : NULL;
        y = pc_keep(pc__activated(layer->activation, y));
    }
    return y;
}

/* ", name=(a, b)" behind the text, where one of them is not what it is by itself. */
static void add_pair(char *text, size_t n, const char *name, const int pair[2], int usual)
{
    const size_t at = strlen(text);
    if (pair[0] != usual || pair[1] != usual)
        snprintf(text + at, n - at, ", %s=(%d, %d)", name, pair[0], pair[1]);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const transposed_layer *layer = pc_module_data(module);
    const pc_fn_conv_transpose2d_options *s = &layer->spec;
    const char *activation = pc__activation_name(layer->activation);
    snprintf(text, n, "%lld, %lld, kernel_size=(%d, %d), stride=(%d, %d)", (long long)layer->in, (long long)layer->out,
             layer->kernel[0], layer->kernel[1], s->stride[0], s->stride[1]);
    add_pair(text, n, "padding", s->padding, 0);
    add_pair(text, n, "dilation", s->dilation, 1);
    add_pair(text, n, "output_padding", s->output_padding, 0);
    size_t at = strlen(text);
    if (s->groups > 1)
        snprintf(text + at, n - at, ", groups=%d", s->groups);
    at = strlen(text);
    snprintf(text + at, n - at, "%s%s%s", pc__module_own(module, "bias") ? "" : ", bias=False",
             activation ? ", activation=" : "", activation ? activation : "");
}

static const pc_module_class transposed_class = {.name = "ConvTranspose2d", .forward = forward, .describe = describe};

static pc_status check(transposed_layer *layer)
{
    pc_fn_conv_transpose2d_options *s = &layer->spec;
    bool is = layer->in >= 1 && layer->out >= 1 && layer->in <= 1 << 20 && layer->out <= 1 << 20 &&
              pc__activation_row_of(layer->activation);
    for (int i = 0; i < 2; i++)
        is = is && layer->kernel[i] >= 1 && layer->kernel[i] <= 1024 && s->stride[i] >= 1 && s->stride[i] <= 1024 &&
             s->padding[i] >= 0 && s->padding[i] <= 1024 && s->dilation[i] <= 1024 && s->output_padding[i] >= 0 &&
             s->output_padding[i] < PC__MAX(s->stride[i], s->dilation[i]);
    if (!is)
        return pc__fail(PC_ERR_ARGUMENT,
                        "conv_transpose2d: %lld to %lld channels, kernel %d, stride %d, padding %d, output padding %d, "
                        "activation %d make no layer",
                        (long long)layer->in, (long long)layer->out, layer->kernel[0], s->stride[0], s->padding[0],
                        s->output_padding[0], (int)layer->activation);
    return pc__convolve_check("conv_transpose2d", layer->in, layer->out, s->dilation, &s->groups);
}

pc_module *pc_conv_transpose2d_new(int64_t in, int64_t out, int kernel, pc_conv_transpose2d_options options)
{
    transposed_layer layer = {.in = in, .out = out, .activation = options.activation};
    layer.spec.groups = options.groups;
    pc__pair_of(layer.kernel, options.kernel_size, kernel, 0);
    pc__pair_of(layer.spec.stride, options.strides, options.stride, 1);
    pc__pair_of(layer.spec.padding, options.paddings, options.padding, 0);
    pc__pair_of(layer.spec.output_padding, options.output_paddings, options.output_padding, 0);
    pc__pair_of(layer.spec.dilation, options.dilations, options.dilation, 1);
    if (check(&layer) != PC_OK)
        return NULL;
    pc_module *module = pc_module_new(&transposed_class, sizeof layer);
    if (!module)
        return NULL;
    *(transposed_layer *)pc_module_data(module) = layer;
    const pc_shape shape = PC_SHAPE(in, out / layer.spec.groups, layer.kernel[0], layer.kernel[1]);
    if (pc__add_weights_and(module, shape, options.no_bias ? 0 : out, options.init) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
