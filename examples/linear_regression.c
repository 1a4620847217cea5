/* linear_regression.c: a module class of your own, in C. It has one child, prints as in PyTorch, and learns y = 2x + 1
 * from 20 points. */
#include <paracord.h>

static pc_tensor *forward(pc_module *self, pc_tensor *x)
{
    return pc_forward(pc_module_child(self, 0), x);
}

static const pc_module_class linear_regression = {.name = "LinearRegression", .forward = forward};

static pc_module *linear_regression_new(void)
{
    pc_module *self = pc_module_new(&linear_regression, 0);
    if (pc_module_add_child(self, "linear", pc_linear(1, 1)) == PC_OK)
        return self;
    pc_module_free(self);
    return NULL;
}

int main(void)
{
    pc_module *net = linear_regression_new();
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    pc_module_print(net);

    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(-1, 1, 0.1, PC_F32, PC_DEVICE_CPU), PC_SHAPE(-1, 1));
        pc_tensor *y = pc_add_scalar(pc_mul_scalar(x, 2), 1);
        for (int step = 0; step <= 200; step++)
            PC_SCOPE { /* what one step makes is freed here */
                pc_tensor *loss = pc_mse(pc_forward(net, x), y);
                if (pc_backward(loss) != PC_OK || pc_optimizer_step(sgd) != PC_OK)
                    return pc_report(stderr);
                if (step % 50 == 0)
                    printf("step %3d  loss %.6f\n", step, pc_item(loss));
            }
    }
    double weight = pc_item(pc_module_parameter(net, "linear.weight"));
    double bias = pc_item(pc_module_parameter(net, "linear.bias"));
    printf("y = %.2f x + %.2f\n", weight, bias);

    pc_optimizer_free(sgd);
    pc_module_free(net);
    return pc_failed() ? pc_report(stderr) : 0;
}
