/* mobilenet.c: MobileNetV2 (Sandler et al. 2018), by torchvision's names: features.1.conv.0.0.weight, classifier.1.bias. */
#include "models/models.h"
#include "nn/layers.h"

/* min(max(x, 0), 6). */
static pc_tensor *relu6(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_relu6(x);
}

/* x + conv(x) */
static pc_tensor *run_residual(pc_module *block, pc_tensor *x)
{
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *inside = pc_forward(pc_module_child(block, 0), x);
        y = inside ? pc_keep(pc_add(x, inside)) : NULL;
    }
    return y;
}

static const pc_module_class relu6_class = {.name = "ReLU6", .forward = relu6},
                             conv_class = {.name = "Conv2dNormActivation", .forward = pc__run_in_order},
                             residual_class = {.name = "InvertedResidual", .forward = run_residual},
                             plain_class = {.name = "InvertedResidual", .forward = pc__run_in_order},
                             net_class = {.name = "MobileNetV2", .forward = pc__run_in_order};

static pc_module *conv(int in, int out, int kernel, int stride, int groups)
{
    return pc_module_of(
        &conv_class,
        {"0", pc_conv2d(in, out, kernel, .stride = stride, .padding = kernel / 2, .groups = groups, .no_bias = true)},
        {"1", pc_batch_norm2d(out)}, {"2", pc_module_new(&relu6_class, 0)});
}

static pc_module *block(int in, int out, int stride, int expand)
{
    const int inside = in * expand;
    pc_module *list[4], *body;
    int count = 0;
    if (expand != 1)
        list[count++] = conv(in, inside, 1, 1, 1);
    list[count++] = conv(inside, inside, 3, stride, inside);
    list[count++] = pc_conv2d(inside, out, 1, .no_bias = true);
    list[count++] = pc_batch_norm2d(out);
    body = pc_sequential_new(list, count);
    return pc_module_of(in == out && stride == 1 ? &residual_class : &plain_class, {"conv", body});
}

pc_module *pc__mobilenet_v2(int classes, const pc__picture_options *o)
{
    static const struct {
        int expand, out, blocks, stride; /* of the first block */
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    pc_module *list[24];
    int count = 0, in = 32;
    list[count++] = conv(o->channels, in, 3, 2, 1);
    for (int s = 0; s < PC__COUNT(stages); s++)
        for (int i = 0; i < stages[s].blocks; i++, in = stages[s].out)
            list[count++] = block(in, stages[s].out, i ? 1 : stages[s].stride, stages[s].expand);
    list[count++] = conv(in, 1280, 1, 1, 1);
    pc_module *net = pc_module_of(&net_class, {"features", pc_sequential_new(list, count)},
                                  {"pool", pc_adaptive_avg_pool2d(1, 1)}, {"flatten", pc_flatten()},
                                  {"classifier", pc_sequential(pc_dropout(o->dropout), pc_linear(1280, classes))});
    return pc__picture_began(net, (pc__picture_begin){.convolutions = true, .linear = 0.01});
}
