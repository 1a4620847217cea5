/* arch.c: the networks by name. */
#include "train/arch.h"

#include "base/base.h"
#include "models/models.h"
#include "train/described.h"

/* `article`: Conv 32 3x3 with stride 3 (what Keras makes of Convolution2D(32, 3, 3)), ReLU, max-pool 2, dense 128. */
static pc_module *article(pc__frame p, int outputs, pc_init_kind init)
{
    int high = ((p.height - 3) / 3 + 1) / 2, wide = ((p.width - 3) / 3 + 1) / 2;
    return pc_sequential(pc_conv2d(p.channels, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU, .init = init),
                         pc_max_pool2d(2), pc_flatten(),
                         pc_linear(32 * high * wide, 128, .activation = PC_ACTIVATION_RELU, .init = init),
                         pc_linear(128, outputs, .init = init));
}

static pc_module *two_conv(pc__frame p, int outputs, pc_init_kind init)
{
    int high = ((p.height - 2) / 2 - 2) / 2, wide = ((p.width - 2) / 2 - 2) / 2;
    return pc_sequential(pc_conv2d(p.channels, 32, 3, .activation = PC_ACTIVATION_RELU, .init = init), pc_max_pool2d(2),
                         pc_conv2d(32, 64, 3, .activation = PC_ACTIVATION_RELU, .init = init), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(64 * high * wide, 128, .activation = PC_ACTIVATION_RELU, .init = init),
                         pc_linear(128, outputs, .init = init));
}

static pc_module *mlp(pc__frame p, int outputs, pc_init_kind init)
{
    return pc_sequential(
        pc_flatten(), pc_linear(p.channels * p.height * p.width, 256, .activation = PC_ACTIVATION_RELU, .init = init),
        pc_linear(256, 64, .activation = PC_ACTIVATION_RELU, .init = init), pc_linear(64, outputs, .init = init));
}

/* LeNet-5 (LeCun et al. 1998) in today's form: ReLU and max-pooling. */
static pc_module *lenet(pc__frame p, int outputs, pc_init_kind init)
{
    int high = ((p.height - 4) / 2 - 4) / 2, wide = ((p.width - 4) / 2 - 4) / 2;
    return pc_sequential(pc_conv2d(p.channels, 6, 5, .activation = PC_ACTIVATION_RELU, .init = init), pc_max_pool2d(2),
                         pc_conv2d(6, 16, 5, .activation = PC_ACTIVATION_RELU, .init = init), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(16 * high * wide, 120, .activation = PC_ACTIVATION_RELU, .init = init),
                         pc_linear(120, 84, .activation = PC_ACTIVATION_RELU, .init = init),
                         pc_linear(84, outputs, .init = init));
}

/* --- their sizes --- */

/* A layer of `units`, each of so many inputs and a bias, at so many places. */
static void count(pc__arch_size *size, double *largest, double units, double inputs, double places)
{
    size->parameters += units * (inputs + 1);
    size->activations += units * places;
    *largest = PC__MAX(*largest, units * places);
}

static void pool(pc__arch_size *size, double units, double places)
{
    size->activations += units * places;
}

static pc__arch_size article_size(pc__frame p, int outputs)
{
    const double high = (p.height - 3) / 3 + 1, wide = (p.width - 3) / 3 + 1;
    const double pooled = (double)((int)high / 2) * ((int)wide / 2);
    pc__arch_size size = {0, 0};
    double largest = 0;
    count(&size, &largest, 32, 9.0 * p.channels, high * wide);
    pool(&size, 32, pooled);
    count(&size, &largest, 128, 32 * pooled, 1);
    count(&size, &largest, outputs, 128, 1);
    size.activations += largest;
    return size;
}

/* Two convolutions, each with pooling, then dense layers: two-conv and LeNet. */
static pc__arch_size convs_size(pc__frame p, int kernel, const int units[2], const int *dense, int outputs)
{
    pc__arch_size size = {0, 0};
    double largest = 0, inputs = p.channels;
    int high = p.height, wide = p.width;
    for (int i = 0; i < 2; i++, high /= 2, wide /= 2) {
        high -= kernel - 1, wide -= kernel - 1;
        count(&size, &largest, units[i], inputs * kernel * kernel, (double)high * wide);
        pool(&size, units[i], (double)(high / 2) * (wide / 2));
        inputs = units[i];
    }
    inputs *= (double)high * wide;
    for (; *dense; inputs = *dense++)
        count(&size, &largest, *dense, inputs, 1);
    count(&size, &largest, outputs, inputs, 1);
    size.activations += largest;
    return size;
}

static pc__arch_size two_conv_size(pc__frame p, int outputs)
{
    return convs_size(p, 3, (const int[]){32, 64}, (const int[]){128, 0}, outputs);
}

static pc__arch_size lenet_size(pc__frame p, int outputs)
{
    return convs_size(p, 5, (const int[]){6, 16}, (const int[]){120, 84, 0}, outputs);
}

static pc__arch_size mlp_size(pc__frame p, int outputs)
{
    pc__arch_size size = {0, 0};
    double largest = 0;
    count(&size, &largest, 256, (double)pc__frame_bytes(p), 1);
    count(&size, &largest, 64, 256, 1);
    count(&size, &largest, outputs, 64, 1);
    size.activations += largest;
    return size;
}

static const struct {
    const char *name;
    int smallest; /* sides of pictures */
    pc_module *(*make)(pc__frame pictures, int outputs, pc_init_kind init);
    pc__arch_size (*measure)(pc__frame pictures, int outputs);
} archs[] = {{"article", 6, article, article_size},
             {"two-conv", 10, two_conv, two_conv_size},
             {"mlp", 1, mlp, mlp_size},
             {"lenet", 16, lenet, lenet_size}};

/* The row of a network that can look at such pictures; negative: an error. */
static int find(const char *name, pc__frame pictures)
{
    for (int i = 0; i < PC__COUNT(archs); i++) {
        if (strcmp(name, archs[i].name) != 0)
            continue;
        if (pictures.height >= archs[i].smallest && pictures.width >= archs[i].smallest)
            return i;
        (void)pc__fail(PC_ERR_SHAPE, "pictures of %d x %d are too small for %s, which needs %d x %d", pictures.height,
                       pictures.width, name, archs[i].smallest, archs[i].smallest);
        return -1;
    }
    (void)pc__fail(PC_ERR_ARGUMENT,
                   "there is no network \"%.40s\"; there are article, two-conv, mlp, lenet, vgg11, resnet18, resnet34, "
                   "resnet50, mobilenet_v2, vit_tiny and vit_b_16",
                   name);
    return -1;
}

bool pc__arch_is_keras(const char *name)
{
    return !pc__is_description(name) && !pc__picture_network_exists(name);
}

static pc__picture_options options_of(pc__frame p)
{
    return (pc__picture_options){.channels = p.channels, .height = p.height, .width = p.width};
}

pc_module *pc__arch_new(const char *name, pc__frame pictures, int outputs, pc_init_kind init)
{
    if (pc__is_description(name))
        return pc__described_new(name, pictures, outputs, init);
    if (pc__picture_network_exists(name))
        return pc_picture_network_new(name, outputs, options_of(pictures));
    const int i = find(name, pictures);
    return i < 0 ? NULL : archs[i].make(pictures, outputs, init);
}

static pc_status measure_named(const char *name, pc__frame pictures, int outputs, pc__arch_size *size)
{
    pc__picture_size own;
    PC__TRY(pc__picture_network_size(name, outputs, options_of(pictures), &own));
    *size = (pc__arch_size){own.parameters, own.activations + own.largest};
    return PC_OK;
}

pc_status pc__arch_measure(const char *name, pc__frame pictures, int outputs, pc__arch_size *size)
{
    if (pc__is_description(name))
        return pc__described_measure(name, pictures, outputs, size);
    if (pc__picture_network_exists(name))
        return measure_named(name, pictures, outputs, size);
    const int i = find(name, pictures);
    if (i < 0)
        return pc_error_last()->status;
    *size = archs[i].measure(pictures, outputs);
    return PC_OK;
}
