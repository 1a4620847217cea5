/* ranks.c: several processes learn one network, PyTorch's DistributedDataParallel. Each is a rank with a part of the data:
 *
 *     paracord launch -n 4 -- ./ranks          # or torchrun, mpirun, srun
 *
 * Alone it is a world of one rank. On GPUs each rank takes the one of its local number. */
#include <paracord.h>

static pc_status learn(pc_group *world, pc_device device)
{
    pc_module *net = pc_linear(1, 1);
    pc_ddp *ddp =
        pc_module_to(net, device, PC_F32) == PC_OK ? pc_ddp(net, world) : NULL; /* rank 0's weights, everywhere */
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    const int rank = pc_group_rank(world), size = pc_group_size(world);
    pc_status status = ddp && sgd ? PC_OK : pc_error_last()->status;

    PC_SCOPE {
        pc_tensor *all = pc_reshape(pc_arange(-1, 1, 0.05, PC_F32, device), PC_SHAPE(-1, 1));
        pc_tensor *x = pc_slice(all, 0, rank, PC_END_OF_DIM, size); /* every size-th number is this rank's */
        pc_tensor *y = pc_add_scalar(pc_mul_scalar(x, 2), 1);
        for (int step = 0; step < 200 && status == PC_OK; step++)
            PC_SCOPE {
                status = pc_backward(pc_mse(pc_forward(net, x), y)); /* gradients: the mean of all ranks' */
                if (status == PC_OK)
                    status = pc_optimizer_step(sgd);
            }
        if (status == PC_OK)
            printf("rank %d of %d, %lld numbers: y = %.2f x + %.2f\n", rank, size, (long long)pc_tensor_count(x),
                   pc_item(pc_module_parameter(net, "weight")), pc_item(pc_module_parameter(net, "bias")));
    }
    pc_optimizer_free(sgd);
    pc_ddp_free(ddp);
    pc_module_free(net);
    return status;
}

int main(void)
{
    char name[PC_DEVICE_NAME_MAX];
    if (pc_dist_init((pc_dist_options){0}) != PC_OK)
        return pc_report(stderr);
    snprintf(name, sizeof name, "cuda:%d", pc_dist_local_rank());
    pc_group *world = pc_group_world();
    const pc_device device = pc_device_available(PC_CUDA) ? pc_device_pick(name) : PC_DEVICE_CPU;
    const pc_status status = world ? learn(world, device) : PC_ERR_MEMORY;
    pc_group_free(world);
    if (status != PC_OK || pc_dist_end() != PC_OK)
        return pc_report(stderr);
    return 0;
}
