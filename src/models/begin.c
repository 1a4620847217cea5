/* begin.c: the first weights of networks, as torchvision draws them. */
#include "models/models.h"

#include <math.h>
#include <paracord/no_grad.h>

pc_status pc__picture_normal(pc_tensor *t, double deviation)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *drawn = deviation > 0 ? pc_randn(pc_tensor_shape(t), PC_F32, PC_DEVICE_CPU) : NULL;
            if (deviation > 0)
                status = drawn ? pc_copy(t, pc_mul_scalar(drawn, deviation)) : pc_error_last()->status;
            else
                status = pc_fill(t, 0);
        }
    }
    return status;
}

/* The number of inputs of a layer's weight: of a bias it is that of the weight in front of it. */
static pc_status begin(void *context, const char *name, pc__named *parameter)
{
    const pc__picture_begin *how = context;
    pc_tensor *t = parameter->object;
    (void)name;
    if (t->ndim == 4 && how->convolutions)
        return pc__picture_normal(t, sqrt(2.0 / (double)(t->shape[0] * t->shape[2] * t->shape[3])));
    if (t->ndim == 2 && how->linear > 0)
        return pc__picture_normal(t, how->linear);
    return t->ndim == 1 && strcmp(parameter->name, "bias") == 0 && how->linear > 0 ? pc__picture_normal(t, 0) : PC_OK;
}

pc_module *pc__picture_began(pc_module *net, pc__picture_begin how)
{
    if (!net || pc__module_each(net, begin, &how) == PC_OK)
        return net;
    pc_module_free(net);
    return NULL;
}
