/* vision.c: training steps of networks for pictures: forward, loss, backward, SGD with momentum, one recording. Peer:
 * bench/peers/vision.py.
 *
 * Usage: bench.vision DEVICE PRECISION NETWORK BATCH [size] [classes] [steps]
 * A line of JSON: milliseconds a step (median of rounds of steps), until the first step was done, and megabytes at most. */
#include "steps.h"

#include <string.h>

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x, *labels;
} job;

static pc_tensor *loss_of(void *user)
{
    job *j = user;
    return pc_cross_entropy(pc_forward(j->net, j->x), j->labels);
}

static pc_tensor *labels_of(int64_t n, int classes, pc_device device)
{
    int64_t *labels = malloc((size_t)n * sizeof *labels);
    for (int64_t i = 0; i < n && labels; i++)
        labels[i] = i * 2654435761LL % classes;
    pc_tensor *made = labels ? pc_from_data(labels, PC_SHAPE(n), PC_I64, device) : NULL;
    free(labels);
    return made;
}

static pc_status make(job *j, const char *network, int64_t batch, int size, int classes, pc_device device)
{
    j->net = pc_picture_network(network, classes, .height = size, .width = size);
    if (!j->net || pc_module_to(j->net, device, PC_F32) != PC_OK)
        return pc_error_last()->status;
    j->sgd = pc_sgd(j->net, .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4);
    PC_SCOPE {
        pc_tensor *x = pc_permute(pc_randn(PC_SHAPE(batch, size, size, 3), PC_F32, device), PC_SHAPE(0, 3, 1, 2));
        j->x = pc_keep(x);
    }
    j->labels = labels_of(batch, classes, device);
    return j->sgd && j->x && j->labels ? PC_OK : pc_error_last()->status;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: bench.vision DEVICE PRECISION NETWORK BATCH [size] [classes] [steps]\n");
        return 2;
    }
    const int size = argc > 5 ? atoi(argv[5]) : 224, classes = argc > 6 ? atoi(argv[6]) : 1000;
    const int64_t batch = atoll(argv[4]);
    pc_device device = pc_device_pick(argv[1]);
    pc_memory_stats memory;
    job j = {0};
    const pc_dtype autocast = strcmp(argv[2], "bf16") == 0 ? PC_BF16 : PC_F32;
    double first = 0, median = 0;
    if (strcmp(argv[2], "tf32") == 0)
        pc_matmul_precision_set(PC_PRECISION_TF32);
    pc_seed(1);
    if (make(&j, argv[3], batch, size, classes, device) != PC_OK ||
        steps_timed(loss_of, &j, j.sgd, autocast, device, argc > 7 ? atoi(argv[7]) : 10, &first, &median) != PC_OK ||
        pc_memory_query(device, &memory) != PC_OK)
        return pc_report(stderr);
    printf("{\"step_ms\": %.4f, \"first_ms\": %.1f, \"pictures_per_second\": %.0f, \"peak_mb\": %.0f}\n", median, first,
           (double)batch / median * 1e3, (double)memory.peak * 1e-6);
    pc_tensor_free(j.x);
    pc_tensor_free(j.labels);
    pc_optimizer_free(j.sgd);
    pc_module_free(j.net);
    return 0;
}
