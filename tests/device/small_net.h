/* small_net.h: a convolution network and its training step on sim:0, for tests that let it go wrong. Nothing here
 * checks anything: what fails, fails. */
#ifndef PC_TEST_SMALL_NET_H
#define PC_TEST_SMALL_NET_H

#include "sim_support.h"

enum { SIDE = 12, CLASSES = 3 };

typedef struct small_net {
    pc_module *net;
    pc_optimizer *optimizer;
} small_net;

static inline bool small_net_new(small_net *s)
{
    pc_seed(7);
    *s = (small_net){0};
    s->net = pc_sequential(pc_conv2d(3, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                           pc_linear(100, 8, .activation = PC_ACTIVATION_TANH), pc_linear(8, CLASSES));
    if (!s->net || pc_module_to(s->net, sim(0), PC_F32) != PC_OK)
        return false;
    s->optimizer = pc_adam(s->net, .lr = 1e-2);
    return s->optimizer != NULL;
}

static inline void small_net_free(small_net *s)
{
    pc_optimizer_free(s->optimizer);
    pc_module_free(s->net);
}

/* Pictures and labels in pinned memory. */
static inline bool small_batch(int64_t n, pc_tensor **pictures, pc_tensor **labels)
{
    *pictures = pc_empty_pinned(PC_SHAPE(n, 3, SIDE, SIDE), PC_F32, sim(0));
    *labels = pc_empty_pinned(PC_SHAPE(n), PC_I64, sim(0));
    if (!*pictures || !*labels)
        return false;
    float *p = pc_map(*pictures, PC_MAP_WRITE);
    int64_t *l = pc_map(*labels, PC_MAP_WRITE);
    for (int64_t i = 0; p && i < pc_tensor_count(*pictures); i++)
        p[i] = (float)(i * 37 % 101) / 101;
    for (int64_t i = 0; l && i < n; i++)
        l[i] = i * 5 % CLASSES;
    return p && l && pc_unmap(*pictures) == PC_OK && pc_unmap(*labels) == PC_OK;
}

/* Forward, backward, and the optimiser's step; the loss, of the innermost scope, or NULL. */
static inline pc_tensor *small_net_learn(const small_net *s, pc_tensor *x, pc_tensor *labels)
{
    pc_module_zero_grad(s->net);
    pc_tensor *loss = pc_cross_entropy(pc_forward(s->net, x), labels);
    return pc_backward(loss) == PC_OK && pc_optimizer_step(s->optimizer) == PC_OK ? loss : NULL;
}

/* The same with the copies to the device, and the loss brought back to *value. */
static inline bool small_net_step(const small_net *s, int64_t batch, double *value)
{
    bool fine = false;
    PC_SCOPE {
        pc_tensor *pictures, *labels;
        if (small_batch(batch, &pictures, &labels)) {
            pc_tensor *x = pc_to(pictures, sim(0), PC_F32, true), *y = pc_to(labels, sim(0), PC_I64, true);
            pc_tensor *loss = small_net_learn(s, x, y);
            *value = pc_item(loss);
            fine = loss && !pc_failed();
        }
    }
    return fine;
}

#endif
