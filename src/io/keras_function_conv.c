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

/* (kh, kw, in, out) with dilation - 1 zeros between its rows and columns. */
static pc_tensor *dilate(const pc__keras_layer *layer, pc_tensor *w)
{
    for (int i = 0; i < 2 && w; i++) {
        int64_t d = layer->dilation[i];
        if (d <= 1)
            continue;
        pc_tensor *apart = pc_unsqueeze(w, i + 1);
        if (!apart)
            return NULL;
        pc_shape gap = pc_tensor_shape(apart), whole = pc_tensor_shape(w);
        gap.dim[i + 1] = d - 1;
        pc_tensor *parts[2] = {apart, pc_zeros(gap, w->dtype, pc_tensor_device(w))};
        int64_t reach = (whole.dim[i] - 1) * d + 1;
        whole.dim[i] *= d;
        w = pc_slice(pc_reshape(pc_cat(parts, 2, i + 1), whole), i, 0, reach, 1);
    }
    return w;
}

/* x [n, h, w, in], w (kh, kw, in, out) */
static pc_tensor *convolve(const pc__keras_layer *layer, pc_tensor *x, pc_tensor *w)
{
    pc_fn_conv2d_options spec = {.stride = {layer->stride[0], layer->stride[1]}};
    pc_tensor *own = pc_contiguous(pc_permute(w, PC_SHAPE(3, 2, 0, 1)));
    pc_tensor *y = pc_fn_conv2d(pc_permute(x, PC_SHAPE(0, 3, 1, 2)), own, NULL, spec);
    return pc_permute(y, PC_SHAPE(0, 2, 3, 1));
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
    const int groups = PC__MAX(layer->groups, 1);
    pc_tensor *x = pad_same(layer, in[0]), *w = dilate(layer, weight(module, "kernel"));
    if (!x || !w || groups == 1)
        return finish(module, layer, convolve(layer, x, w));
    int64_t take = x->shape[3] / groups, give = w->shape[3] / groups;
    pc_tensor **parts = pc__calloc((size_t)groups, sizeof *parts);
    for (int g = 0; g < groups && parts; g++)
        parts[g] =
            convolve(layer, pc_slice(x, 3, g * take, (g + 1) * take, 1), pc_slice(w, 3, g * give, (g + 1) * give, 1));
    pc_tensor *y = parts ? pc_cat(parts, groups, 3) : NULL;
    pc__free(parts);
    return finish(module, layer, y);
}

/* Every channel by itself: windows of one row and column moved over the picture, times their weights, added up. */
static pc_tensor *depthwise(const pc__keras_layer *layer, pc_tensor *x, pc_tensor *w)
{
    x = pad_same(layer, x);
    if (!x || !w)
        return NULL;
    int64_t size[2], dilation[2], m = w->shape[3], c = x->shape[3];
    for (int i = 0; i < 2; i++) {
        dilation[i] = PC__MAX(layer->dilation[i], 1);
        size[i] = (x->shape[1 + i] - ((int64_t)(layer->window[i] - 1) * dilation[i] + 1)) / layer->stride[i] + 1;
    }
    pc_tensor *sum = NULL;
    for (int64_t i = 0; i < (int64_t)layer->window[0] * layer->window[1]; i++) {
        pc_tensor *part = x, *times = w;
        int64_t at[2] = {i / layer->window[1], i % layer->window[1]};
        for (int d = 0; d < 2; d++) {
            int64_t from = at[d] * dilation[d];
            part = pc_slice(part, 1 + d, from, from + (size[d] - 1) * layer->stride[d] + 1, layer->stride[d]);
            times = pc_slice(times, d, at[d], at[d] + 1, 1);
        }
        part = pc_mul(m > 1 ? pc_unsqueeze(part, 4) : part, pc_reshape(times, m > 1 ? PC_SHAPE(c, m) : PC_SHAPE(c)));
        sum = i ? pc_add(sum, part) : part;
        if (!sum)
            return NULL;
    }
    return m > 1 ? pc_reshape(sum, PC_SHAPE(x->shape[0], size[0], size[1], c * m)) : sum;
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
    return finish(module, layer, convolve(&plain, y, weight(module, "pointwise_kernel")));
}

PC__KERAS_APPLY(pc__keras_apply_dense)
{
    (void)count;
    return finish(module, layer, pc_matmul(in[0], weight(module, "kernel")));
}
