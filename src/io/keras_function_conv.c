/* keras_function_conv.c: convolutions that our own layer has no options for: dilated, grouped, depthwise, separable,
 * with other activations; and dense layers with those. */
#include "io/keras_function.h"

#include "ops/table.h"

static pc_tensor *weight(const pc_module *module, const char *word)
{
    return pc__module_own(module, word);
}

/* x with the zeros of padding "same" around it, which depend on its size. */
static pc_tensor *pad_same(const pc__keras_layer *layer, pc_tensor *x)
{
    int64_t border[4] = {0};
    for (int i = 0; i < 2 && layer->same; i++) {
        pc__same zeros =
            pc__keras_same(x->shape[1 + i], layer->window[i], PC__MAX(layer->dilation[i], 1), layer->stride[i]);
        border[2 * i] = zeros.before, border[2 * i + 1] = zeros.behind;
    }
    return pc__keras_frame(x, border);
}

/* x [n, h, w, in], own [out, in / groups, kh, kw] */
static pc_tensor *convolve(const pc__keras_layer *layer, pc_tensor *x, pc_tensor *own, int64_t groups)
{
    const pc_fn_conv2d_options spec = {.stride = {layer->stride[0], layer->stride[1]},
                                       .dilation = {layer->dilation[0], layer->dilation[1]},
                                       .groups = (int)groups};
    pc_tensor *y = own ? pc_fn_conv2d(pc_permute(x, PC_SHAPE(0, 3, 1, 2)), pc_contiguous(own), NULL, spec) : NULL;
    return y ? pc_permute(y, PC_SHAPE(0, 2, 3, 1)) : NULL;
}

/* Of (kh, kw, in / groups, out). */
static pc_tensor *own_weight(pc_tensor *w)
{
    return pc_permute(w, PC_SHAPE(3, 2, 0, 1));
}

static pc_tensor *finish(const pc_module *module, const pc__keras_layer *layer, pc_tensor *y)
{
    if (layer->use_bias)
        y = pc_add(y, weight(module, "bias"));
    return pc__keras_activate(layer, y);
}

PC__KERAS_APPLY(pc__keras_apply_conv2d)
{
    (void)count;
    pc_tensor *x = pad_same(layer, in[0]), *w = own_weight(weight(module, "kernel"));
    return finish(module, layer, x ? convolve(layer, x, w, PC__MAX(layer->groups, 1)) : NULL);
}

/* Every channel by itself: w (kh, kw, in, filters of each). */
static pc_tensor *depthwise(const pc__keras_layer *layer, pc_tensor *x, pc_tensor *w)
{
    const int64_t c = w->shape[2], out = c * w->shape[3];
    pc_tensor *own = pc_permute(w, PC_SHAPE(2, 3, 0, 1));
    own = own ? pc_reshape(own, PC_SHAPE(out, 1, w->shape[0], w->shape[1])) : NULL;
    x = pad_same(layer, x);
    return x ? convolve(layer, x, own, c) : NULL;
}

PC__KERAS_APPLY(pc__keras_apply_depthwise)
{
    (void)count;
    return finish(module, layer, depthwise(layer, in[0], weight(module, "depthwise_kernel")));
}

PC__KERAS_APPLY(pc__keras_apply_separable)
{
    (void)count;
    static const pc__keras_layer plain = {.window = {1, 1}, .stride = {1, 1}};
    pc_tensor *y = depthwise(layer, in[0], weight(module, "depthwise_kernel"));
    return finish(module, layer, y ? convolve(&plain, y, own_weight(weight(module, "pointwise_kernel")), 1) : NULL);
}

PC__KERAS_APPLY(pc__keras_apply_dense)
{
    (void)count;
    return finish(module, layer, pc_matmul(in[0], weight(module, "kernel")));
}
