/* vgg.c: VGG-11 (Simonyan, Zisserman 2014), by torchvision's names: features.0.weight, classifier.6.bias. */
#include "models/models.h"
#include "nn/layers.h"

static const pc_module_class vgg_class = {.name = "VGG", .forward = pc__run_in_order};

static pc_module *relu(void)
{
    return pc_activation(PC_ACTIVATION_RELU);
}

/* Channels of the convolutions; 0: a max-pooling. */
static const int layers[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};

static pc_module *features(int channels)
{
    pc_module *list[2 * PC__COUNT(layers)];
    int count = 0;
    for (int i = 0; i < PC__COUNT(layers); i++) {
        if (!layers[i]) {
            list[count++] = pc_max_pool2d(2);
            continue;
        }
        list[count++] = pc_conv2d(channels, layers[i], 3, .padding = 1);
        list[count++] = relu();
        channels = layers[i];
    }
    return pc_sequential_new(list, count);
}

pc_module *pc__vgg11(int classes, const pc__picture_options *o)
{
    const double p = o->dropout;
    pc_module *net = pc_module_of(
        &vgg_class, {"features", features(o->channels)}, {"avgpool", pc_adaptive_avg_pool2d(7, 7)},
        {"flatten", pc_flatten()},
        {"classifier", pc_sequential(pc_linear(512 * 7 * 7, 4096), relu(), pc_dropout(p), pc_linear(4096, 4096), relu(),
                                     pc_dropout(p), pc_linear(4096, classes))});
    return pc__picture_began(net, (pc__picture_begin){.convolutions = true, .linear = 0.01});
}
