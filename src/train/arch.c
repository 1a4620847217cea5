/* arch.c: the networks by name. */
#include "train/arch.h"

#include "base/base.h"

/* `article`: Conv 32 3x3 with stride 3 (what Keras makes of Convolution2D(32, 3, 3)), ReLU, max-pool 2, dense 128. */
static pc_module *article(int size, int outputs, pc_init_kind init)
{
    int side = ((size - 3) / 3 + 1) / 2;
    return pc_sequential(pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_RELU, .init = init), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(32 * side * side, 128, .activation = PC_RELU, .init = init),
                         pc_linear(128, outputs, .init = init));
}

static pc_module *two_conv(int size, int outputs, pc_init_kind init)
{
    int side = ((size - 2) / 2 - 2) / 2;
    return pc_sequential(pc_conv2d(3, 32, 3, .activation = PC_RELU, .init = init), pc_max_pool2d(2),
                         pc_conv2d(32, 64, 3, .activation = PC_RELU, .init = init), pc_max_pool2d(2), pc_flatten(),
                         pc_linear(64 * side * side, 128, .activation = PC_RELU, .init = init),
                         pc_linear(128, outputs, .init = init));
}

static pc_module *mlp(int size, int outputs, pc_init_kind init)
{
    return pc_sequential(pc_flatten(), pc_linear(3 * size * size, 256, .activation = PC_RELU, .init = init),
                         pc_linear(256, 64, .activation = PC_RELU, .init = init), pc_linear(64, outputs, .init = init));
}

/* LeNet-5 (LeCun et al. 1998) in today's form: ReLU and max-pooling. */
static pc_module *lenet(int size, int outputs, pc_init_kind init)
{
    int side = ((size - 4) / 2 - 4) / 2;
    return pc_sequential(pc_conv2d(3, 6, 5, .activation = PC_RELU, .init = init), pc_max_pool2d(2),
                         pc_conv2d(6, 16, 5, .activation = PC_RELU, .init = init), pc_max_pool2d(2), pc_flatten(),
                         pc_linear(16 * side * side, 120, .activation = PC_RELU, .init = init),
                         pc_linear(120, 84, .activation = PC_RELU, .init = init), pc_linear(84, outputs, .init = init));
}

static const struct {
    const char *name;
    int smallest; /* pictures */
    pc_module *(*make)(int size, int outputs, pc_init_kind init);
} archs[] = {{"article", 6, article}, {"two-conv", 10, two_conv}, {"mlp", 1, mlp}, {"lenet", 16, lenet}};

pc_module *pc__arch_new(const char *name, int size, int outputs, pc_init_kind init)
{
    for (int i = 0; i < PC__COUNT(archs); i++) {
        if (strcmp(name, archs[i].name) != 0)
            continue;
        if (size < archs[i].smallest)
            return pc__null(PC_ERR_SHAPE, "pictures of %d x %d are too small for %s, which needs %d x %d", size, size,
                            name, archs[i].smallest, archs[i].smallest);
        return archs[i].make(size, outputs, init);
    }
    return pc__null(PC_ERR_ARGUMENT, "there is no network \"%.40s\"; there are article, two-conv, mlp and lenet", name);
}
