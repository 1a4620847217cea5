/* zero.h: what trainings by pc_zero are tried on: layers of ReLUs that learn to give nothing. */
#ifndef PC_TEST_DIST_ZERO_H
#define PC_TEST_DIST_ZERO_H

#include "dist/threads.h"

#include <paracord/amp.h>

enum { SQUARE_LAYERS_MOST = 16 };

/* `layers` of [width] -> [width], the same each time; NULL: none. */
static inline pc_module *square_layers(pc_device device, int layers, int64_t width)
{
    pc_module *layer[SQUARE_LAYERS_MOST];
    pc_seed(5);
    for (int i = 0; i < layers; i++)
        layer[i] = pc_linear(width, width, .activation = PC_ACTIVATION_RELU);
    pc_module *net = pc_sequential_new(layer, layers);
    return net && pc_module_to(net, device, PC_F32) == PC_OK ? net : NULL;
}

/* Gradients of the mean of squares, in bfloat16 where it is `half`; and a step, by the zero where there is one. */
static inline pc_status learn_squares(pc_module *net, pc_tensor *x, bool half, pc_zero *zero, pc_optimizer *optimizer)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_AUTOCAST(half ? PC_BF16 : PC_F32) {
            pc_tensor *y = pc_cast(pc_forward(net, x), PC_F32);
            status = pc_backward(pc_mean(pc_mul(y, y)));
        }
        if (status == PC_OK)
            status = zero ? pc_zero_step(zero, optimizer) : pc_optimizer_step(optimizer);
    }
    return status;
}

#endif
