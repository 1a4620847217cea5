/* conv2d.c: the convolution layer. Works in channels-last memory, where its kernels are fastest, and leaves its result
 * so for the next layer. */
#include "nn/init.h"
#include "nn/layers.h"
#include "ops/activation.h"
#include "ops/conv2d.h"
#include "ops/convolve.h"
#include "ops/table.h"

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const pc__conv2d_layer *layer = pc_module_data(module);
    return pc__conv2d_forward(module, x, layer->spec.activation, 0);
}

pc_tensor *pc__conv2d_forward(const pc_module *module, pc_tensor *x, pc_activation_kind activation, int pool)
{
    const pc__conv2d_layer *layer = pc_module_data(module);
    pc_fn_conv2d_options spec = layer->spec;
    spec.activation = activation;
    spec.pool = pool;
    spec.same = false; /* it is the layer's padding and extra */
    if (x->ndim != 4)
        return pc__null(PC_ERR_SHAPE, "conv2d: the input has shape %s; it must be [n, %lld, h, w]", PC__SHAPE_OF(x),
                        (long long)layer->in);
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *padded = pc__pad_end(x, layer->extra, 0);
        y = pc_keep(pc__conv2d(pc__channels_last(padded), pc__module_own(module, "weight"),
                               pc__module_own(module, "bias"), spec, false));
    }
    return y;
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const pc__conv2d_layer *layer = pc_module_data(module);
    const pc_fn_conv2d_options *s = &layer->spec;
    const char *activation = pc__activation_name(s->activation);
    char padding[48] = "", dilation[48] = "", groups[32] = "";
    if (layer->extra[0] || layer->extra[1] || s->same)
        snprintf(padding, sizeof padding, ", padding=same");
    else if (s->padding[0] || s->padding[1])
        snprintf(padding, sizeof padding, ", padding=(%d, %d)", s->padding[0], s->padding[1]);
    if (s->dilation[0] > 1 || s->dilation[1] > 1)
        snprintf(dilation, sizeof dilation, ", dilation=(%d, %d)", s->dilation[0], s->dilation[1]);
    if (s->groups > 1)
        snprintf(groups, sizeof groups, ", groups=%d", s->groups);
    snprintf(text, n, "%lld, %lld, kernel_size=(%d, %d), stride=(%d, %d)%s%s%s%s%s%s", (long long)layer->in,
             (long long)layer->out, layer->kernel[0], layer->kernel[1], s->stride[0], s->stride[1], padding, dilation,
             groups, pc__module_own(module, "bias") ? "" : ", bias=False", activation ? ", activation=" : "",
             activation ? activation : "");
}

pc_tensor *pc__pad_end(pc_tensor *x, const int extra[2], double value)
{
    for (int i = 0; i < 2 && x; i++) {
        if (!extra[i])
            continue;
        pc_shape shape = pc_tensor_shape(x);
        shape.dim[2 + i] = extra[i];
        pc_tensor *parts[2] = {x, pc_full(shape, value, x->dtype, pc_tensor_device(x))};
        x = pc_cat(parts, 2, 2 + i);
    }
    return x;
}

const pc_module_class pc__conv2d_class = {.name = "Conv2d", .forward = forward, .describe = describe};

/* Same padding as such on both sides, and the odd row or column behind. */
static pc_status lay_same(pc__conv2d_layer *layer)
{
    pc_fn_conv2d_options *s = &layer->spec;
    for (int i = 0; i < 2 && s->same; i++) {
        const int more = s->dilation[i] * (layer->kernel[i] - 1);
        if (s->stride[i] > 1 || s->padding[i])
            return pc__fail(PC_ERR_ARGUMENT,
                            "conv2d: same padding needs stride 1 and padding 0, not stride %d and padding %d",
                            s->stride[i], s->padding[i]);
        s->padding[i] = more / 2;
        layer->extra[i] = more % 2;
    }
    return PC_OK;
}

static bool is_layer(int64_t in, int64_t out, const int kernel[2], const pc_fn_conv2d_options *spec)
{
    bool is = in >= 1 && out >= 1 && in <= 1 << 20 && out <= 1 << 20 && pc__activation_row_of(spec->activation);
    for (int i = 0; i < 2; i++)
        is = is && kernel[i] >= 1 && kernel[i] <= 1024 && spec->stride[i] >= 1 && spec->stride[i] <= 1024 &&
             spec->padding[i] >= 0 && spec->padding[i] <= 1024 && spec->dilation[i] <= 1024;
    return is;
}

pc_module *pc__conv2d_layer_new(int64_t in, int64_t out, const int kernel[2], const pc_fn_conv2d_options *spec,
                                bool no_bias, pc_init_kind init)
{
    pc__conv2d_layer layer = {.in = in, .out = out, .kernel = {kernel[0], kernel[1]}, .spec = *spec};
    if (!is_layer(in, out, kernel, spec))
        return pc__null(PC_ERR_ARGUMENT,
                        "conv2d: %lld to %lld channels, kernel %d, stride %d, padding %d, activation %d make "
                        "no layer",
                        (long long)in, (long long)out, kernel[0], spec->stride[0], spec->padding[0],
                        (int)spec->activation);
    if (pc__convolve_check("conv2d", in, out, layer.spec.dilation, &layer.spec.groups) != PC_OK ||
        lay_same(&layer) != PC_OK)
        return NULL;
    pc_module *module = pc_module_new(&pc__conv2d_class, sizeof(pc__conv2d_layer));
    if (!module)
        return NULL;
    *(pc__conv2d_layer *)pc_module_data(module) = layer;
    if (pc__add_weights(module, PC_SHAPE(out, in / layer.spec.groups, kernel[0], kernel[1]), no_bias, init) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

void pc__pair_of(int to[2], const int apart[2], int both, int otherwise)
{
    for (int i = 0; i < 2; i++) {
        to[i] = apart[0] || apart[1] ? apart[i] : both;
        to[i] = to[i] ? to[i] : otherwise;
    }
}

pc_module *pc_conv2d_new(int64_t in, int64_t out, int kernel, pc_conv2d_options options)
{
    int taps[2];
    pc_fn_conv2d_options spec = {.activation = options.activation, .groups = options.groups, .same = options.same};
    pc__pair_of(taps, options.kernel_size, kernel, 0);
    pc__pair_of(spec.stride, options.strides, options.stride, 1);
    pc__pair_of(spec.padding, options.paddings, options.padding, 0);
    pc__pair_of(spec.dilation, options.dilations, options.dilation, 1);
    return pc__conv2d_layer_new(in, out, taps, &spec, options.no_bias, options.init);
}
