/* cloud.c: the training steps that src/tools/cloud/estimate.c's constants are fitted to: networks, sizes and batches on one
 * device, with what the model counts in them. The first argument names the device. */
#include <paracord.h>
#include <stdlib.h>

#include "cloud/work.h"
#include "train/arch.h"

static void measure(pc_device device, const char *arch, int size, int batch)
{
    const pc__frame pictures = {size, size, 3};
    pc_cloud_work work;
    double step, update;
    char name[PC_DEVICE_NAME_MAX];
    pc_module *net = pc__arch_new(arch, pictures, 1, PC_INIT_GLOROT);
    pc_status status = net ? pc_module_to(net, device, PC_F32) : PC_ERR_MEMORY;
    if (status == PC_OK)
        status = pc__cloud_count(net, pictures, &work);
    if (status == PC_OK)
        status = pc__cloud_measure_steps(net, pictures, 2, batch, 0.3, &step, &update);
    pc_module_free(net);
    if (status != PC_OK && pc_report(stderr))
        exit(1);
    printf(
        "{\"bench\": \"cloud\", \"device\": \"%s\", \"network\": \"%s\", \"size\": %d, \"batch\": %d, \"median_ms\": "
        "%.5f, \"flops\": %.0f, \"narrow\": %.0f, \"bytes\": %.0f, \"step_bytes\": %.0f, \"layers\": %d}\n",
        pc_device_name(device, name), arch, size, batch, step * 1e3, work.train_flops * batch,
        work.train_narrow * batch, work.train_bytes * batch, work.step_bytes, work.layers);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const archs[] = {"article", "two-conv", "mlp", "lenet"};
    static const int sizes[] = {64, 128, 224}, batches[] = {32, 256};
    pc_device device = pc_device_pick(argc > 1 ? argv[1] : "auto");
    if (pc_report(stderr))
        return 1;
    for (int a = 0; a < 4; a++)
        for (int s = 0; s < 3; s++)
            for (int b = 0; b < 2; b++)
                if (device.type != PC_CPU || (sizes[s] == 64 && batches[b] == 32)) /* a CPU would take minutes */
                    measure(device, archs[a], sizes[s], batches[b]);
    return 0;
}
