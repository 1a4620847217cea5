/* train: steps of a training of `article` on a folder of pictures, with the augmentation of `paracord train`: pictures
 * on the device and on the host; and the bare step as one recording, which is what they are to come to. Usage: train
 * FOLDER [DEVICE [BATCH]]: one folder per class. Prints the median over epochs, all that an epoch costs divided by its
 * steps.
 */
#include <paracord.h>
#include <stdlib.h>
#include <time.h>

#include "train/arch.h"
#include "train/score.h"

enum { EPOCHS = 20, LAUNCHES = 400 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void must(pc_status status)
{
    if (status != PC_OK)
        exit(pc_report(stderr));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct network {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *y;
} network;

static network network_on(pc_device device)
{
    network n = {.net = pc__arch_new("article", (pc__frame){64, 64, 3}, 1, PC_INIT_GLOROT)};
    must(pc_module_to(n.net, device, PC_F32));
    n.adam = pc_adam(n.net, .lr = 1e-3);
    must(n.adam ? PC_OK : PC_ERR_MEMORY);
    return n;
}

static pc_status step(void *context)
{
    network *n = context;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc__batch_loss(pc_forward(n->net, n->x), n->y, NULL);
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(n->adam);
    }
    return status;
}

static double bare_step(pc_device device, int batch)
{
    network n = network_on(device);
    double took = 0;
    PC_SCOPE {
        n.x = pc_permute(pc_rand(PC_SHAPE(batch, 64, 64, 3), PC_F32, device), PC_SHAPE(0, 3, 1, 2));
        n.y = pc_zeros(PC_SHAPE(batch, 1), PC_F32, device);
        pc_step *s = pc_step_new(step, &n, n.adam);
        for (int i = -10; i < LAUNCHES; i++) {
            if (i == 0) {
                must(pc_device_synchronize(device));
                took = now();
            }
            must(s ? pc_step_run(s) : PC_ERR_MEMORY);
        }
        must(pc_device_synchronize(device));
        took = now() - took;
        pc_step_free(s);
    }
    pc_optimizer_free(n.adam);
    pc_module_free(n.net);
    return took / LAUNCHES;
}

typedef struct epochs {
    double seconds[EPOCHS];
    int count;
} epochs;

static void ended(void *context, const pc_epoch_result *result)
{
    epochs *e = context;
    e->seconds[e->count++] = result->seconds;
}

static void train(const char *folder, pc_device device, int batch, pc_residence resident)
{
    epochs e = {.count = 0};
    pc_train_callbacks callbacks = {.context = &e, .epoch = ended};
    double start = now();
    pc_loader *pictures = pc_loader(folder, .batch = batch, .shuffle = true, .flip = true, .device = device,
                                    .augment = {.shear = 0.2, .zoom_low = 0.8, .zoom_high = 1.2}, .resident = resident);
    double loading = now() - start;
    must(pictures ? PC_OK : PC_ERR_FILE);
    network n = network_on(device);
    must(pc_fit(n.net, n.adam, pictures, PC_OPTIONS(pc_fit_options, .epochs = EPOCHS, .callbacks = &callbacks), NULL));
    qsort(e.seconds, EPOCHS, sizeof *e.seconds, ascending);
    printf("{\"bench\": \"train\", \"pictures\": \"%s\", \"count\": %lld, \"batch\": %d, \"loading_ms\": %.1f, "
           "\"step_us\": %.1f, \"best_us\": %.1f}\n",
           pc_loader_resident(pictures, NULL, 0) ? "on the device" : "on the host",
           (long long)pc_loader_count(pictures), batch, loading * 1e-3,
           e.seconds[EPOCHS / 2] * 1e6 / (double)pc_loader_batches(pictures),
           e.seconds[0] * 1e6 / (double)pc_loader_batches(pictures));
    pc_optimizer_free(n.adam);
    pc_module_free(n.net);
    pc_loader_free(pictures);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: train FOLDER [DEVICE [BATCH]]\n");
        return 2;
    }
    pc_device device = pc_device_pick(argc > 2 ? argv[2] : "auto");
    const int only = argc > 3 ? atoi(argv[3]) : 0;
    for (int batch = only ? only : 32; batch <= (only ? only : 512); batch *= 16) {
        printf("{\"bench\": \"bare step\", \"batch\": %d, \"step_us\": %.1f}\n", batch, bare_step(device, batch));
        train(argv[1], device, batch, PC_RESIDENCE_AUTO);
        train(argv[1], device, batch, PC_RESIDENCE_NO);
    }
    return pc_report(stderr);
}
