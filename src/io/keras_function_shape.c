/* keras_function_shape.c: layers that move, frame, repeat or sum up, without weights. */
#include "io/keras_function.h"

#include "ops/table.h"

PC__KERAS_APPLY(pc__keras_apply_global_mean)
{
    (void)module, (void)count;
    return pc_mean_dims(in[0], PC_SHAPE(1, 2), layer->keep);
}

PC__KERAS_APPLY(pc__keras_apply_global_max)
{
    (void)module, (void)count;
    return pc_max_dim(pc_max_dim(in[0], 1, layer->keep, NULL), layer->keep ? 2 : 1, layer->keep, NULL);
}

/* x with `n` rows of zeros before (or behind) along a dimension. */
static pc_tensor *edge(pc_tensor *x, int dim, int64_t n, bool before)
{
    if (!x || !n)
        return x;
    pc_shape shape = pc_tensor_shape(x);
    shape.dim[dim] = n;
    pc_tensor *zeros = pc_zeros(shape, x->dtype, pc_tensor_device(x));
    pc_tensor *parts[2] = {before ? zeros : x, before ? x : zeros};
    return pc_cat(parts, 2, dim);
}

pc_tensor *pc__keras_frame(pc_tensor *x, const int64_t border[4])
{
    for (int i = 0; i < 4; i++)
        x = edge(x, 1 + i / 2, border[i], i % 2 == 0);
    return x;
}

PC__KERAS_APPLY(pc__keras_apply_padding)
{
    (void)module, (void)count;
    const int *b = layer->border;
    return pc__keras_frame(in[0], (int64_t[]){b[0], b[1], b[2], b[3]});
}

PC__KERAS_APPLY(pc__keras_apply_cropping)
{
    (void)module, (void)count;
    pc_tensor *x = in[0];
    for (int i = 0; i < 2 && x; i++) {
        int64_t from = layer->border[2 * i], to = x->shape[1 + i] - layer->border[2 * i + 1];
        if (from >= to)
            return pc__null(PC_ERR_SHAPE, "layer \"%.60s\" cuts all of a picture away", layer->name);
        x = pc_slice(x, 1 + i, from, to, 1);
    }
    return x;
}

PC__KERAS_APPLY(pc__keras_apply_up_sampling)
{
    (void)module, (void)count;
    const int64_t n = in[0]->shape[0], h = in[0]->shape[1], w = in[0]->shape[2], c = in[0]->shape[3];
    const int64_t a = layer->window[0], b = layer->window[1];
    pc_tensor *apart = pc_expand(pc_reshape(in[0], PC_SHAPE(n, h, 1, w, 1, c)), PC_SHAPE(n, h, a, w, b, c));
    return pc_reshape(apart, PC_SHAPE(n, h * a, w * b, c));
}

PC__KERAS_APPLY(pc__keras_apply_flatten)
{
    (void)module, (void)layer, (void)count;
    return in[0]->ndim > 1 ? pc_flatten_from(in[0], 1) : pc_unsqueeze(in[0], 1);
}

PC__KERAS_APPLY(pc__keras_apply_reshape)
{
    (void)module, (void)count;
    pc_shape shape = {.ndim = 1 + layer->rank, .dim = {in[0]->shape[0]}};
    for (int i = 0; i < layer->rank; i++)
        shape.dim[1 + i] = layer->target[i];
    return pc_reshape(in[0], shape);
}

PC__KERAS_APPLY(pc__keras_apply_permute)
{
    (void)module, (void)count;
    pc_shape order = {.ndim = 1 + layer->rank};
    for (int i = 0; i < layer->rank; i++)
        order.dim[1 + i] = layer->target[i];
    return pc_permute(in[0], order);
}

/* A channel is dropped as a whole. */
PC__KERAS_APPLY(pc__keras_apply_spatial_dropout)
{
    (void)count;
    if (!pc_module_is_training(module))
        return in[0];
    pc_shape shape = PC_SHAPE(in[0]->shape[0], 1, 1, in[0]->shape[3]);
    return pc_mul(in[0], pc_fn_dropout(pc_ones(shape, in[0]->dtype, pc_tensor_device(in[0])), layer->rate));
}

PC__KERAS_APPLY(pc__keras_apply_noise)
{
    (void)count;
    if (!pc_module_is_training(module))
        return in[0];
    return pc__null(PC_ERR_UNSUPPORTED,
                    "layer \"%.60s\" (%.60s) can be used, but not trained with: pc_module_set_training(net, false)",
                    layer->name, layer->class_name);
}

/* Fewer dimensions stand for the last ones behind the batch. */
static pc_tensor *widen(pc_tensor *x, int ndim)
{
    if (!x || x->ndim == ndim)
        return x;
    pc_shape shape = {.ndim = ndim, .dim = {x->shape[0]}};
    for (int i = 1; i < ndim; i++)
        shape.dim[i] = i <= ndim - x->ndim ? 1 : x->shape[i - (ndim - x->ndim)];
    return pc_reshape(x, shape);
}

static pc_tensor *join_two(pc__keras_kind kind, pc_tensor *a, pc_tensor *b)
{
    switch (kind) {
    case PC__KERAS_SUBTRACT:
        return pc_sub(a, b);
    case PC__KERAS_MULTIPLY:
        return pc_mul(a, b);
    case PC__KERAS_MAXIMUM:
        return pc_where(pc_gt(a, b), a, b);
    case PC__KERAS_MINIMUM:
        return pc_where(pc_lt(a, b), a, b);
    default:
        return pc_add(a, b);
    }
}

PC__KERAS_APPLY(pc__keras_apply_join)
{
    (void)module;
    int ndim = 0;
    for (int i = 0; i < count; i++)
        ndim = PC__MAX(ndim, in[i]->ndim);
    pc_tensor *y = widen(in[0], ndim);
    for (int i = 1; i < count && y; i++)
        y = join_two(layer->kind, y, widen(in[i], ndim));
    return layer->kind == PC__KERAS_AVERAGE ? pc_div_scalar(y, count) : y;
}

PC__KERAS_APPLY(pc__keras_apply_concatenate)
{
    (void)module;
    return pc_cat(in, count, pc__keras_axis(layer, in[0]->ndim - 1) + 1);
}

static pc_tensor *channel(pc_tensor *x, int64_t at)
{
    return pc_slice(x, 3, at, at + 1, 1);
}

PC__KERAS_APPLY(pc__keras_apply_channels)
{
    (void)module, (void)count;
    const int64_t n = in[0]->shape[3], at = layer->target[0];
    if (!layer->invert)
        return pc_squeeze(channel(in[0], at < 0 ? at + n : at), 3);
    pc_tensor **parts = pc__calloc((size_t)n, sizeof *parts), *y = NULL;
    for (int64_t i = 0; parts && i < n; i++)
        parts[i] = channel(in[0], n - 1 - i);
    y = parts ? pc_cat(parts, (int)n, 3) : NULL;
    pc__free(parts);
    return y;
}

PC__KERAS_APPLY(pc__keras_apply_stack)
{
    (void)module, (void)layer;
    pc_tensor **parts = pc__calloc((size_t)count, sizeof *parts), *y = NULL;
    for (int i = 0; parts && i < count; i++)
        parts[i] = pc_unsqueeze(in[i], 3);
    y = parts ? pc_cat(parts, count, 3) : NULL;
    pc__free(parts);
    return y;
}
