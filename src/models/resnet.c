/* resnet.c: residual networks (He et al. 2015), by torchvision's names: conv1.weight, layer1.0.downsample.0.weight, fc.bias.
 * The stride of a block of three is at its 3x3 convolution. */
#include "models/models.h"
#include "nn/layers.h"

static pc_module *conv(int in, int out, int kernel, int stride)
{
    return pc_conv2d(in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true);
}

/* --- blocks: relu(body(x) + x), or + downsample(x) --- */

/* The block's children are convolutions and norms in turn, then where there is one the downsample. */
static pc_tensor *run(pc_module *block, int convolutions, pc_tensor *x)
{
    pc_module *downsample = pc_module_child(block, 2 * convolutions);
    pc_tensor *y = x, *result = NULL;
    PC_SCOPE {
        for (int i = 0; i < convolutions && y; i++) {
            y = pc_forward(pc_module_child(block, 2 * i), y);
            y = y ? pc_forward(pc_module_child(block, 2 * i + 1), y) : NULL;
            y = y && i + 1 < convolutions ? pc_relu(y) : y;
        }
        pc_tensor *rest = y && downsample ? pc_forward(downsample, x) : x;
        result = y && rest ? pc_keep(pc_relu(pc_add(y, rest))) : NULL;
    }
    return result;
}

static pc_tensor *run_basic(pc_module *block, pc_tensor *x)
{
    return run(block, 2, x);
}

static pc_tensor *run_bottleneck(pc_module *block, pc_tensor *x)
{
    return run(block, 3, x);
}

static const pc_module_class basic_class = {.name = "BasicBlock", .forward = run_basic},
                             bottleneck_class = {.name = "Bottleneck", .forward = run_bottleneck},
                             resnet_class = {.name = "ResNet", .forward = pc__run_in_order};

static pc_module *basic(int in, int width, int stride)
{
    return pc_module_of(&basic_class, {"conv1", conv(in, width, 3, stride)}, {"bn1", pc_batch_norm2d(width)},
                        {"conv2", conv(width, width, 3, 1)}, {"bn2", pc_batch_norm2d(width)});
}

static pc_module *bottleneck(int in, int width, int stride)
{
    return pc_module_of(&bottleneck_class, {"conv1", conv(in, width, 1, 1)}, {"bn1", pc_batch_norm2d(width)},
                        {"conv2", conv(width, width, 3, stride)}, {"bn2", pc_batch_norm2d(width)},
                        {"conv3", conv(width, 4 * width, 1, 1)}, {"bn3", pc_batch_norm2d(4 * width)});
}

/* --- all of it --- */

static pc_module *block(int in, int width, int stride, int expansion)
{
    pc_module *module = expansion == 1 ? basic(in, width, stride) : bottleneck(in, width, stride);
    const int out = width * expansion;
    if (!module || (in == out && stride == 1))
        return module;
    pc_module *downsample = pc_sequential(conv(in, out, 1, stride), pc_batch_norm2d(out));
    if (downsample && pc_module_add_child(module, "downsample", downsample) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

enum { STAGES = 4, BLOCKS_MAX = 8 };

static pc_module *stage(int at, const int *blocks, int expansion)
{
    pc_module *list[BLOCKS_MAX];
    const int width = 64 << at;
    for (int i = 0; i < blocks[at]; i++)
        list[i] = block(i ? width * expansion : at ? width / 2 * expansion : 64, width, at && !i ? 2 : 1, expansion);
    return pc_sequential_new(list, blocks[at]);
}

static pc_module *resnet(const int blocks[STAGES], int expansion, int classes, const pc__picture_options *o)
{
    pc_module *net = pc_module_of(
        &resnet_class, {"conv1", pc_conv2d(o->channels, 64, 7, .stride = 2, .padding = 3, .no_bias = true)},
        {"bn1", pc_batch_norm2d(64)}, {"relu", pc_activation(PC_ACTIVATION_RELU)},
        {"maxpool", pc_max_pool2d(3, .stride = 2, .padding = 1)}, {"layer1", stage(0, blocks, expansion)},
        {"layer2", stage(1, blocks, expansion)}, {"layer3", stage(2, blocks, expansion)},
        {"layer4", stage(3, blocks, expansion)}, {"avgpool", pc_adaptive_avg_pool2d(1, 1)}, {"flatten", pc_flatten()},
        {"fc", pc_linear(512 * expansion, classes)});
    return pc__picture_began(net, (pc__picture_begin){.convolutions = true});
}

pc_module *pc__resnet18(int classes, const pc__picture_options *o)
{
    return resnet((const int[]){2, 2, 2, 2}, 1, classes, o);
}

pc_module *pc__resnet34(int classes, const pc__picture_options *o)
{
    return resnet((const int[]){3, 4, 6, 3}, 1, classes, o);
}

pc_module *pc__resnet50(int classes, const pc__picture_options *o)
{
    return resnet((const int[]){3, 4, 6, 3}, 4, classes, o);
}
