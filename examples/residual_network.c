/* residual_network.c: a network of blocks of one's own, which have their layers by name, learns whether the stripes of a
 * noisy picture go across or down. peers/residual_network.py is the same in PyTorch. */
#include <paracord.h>

enum { BATCH = 32, SIZE = 16, STEPS = 40 };

static pc_tensor *block_forward(pc_module *block, pc_tensor *x)
{
    pc_tensor *y = pc_relu(pc_forward_child(block, "bn1", pc_forward_child(block, "conv1", x)));
    y = pc_forward_child(block, "bn2", pc_forward_child(block, "conv2", y));
    return pc_relu(pc_add(y, pc_forward_child(block, "shortcut", x)));
}

static pc_module *conv(int in, int out, int kernel, int stride)
{
    return pc_conv2d(in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true);
}

static pc_module *block(int in, int out, int stride)
{
    static const pc_module_class type = {.name = "Block", .forward = block_forward};
    return pc_module_of(&type, {"conv1", conv(in, out, 3, stride)}, {"bn1", pc_batch_norm2d(out)},
                        {"conv2", conv(out, out, 3, 1)}, {"bn2", pc_batch_norm2d(out)},
                        {"shortcut", pc_sequential(conv(in, out, 1, stride), pc_batch_norm2d(out))});
}

static pc_tensor *network_forward(pc_module *net, pc_tensor *x)
{
    x = pc_forward_child(net, "blocks", pc_forward_child(net, "stem", x));
    return pc_forward_child(net, "head", pc_mean_dims(x, PC_SHAPE(2, 3), false));
}

static pc_module *network(void)
{
    static const pc_module_class type = {.name = "Network", .forward = network_forward};
    return pc_module_of(&type, {"stem", pc_sequential(conv(1, 8, 3, 1), pc_batch_norm2d(8))},
                        {"blocks", pc_sequential(block(8, 8, 1), block(8, 16, 2), block(16, 32, 2))},
                        {"head", pc_linear(32, 2)});
}

/* Pictures [BATCH, 1, SIZE, SIZE] and their labels [BATCH]. */
static pc_tensor *draw(pc_tensor **labels, pc_device device)
{
    *labels = pc_cast(pc_gt(pc_rand(PC_SHAPE(BATCH), PC_F32, device), pc_scalar(0.5, PC_F32, device)), PC_I64);
    pc_tensor *wave = pc_sin(pc_arange(0, SIZE, 1, PC_F32, device));
    pc_tensor *down = pc_expand(wave, PC_SHAPE(BATCH, 1, SIZE, SIZE)), *across = pc_transpose(down, 2, 3);
    pc_tensor *stripes =
        pc_where(pc_gt(pc_reshape(*labels, PC_SHAPE(BATCH, 1, 1, 1)), pc_scalar(0, PC_I64, device)), across, down);
    return pc_add(stripes, pc_randn(PC_SHAPE(BATCH, 1, SIZE, SIZE), PC_F32, device));
}

static pc_status train(pc_module *net, pc_optimizer *sgd, pc_device device)
{
    pc_status status = PC_OK;
    for (int step = 1; step <= STEPS && status == PC_OK; step++)
        PC_SCOPE {
            pc_tensor *labels, *x = draw(&labels, device), *loss = pc_cross_entropy(pc_forward(net, x), labels);
            status = pc_backward(loss) == PC_OK ? pc_optimizer_step(sgd) : pc_error_last()->status;
            if (step % 10 == 0)
                printf("step %2d  loss %.3f\n", step, pc_item(loss));
        }
    return status;
}

int main(void)
{
    pc_seed(1);
    pc_device device = pc_device_pick("auto");
    pc_module *net = network();
    pc_optimizer *sgd = pc_module_to(net, device, PC_F32) == PC_OK ? pc_sgd(net, .lr = 0.05, .momentum = 0.9) : NULL;
    printf("%lld parameters\n", (long long)pc_module_parameter_elements(net));
    if (train(net, sgd, device) == PC_OK)
        PC_SCOPE {
            pc_module_set_training(net, false); /* by the running statistics */
            pc_tensor *labels, *x = draw(&labels, device),
                               *right = pc_eq(pc_argmax(pc_forward(net, x), 1, false), labels);
            printf("right on new pictures: %.0f%%\n", 100 * pc_item(pc_mean(pc_cast(right, PC_F32))));
        }
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return pc_failed() ? pc_report(stderr) : 0;
}
