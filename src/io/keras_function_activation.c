/* keras_function_activation.c: Keras's activations, put together from ops. */
#include "io/keras_function.h"

#include "ops/table.h"

#include <math.h>

static pc_tensor *number(const pc_tensor *like, double value)
{
    return like ? pc_scalar(value, like->dtype, pc_tensor_device(like)) : NULL;
}

/* No more, and no less, than a number; NaN stays. */
static pc_tensor *at_most(pc_tensor *x, double most)
{
    pc_tensor *bound = number(x, most);
    return pc_where(pc_gt(x, bound), bound, x);
}

static pc_tensor *at_least(pc_tensor *x, double least)
{
    pc_tensor *bound = number(x, least);
    return pc_where(pc_lt(x, bound), bound, x);
}

static pc_tensor *magnitude(pc_tensor *x)
{
    return pc_add(pc_relu(x), pc_relu(pc_neg(x)));
}

/* slope * x below zero */
static pc_tensor *leaky(pc_tensor *x, double slope)
{
    return pc_sub(pc_relu(x), pc_mul_scalar(pc_relu(pc_neg(x)), slope));
}

/* x above the threshold, at most the limit; slope * (x - threshold) below. */
static pc_tensor *relu(const pc__keras_layer *layer, pc_tensor *x)
{
    pc_tensor *y = x;
    if (layer->threshold == 0)
        y = layer->slope == 0 ? pc_relu(x) : leaky(x, layer->slope);
    else
        y = pc_where(pc_gt(x, number(x, layer->threshold)), x,
                     pc_mul_scalar(pc_sub_scalar(x, layer->threshold), layer->slope));
    return layer->limit > 0 ? at_most(y, layer->limit) : y;
}

/* exp(x) - 1 times a factor below zero */
static pc_tensor *elu(pc_tensor *x, double factor)
{
    return pc_add(pc_relu(x), pc_mul_scalar(pc_sub_scalar(pc_exp(pc_neg(pc_relu(pc_neg(x)))), 1), factor));
}

/* log(1 + exp(x)), for large numbers too */
static pc_tensor *softplus(pc_tensor *x)
{
    return pc_add(pc_relu(x), pc_log(pc_add_scalar(pc_exp(pc_neg(magnitude(x))), 1)));
}

/* (x / width + 1/2) within 0 and 1 */
static pc_tensor *hard_sigmoid(pc_tensor *x, double width)
{
    return at_most(pc_relu(pc_add_scalar(pc_div_scalar(x, width), 0.5)), 1);
}

pc_tensor *pc__keras_activate(const pc__keras_layer *layer, pc_tensor *x)
{
    if (!x)
        return NULL;
    switch (layer->activation) {
    case PC__KERAS_RELU:
        return relu(layer, x);
    case PC__KERAS_SIGMOID:
        return pc_sigmoid(x);
    case PC__KERAS_TANH:
        return pc_tanh(x);
    case PC__KERAS_SOFTMAX:
        return pc_softmax(x, x->ndim - 1);
    case PC__KERAS_LOG_SOFTMAX:
        return pc_log_softmax(x, x->ndim - 1);
    case PC__KERAS_RELU6:
        return at_most(pc_relu(x), 6);
    case PC__KERAS_LEAKY_RELU:
        return leaky(x, layer->slope);
    case PC__KERAS_ELU:
        return elu(x, layer->slope);
    case PC__KERAS_SELU: /* Klambauer et al. 2017 */
        return pc_mul_scalar(elu(x, 1.6732632423543772), 1.0507009873554805);
    case PC__KERAS_GELU:
        return pc_gelu(x);
    case PC__KERAS_GELU_TANH:
        return pc_gelu_tanh(x);
    case PC__KERAS_SILU:
        return pc_silu(x);
    case PC__KERAS_SOFTPLUS:
        return softplus(x);
    case PC__KERAS_SOFTSIGN:
        return pc_div(x, pc_add_scalar(magnitude(x), 1));
    case PC__KERAS_HARD_SIGMOID:
        return hard_sigmoid(x, 6);
    case PC__KERAS_HARD_SIGMOID_2:
        return hard_sigmoid(x, 5);
    case PC__KERAS_HARD_SILU:
        return pc_mul(x, hard_sigmoid(x, 6));
    case PC__KERAS_HARD_TANH:
        return at_least(at_most(x, 1), -1);
    case PC__KERAS_MISH:
        return pc_mul(x, pc_tanh(softplus(x)));
    case PC__KERAS_EXPONENTIAL:
        return pc_exp(x);
    case PC__KERAS_LOG_SIGMOID:
        return pc_neg(softplus(pc_neg(x)));
    default:
        return x;
    }
}

PC__KERAS_APPLY(pc__keras_apply_activation)
{
    (void)module, (void)count;
    return pc__keras_activate(layer, in[0]);
}
