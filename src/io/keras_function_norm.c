/* keras_function_norm.c: layers that scale and shift: rescaling and the normalisations, all along the last dimension.
 */
#include "io/keras_function.h"

#include "ops/number.h"
#include "ops/table.h"

PC__KERAS_APPLY(pc__keras_apply_rescaling)
{
    (void)count;
    if (layer->weight_count)
        return pc_add(pc_mul(in[0], pc__module_own(module, "scale")), pc__module_own(module, "offset"));
    pc_tensor *y = layer->scale == 1 ? in[0] : pc_mul_scalar(in[0], layer->scale);
    return layer->offset == 0 ? y : pc_add_scalar(y, layer->offset);
}

/* Keras divides by no less than this. */
#define DEVIATION_LEAST 1e-7

PC__KERAS_APPLY(pc__keras_apply_normalization)
{
    (void)count;
    pc_tensor *mean = pc__module_own(module, "mean"), *deviation = pc_sqrt(pc__module_own(module, "variance"));
    if (!mean || !deviation)
        return NULL;
    pc_tensor *least = pc_scalar(DEVIATION_LEAST, deviation->dtype, pc_tensor_device(deviation));
    deviation = pc_where(pc_lt(deviation, least), least, deviation);
    if (layer->invert)
        return pc_add(mean, pc_mul(in[0], deviation));
    return pc_div(pc_sub(in[0], mean), deviation);
}

PC__KERAS_APPLY(pc__keras_apply_batch_norm)
{
    (void)count;
    if (!layer->frozen && pc_module_is_training(module))
        return pc__null(PC_ERR_UNSUPPORTED,
                        "layer \"%.60s\" (BatchNormalization) can be used with its stored means, but not trained yet: "
                        "pc_module_set_training(net, false)",
                        layer->name);
    pc_tensor *gamma = pc__module_own(module, "gamma"), *beta = pc__module_own(module, "beta");
    pc_tensor *root = pc_sqrt(pc_add_scalar(pc__module_own(module, "moving_variance"), layer->epsilon));
    if (!root)
        return NULL;
    pc_tensor *scale = gamma ? pc_div(gamma, root) : pc__with_number(PC__OP_div, root, 1, true);
    pc_tensor *shift = pc_neg(pc_mul(pc__module_own(module, "moving_mean"), scale));
    return pc_add(pc_mul(in[0], scale), beta ? pc_add(shift, beta) : shift);
}

PC__KERAS_APPLY(pc__keras_apply_layer_norm)
{
    (void)count;
    pc_tensor *x = in[0], *gamma = pc__module_own(module, "gamma"), *beta = pc__module_own(module, "beta");
    const pc_shape last = PC_SHAPE(x->ndim - 1);
    pc_tensor *centred = pc_sub(x, pc_mean_dims(x, last, true));
    pc_tensor *variance = pc_mean_dims(pc_mul(centred, centred), last, true);
    pc_tensor *y = pc_div(centred, pc_sqrt(pc_add_scalar(variance, layer->epsilon)));
    y = gamma ? pc_mul(y, gamma) : y;
    return beta ? pc_add(y, beta) : y;
}

PC__KERAS_APPLY(pc__keras_apply_prelu)
{
    (void)layer, (void)count;
    return pc_sub(pc_relu(in[0]), pc_mul(pc__module_own(module, "alpha"), pc_relu(pc_neg(in[0]))));
}
