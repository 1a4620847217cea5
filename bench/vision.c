/* vision.c: training steps of networks for pictures: forward, loss, backward, SGD with momentum, one recording; with one class
 * those of `paracord train` (article, two-conv), with Adam. Peer:
 * bench/peers/vision.py.
 *
 * Usage: bench.vision DEVICES PRECISION NETWORK BATCH [size] [classes] [steps]
 * DEVICES: cuda:0, or cuda*2 for two ranks, each with BATCH. A line of JSON: milliseconds a step (median of rounds of steps), until the first step was done, and megabytes at most. */
#include "steps.h"

#include "train/arch.h"

#include <string.h>

typedef struct job {
    pc_module *net;
    pc_tensor *x, *labels;
    int classes;
} job;

static pc_tensor *loss_of(void *user)
{
    job *j = user;
    pc_tensor *y = pc_forward(j->net, j->x);
    return pc_tensor_size(y, 1) == 1 ? pc_bce_with_logits(y, j->labels) : pc_cross_entropy(y, j->labels);
}

static pc_tensor *labels_of(int64_t n, int classes, pc_device device)
{
    int64_t *labels = malloc((size_t)n * sizeof *labels);
    for (int64_t i = 0; i < n && labels; i++)
        labels[i] = i * 2654435761LL % classes;
    pc_tensor *made = labels ? pc_from_data(labels, PC_SHAPE(n), PC_I64, device) : NULL;
    free(labels);
    return classes > 1 ? made : pc_zeros(PC_SHAPE(n, 1), PC_F32, device);
}

static pc_status make(job *j, const char *network, int64_t batch, int size, int classes, pc_device device)
{
    j->net = classes > 1 ? pc_picture_network(network, classes, .height = size, .width = size)
                         : pc__arch_new(network, (pc__frame){size, size, 3}, 1, PC_INIT_GLOROT);
    if (!j->net || pc_module_to(j->net, device, PC_F32) != PC_OK)
        return pc_error_last()->status;
    j->classes = classes;
    PC_SCOPE {
        pc_tensor *x = pc_permute(pc_randn(PC_SHAPE(batch, size, size, 3), PC_F32, device), PC_SHAPE(0, 3, 1, 2));
        j->x = pc_keep(x);
    }
    j->labels = labels_of(batch, classes, device);
    return j->x && j->labels ? PC_OK : pc_error_last()->status;
}

static pc_status make_from(void *user, char **words, int count, pc_device device, pc_group *network)
{
    (void)network; /* its layers are not cut up */
    const int size = count > 4 ? atoi(words[4]) : 224, classes = count > 5 ? atoi(words[5]) : 1000;
    return make(user, words[2], atoll(words[3]), size, classes, device);
}

static void free_all(void *user)
{
    job *j = user;
    pc_tensor_free(j->x);
    pc_tensor_free(j->labels);
    pc_module_free(j->net);
}

static pc_module *network_of(void *user)
{
    return ((job *)user)->net;
}

static pc_optimizer *optimizer_for(void *user, pc_module *of)
{
    const job *j = user;
    return j->classes > 1 ? pc_sgd(of, .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4) : pc_adam(of, .lr = 1e-3);
}

int main(int argc, char **argv)
{
    double result[RESULTS];
    trained t = {.job_bytes = sizeof(job),
                 .make = make_from,
                 .free = free_all,
                 .loss = loss_of,
                 .network = network_of,
                 .optimizer = optimizer_for,
                 .words = argv + 1,
                 .count = argc - 1,
                 .steps = argc > 7 ? atoi(argv[7]) : 10};
    if (argc < 5) {
        fprintf(stderr, "usage: bench.vision DEVICES PRECISION NETWORK BATCH [size] [classes] [steps]\n");
        return 2;
    }
    const int n = ranks_trained(&t, result);
    if (n && pc_dist_rank() == 0)
        printf("{\"ranks\": %d, \"step_ms\": %.4f, \"first_ms\": %.1f, \"pictures_per_second\": %.0f, \"peak_mb\": "
               "%.0f}\n",
               n, result[STEP_MS], result[FIRST_MS], n * atof(argv[4]) / result[STEP_MS] * 1e3, result[PEAK_MB]);
    return n ? 0 : 1;
}
