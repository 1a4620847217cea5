/* Training with products in 16 bits: the parameters stay float32, and float16 has a loss scaler. */
#include <paracord.h>

static pc_status train(pc_dtype dtype, pc_device device)
{
    pc_seed(1);
    pc_module *net = pc_sequential(pc_linear(8, 32, .activation = PC_ACTIVATION_RELU), pc_linear(32, 1));
    pc_optimizer *adam = pc_module_to(net, device, PC_F32) == PC_OK ? pc_adam(net, .lr = 1e-2) : NULL;
    pc_scaler *scaler = dtype == PC_F16 ? pc_scaler(device) : NULL;
    pc_status status = pc_failed() ? pc_error_last()->status : PC_OK;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(64, 8), PC_F32, device); /* is the sum of eight numbers above 0? */
        pc_tensor *sums = pc_sum_dims(x, PC_SHAPE(1), true);
        pc_tensor *y = pc_cast(pc_gt(sums, pc_scalar(0, PC_F32, device)), PC_F32);
        for (int step = 1; step <= 100 && status == PC_OK; step++)
            PC_SCOPE {
                pc_tensor *loss = NULL;
                PC_AUTOCAST(dtype) {
                    loss = pc_bce_with_logits(pc_forward(net, x), y);
                }
                status = pc_backward(scaler ? pc_scaler_scale(scaler, loss) : loss);
                if (status == PC_OK)
                    status = scaler ? pc_scaler_step(scaler, adam) : pc_optimizer_step(adam);
                if (status == PC_OK && scaler)
                    status = pc_scaler_update(scaler);
                if (status == PC_OK && step == 100)
                    printf("%-8s  loss %.3f\n", pc_dtype_name(dtype), pc_item(loss));
            }
    }
    pc_scaler_free(scaler);
    pc_optimizer_free(adam);
    pc_module_free(net);
    return status;
}

int main(void)
{
    const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F16};
    pc_device device = pc_device_pick("auto");
    for (int i = 0; i < 3; i++)
        if (train(dtypes[i], device) != PC_OK)
            return pc_report(stderr);
    return 0;
}
