/* data_parallel.c: one network on several devices of one program, PyTorch's DataParallel: a batch is cut, each piece runs on a
 * device of its own, gradients come together on the first. On all GPUs where there are two or more, else on two simulated
 * devices. */
#include <paracord.h>

enum { MOST = 8 };

static int devices_of(pc_device devices[MOST])
{
    const int gpus = pc_device_count(PC_CUDA, NULL, 0), n = gpus < 2 ? 2 : gpus < MOST ? gpus : MOST;
    char name[PC_DEVICE_NAME_MAX];
    if (gpus < 2 && pc_sim_configure((pc_sim_options){.devices = 2}) != PC_OK)
        return 0;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s:%d", gpus < 2 ? "sim" : "cuda", i);
        devices[i] = pc_device_pick(name);
    }
    return n;
}

int main(void)
{
    pc_device devices[MOST];
    pc_module *nets[MOST];
    const int n = devices_of(devices);
    for (int i = 0; i < n; i++) {
        nets[i] = pc_linear(1, 1);
        if (pc_module_to(nets[i], devices[i], PC_F32) != PC_OK)
            return pc_report(stderr);
    }
    pc_data_parallel *parallel = pc_data_parallel_new(nets, n);
    pc_optimizer *sgd = pc_sgd(nets[0], .lr = 0.1);
    printf("one network on %d devices: ", n);

    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(-1, 1, 0.1, PC_F32, devices[0]), PC_SHAPE(-1, 1));
        pc_tensor *y = pc_add_scalar(pc_mul_scalar(x, 2), 1);
        for (int step = 0; step <= 200; step++)
            PC_SCOPE {
                pc_tensor *loss = pc_mse(pc_data_parallel_forward(parallel, x), y);
                if (pc_backward(loss) != PC_OK || pc_optimizer_step(sgd) != PC_OK)
                    return pc_report(stderr);
            }
        printf("y = %.2f x + %.2f\n", pc_item(pc_module_parameter(nets[0], "weight")),
               pc_item(pc_module_parameter(nets[0], "bias")));
    }
    pc_optimizer_free(sgd);
    pc_data_parallel_free(parallel);
    for (int i = 0; i < n; i++)
        pc_module_free(nets[i]);
    return pc_failed() ? pc_report(stderr) : 0;
}
