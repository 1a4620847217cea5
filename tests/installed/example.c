/* A program of a user: what the installed headers and library promise, from C. */
#include <paracord.h>
#include <string.h>

static int dropped;

static void drop(void *object)
{
    dropped += *(int *)object;
}

static bool errors_and_scopes(void)
{
    int one = 1;
    PC_SCOPE {
        if (pc_scope_own(&one, drop) != PC_OK)
            return false;
    }
    pc_device wrong = pc_device_pick("toaster:7");
    bool refused = wrong.type == -1 && pc_failed() && pc_error_last()->status == PC_ERR_ARGUMENT;
    bool flows = !pc_add(pc_ones(PC_SHAPE(2), PC_F32, wrong), NULL) && pc_error_last()->status == PC_ERR_ARGUMENT;
    pc_error_clear();
    return dropped == 1 && refused && flows && strcmp(pc_version(), PC_VERSION) == 0;
}

/* Losses before and after some steps. */
static bool learns(void)
{
    double loss[2] = {0};
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

int main(void)
{
    char name[PC_DEVICE_NAME_MAX];
    if (!errors_and_scopes() || !learns()) {
        pc_report(stderr);
        return 1;
    }
    printf("paracord %s on %s from C\n", pc_version(), pc_device_name(pc_device_pick("cpu"), name));
    return pc_failed() ? pc_report(stderr) : 0;
}
