// A program of a user: what the installed headers and library promise, from C++.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <paracord.h>

static bool scopes()
{
    static int dropped = 0;
    PC_SCOPE {
        if (pc_scope_own(&dropped, [](void *object) { ++*static_cast<int *>(object); }) != PC_OK)
            return false;
    }
    return dropped == 1 && std::strcmp(pc_version(), PC_VERSION) == 0;
}

// The options by name, as in C; the losses before and after some steps.
static bool learns()
{
    double loss[2] = {};
    pc_module *net =
        pc_sequential(pc_conv2d(3, 8, 3, .stride = 2, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                      pc_linear(8 * 3 * 3, 4), pc_dropout(0.1), pc_linear(4, 1, .init = PC_INIT_HE));
    pc_optimizer *sgd = pc_sgd(net), *adam = pc_adam(net, .lr = 0.01);
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(2, 3, 16, 16), PC_F32, pc_device_pick("auto"));
        pc_tensor *y = pc_ones(PC_SHAPE(2, 1), PC_F32, PC_DEVICE_CPU);
        for (int step = 0; step < 20; step++)
            PC_SCOPE {
                pc_tensor *error = pc_bce_with_logits(pc_forward(net, x), y);
                if (pc_backward(error) != PC_OK || pc_optimizer_step(adam) != PC_OK)
                    break;
                loss[step > 0] = pc_item(error);
            }
    }
    pc_optimizer_free(adam);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return loss[1] < loss[0] && !pc_failed();
}

static bool numbers()
{
    bool fine = false;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *a = pc_reshape(pc_arange(0, 6, 1, PC_F64, PC_DEVICE_CPU), PC_SHAPE(2, -1));
            pc_tensor *zero_dim = pc_full(PC_SHAPE_SCALAR, 2, PC_F64, PC_DEVICE_CPU);
            double sum = pc_item(pc_sum(pc_mul(a, zero_dim)));
            fine = std::fabs(sum - 30) < 1e-12 && pc_tensor_size(a, -1) == 3;
        }
    }
    pc_image_options options = PC_OPTIONS(pc_image_options, .channels = 3, .width = 8, .height = 8);
    pc_loader *loader = pc_loader("no such folder", .size = 32, .device = PC_DEVICE_CPU);
    bool refused = !loader && pc_error_last()->status == PC_ERR_FILE;
    pc_error_clear();
    return fine && refused && options.resize == PC_RESIZE_NEAREST;
}

int main()
{
    char name[PC_DEVICE_NAME_MAX];
    if (!scopes() || !learns() || !numbers()) {
        pc_report(stderr);
        return 1;
    }
    std::printf("paracord %s on %s from C++\n", pc_version(), pc_device_name(PC_DEVICE_CPU, name));
    return pc_failed() ? pc_report(stderr) : 0;
}
