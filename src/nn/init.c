/* init.c: initial weights. */
#include "nn/init.h"

#include "ops/factory.h"
#include "tensor/read.h"

#include <math.h>

static double limit_of(pc_init_kind kind, int64_t fan_in, int64_t fan_out)
{
    if (kind == PC_INIT_TORCH)
        return 1 / sqrt((double)PC__MAX(fan_in, 1));
    if (kind == PC_INIT_GLOROT)
        return sqrt(6.0 / (double)PC__MAX(fan_in + fan_out, 1));
    return sqrt(6.0 / (double)PC__MAX(fan_in, 1));
}

pc_tensor *pc_init_weight(pc_shape shape, pc_init_kind kind, int64_t fan_in, int64_t fan_out)
{
    if ((unsigned)kind >= PC_INIT_KINDS)
        return pc__null(PC_ERR_ARGUMENT, "pc_init_weight: there is no initialiser %d", (int)kind);
    pc_tensor *t = pc_empty(shape, PC_F32, PC_DEVICE_CPU);
    double limit = limit_of(kind, fan_in, fan_out);
    return t && pc__fill_uniform(t, -limit, limit) == PC_OK ? t : pc__tensor_discard(t);
}

pc_status pc__add_weights_and(pc_module *module, pc_shape shape, int64_t biases, pc_init_kind kind)
{
    int64_t window = pc__count(shape.ndim - 2, shape.dim + 2);
    int64_t fan_in = shape.dim[1] * window, fan_out = shape.dim[0] * window;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *weight = pc_init_weight(shape, kind, fan_in, fan_out);
        status = pc_module_add_parameter(module, "weight", weight);
        if (status != PC_OK || !biases)
            break;
        pc_tensor *bias = kind == PC_INIT_TORCH ? pc_init_weight(PC_SHAPE(biases), kind, fan_in, fan_out)
                                                : pc_zeros(PC_SHAPE(biases), PC_F32, PC_DEVICE_CPU);
        status = pc_module_add_parameter(module, "bias", bias);
    }
    return status;
}

pc_status pc__add_weights(pc_module *module, pc_shape shape, bool no_bias, pc_init_kind kind)
{
    return pc__add_weights_and(module, shape, no_bias ? 0 : shape.dim[0], kind);
}
