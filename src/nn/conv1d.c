/* conv1d.c: the layer of convolutions along one dimension. */
#include "nn/init.h"
#include "nn/layers.h"
#include "ops/activation.h"
#include "ops/convolve.h"

typedef struct conv1d_layer {
    int64_t in, out;
    int kernel;
    pc_fn_conv1d_options spec;
} conv1d_layer;

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const conv1d_layer *layer = pc_module_data(module);
    return pc_fn_conv1d(x, pc__module_own(module, "weight"), pc__module_own(module, "bias"), layer->spec);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const conv1d_layer *layer = pc_module_data(module);
    const pc_fn_conv1d_options *s = &layer->spec;
    const char *activation = pc__activation_name(s->activation);
    char padding[32] = "", dilation[32] = "", groups[32] = "";
    if (s->same)
        snprintf(padding, sizeof padding, ", padding=same");
    else if (s->padding)
        snprintf(padding, sizeof padding, ", padding=(%d,)", s->padding);
    if (s->dilation > 1)
        snprintf(dilation, sizeof dilation, ", dilation=(%d,)", s->dilation);
    if (s->groups > 1)
        snprintf(groups, sizeof groups, ", groups=%d", s->groups);
    snprintf(text, n, "%lld, %lld, kernel_size=(%d,), stride=(%d,)%s%s%s%s%s%s", (long long)layer->in,
             (long long)layer->out, layer->kernel, s->stride, padding, dilation, groups,
             pc__module_own(module, "bias") ? "" : ", bias=False", activation ? ", activation=" : "",
             activation ? activation : "");
}

static const pc_module_class conv1d_class = {.name = "Conv1d", .forward = forward, .describe = describe};

static pc_status check(conv1d_layer *layer)
{
    pc_fn_conv1d_options *s = &layer->spec;
    int dilation[2] = {s->dilation, s->dilation};
    if (layer->in < 1 || layer->out < 1 || layer->in > 1 << 20 || layer->out > 1 << 20 || layer->kernel < 1 ||
        layer->kernel > 1 << 20 || s->stride < 1 || s->stride > 1 << 20 || s->padding < 0 || s->padding > 1 << 20 ||
        s->dilation > 1 << 20 || !pc__activation_row_of(s->activation))
        return pc__fail(PC_ERR_ARGUMENT,
                        "conv1d: %lld to %lld channels, kernel %d, stride %d, padding %d, activation %d make no layer",
                        (long long)layer->in, (long long)layer->out, layer->kernel, s->stride, s->padding,
                        (int)s->activation);
    if (s->same && (s->stride > 1 || s->padding))
        return pc__fail(PC_ERR_ARGUMENT,
                        "conv1d: same padding needs stride 1 and padding 0, not stride %d and padding %d", s->stride,
                        s->padding);
    PC__TRY(pc__convolve_check("conv1d", layer->in, layer->out, dilation, &s->groups));
    s->dilation = dilation[0];
    return PC_OK;
}

pc_module *pc_conv1d_new(int64_t in, int64_t out, int kernel, pc_conv1d_options options)
{
    conv1d_layer layer = {.in = in,
                          .out = out,
                          .kernel = kernel,
                          .spec = {.stride = options.stride ? options.stride : 1,
                                   .padding = options.padding,
                                   .activation = options.activation,
                                   .dilation = options.dilation,
                                   .groups = options.groups,
                                   .same = options.same}};
    if (check(&layer) != PC_OK)
        return NULL;
    pc_module *module = pc_module_new(&conv1d_class, sizeof layer);
    if (!module)
        return NULL;
    *(conv1d_layer *)pc_module_data(module) = layer;
    if (pc__add_weights(module, PC_SHAPE(out, in / layer.spec.groups, kernel), options.no_bias, options.init) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
