/* net.c: cases of a network's training step. */
#include "drawn/drawn.h"

#include <math.h>
#include <string.h>

enum { PARAMETERS_MOST = 2 * WORDS_MOST };

static pc_tensor *loss_of(drawn *d)
{
    pc_tensor *loss = NULL;
    PC_AUTOCAST(d->sixteen ? PC_BF16 : PC_F32) {
        pc_tensor *y = pc_forward(d->net, d->x);
        loss = d->loss == CROSS_ENTROPY ? pc_cross_entropy(y, d->y)
               : d->loss == BCE         ? pc_bce_with_logits(y, d->y)
                                        : pc_mse(y, d->y);
    }
    return loss;
}

static pc_status net_go(void *context)
{
    drawn *d = context;
    pc_status status;
    PC_SCOPE {
        status = pc_backward(loss_of(d));
        if (status == PC_OK)
            status = pc_optimizer_step(d->optimizer);
    }
    return status;
}

/* Weights by the formula, as large as He and others say; biases a tenth of it. */
static pc_status set_weights(pc_module *net)
{
    pc_parameter list[PARAMETERS_MOST];
    const int count = pc_module_parameter_list(net, list, PARAMETERS_MOST);
    for (int i = 0; i < count; i++) {
        const pc_shape shape = pc_tensor_shape(list[i].tensor);
        double fan = 1;
        for (int k = 1; k < shape.ndim; k++)
            fan *= (double)shape.dim[k];
        list[i].tensor =
            numbers_of(shape, 100 + (uint32_t)i, ANY, shape.ndim > 1 ? sqrt(6 / fan) : 0.1, PC_F32, PC_DEVICE_CPU);
        if (!list[i].tensor)
            return pc_error_last()->status;
    }
    return pc_module_load(net, list, count);
}

static pc_status make_targets(drawn *d)
{
    pc_tensor *y = NULL;
    PC_NO_GRAD
        y = pc_forward(d->net, d->x);
    if (!y)
        return pc_error_last()->status;
    const pc_shape shape = pc_tensor_shape(y);
    const char *loss = word_of(&d->words, "loss");
    d->loss = loss && strcmp(loss, "ce") == 0 ? CROSS_ENTROPY : loss && strcmp(loss, "bce") == 0 ? BCE : MSE;
    y = d->loss == CROSS_ENTROPY
            ? labels_of(shape.dim[0], shape.dim[1], d->device)
            : pc_cast(numbers_of(shape, 50, d->loss == BCE ? TRUTH : ANY, 1, PC_F32, d->device), PC_F32);
    d->y = pc_keep(y);
    return y ? PC_OK : pc_error_last()->status;
}

static pc_status make(drawn *d)
{
    const char *optimizer = word_of(&d->words, "opt"), *x = word_of(&d->words, "x");
    d->x = pc_keep(tensor_of(x ? x : "", 1, ANY, PC_F32, d->device));
    d->net = net_of(&d->words, pc_tensor_shape(d->x));
    if (!d->x || !d->net || set_weights(d->net) != PC_OK || pc_module_to(d->net, d->device, PC_F32) != PC_OK ||
        make_targets(d) != PC_OK)
        return pc_error_last()->status;
    d->optimizer = optimizer && strcmp(optimizer, "adam") == 0 ? pc_adam(d->net, .lr = 1e-4)
                                                               : pc_sgd(d->net, .lr = 1e-3, .momentum = 0.9);
    d->step = d->optimizer ? pc_step_new(net_go, d, d->optimizer) : NULL;
    return d->step ? PC_OK : pc_error_last()->status;
}

pc_status net_begin(drawn *d)
{
    pc_status status;
    d->go = net_go;
    d->sixteen = d->dtype == PC_BF16;
    PC_SCOPE {
        status = make(d);
    }
    return status;
}

/* All gradients as one: that of the parameters in a row. */
static pc_status tell_gradients(const drawn *d)
{
    pc_parameter list[PARAMETERS_MOST];
    const int count = pc_module_parameter_list(d->net, list, PARAMETERS_MOST);
    pc_tensor *parts[PARAMETERS_MOST];
    for (int i = 0; i < count; i++)
        parts[i] = pc_reshape(pc_grad(list[i].tensor), PC_SHAPE(-1));
    pc_tensor *all = NULL;
    PC_NO_GRAD
        all = pc_cat(parts, count, 0);
    return all ? tell("gradients", all) : pc_error_last()->status;
}

/* Without dropout, whose zeros are drawn: result, loss, gradients, and the loss after the step. */
pc_status net_tell(drawn *d)
{
    pc_status status;
    pc_module_set_training(d->net, false);
    PC_SCOPE {
        pc_tensor *y = NULL, *loss = loss_of(d), *after = NULL;
        PC_NO_GRAD {
            PC_AUTOCAST(d->sixteen ? PC_BF16 : PC_F32)
                y = pc_forward(d->net, d->x);
        }
        status = y && loss ? tell("result", y) : pc_error_last()->status;
        if (status == PC_OK && (status = tell("loss", loss)) == PC_OK && (status = pc_backward(loss)) == PC_OK &&
            (status = tell_gradients(d)) == PC_OK && (status = pc_optimizer_step(d->optimizer)) == PC_OK) {
            PC_NO_GRAD
                after = loss_of(d);
            status = after ? tell("after", after) : pc_error_last()->status;
        }
    }
    pc_module_set_training(d->net, true);
    return status;
}
