/* step.c: one training step (forward, loss, backward, Adam) of the networks of `paracord train`, batch 32, 64 x 64, on
 * random pictures; and a 16-element add, for what a call costs. Peer: bench/peers/step.py. */
#include <paracord.h>
#include <stdlib.h>
#include <time.h>

#include "train/arch.h"
#include "train/score.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static pc_status step(pc_module *net, pc_optimizer *adam, pc_tensor *x, pc_tensor *y)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc__batch_loss(pc_forward(net, x), y, NULL);
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(adam);
    }
    return status;
}

#define ROUNDS 60

static void measure_step(const char *arch)
{
    double times[ROUNDS];
    pc_module *net = pc__arch_new(arch, (pc__frame){64, 64, 3}, 1, PC_INIT_GLOROT);
    pc_optimizer *adam = pc_adam(net, .lr = 1e-3);
    PC_SCOPE {
        pc_tensor *x = pc_permute(pc_rand(PC_SHAPE(32, 64, 64, 3), PC_F32, PC_DEVICE_CPU), PC_SHAPE(0, 3, 1, 2));
        pc_tensor *y = pc_zeros(PC_SHAPE(32, 1), PC_F32, PC_DEVICE_CPU);
        for (int i = -10; i < ROUNDS; i++) {
            double start = now();
            if (step(net, adam, x, y) != PC_OK)
                break;
            if (i >= 0)
                times[i] = now() - start;
        }
    }
    pc_optimizer_free(adam);
    pc_module_free(net);
    if (pc_report(stderr))
        exit(1);
    qsort(times, ROUNDS, sizeof *times, ascending);
    printf("{\"bench\": \"step\", \"network\": \"%s\", \"median_ms\": %.3f, \"min_ms\": %.3f}\n", arch,
           times[ROUNDS / 2], times[0]);
}

static void measure_add(void)
{
    enum { CALLS = 20000 };
    double times[ROUNDS];
    pc_tensor *a = pc_ones(PC_SHAPE(16), PC_F32, PC_DEVICE_CPU), *b = pc_ones(PC_SHAPE(16), PC_F32, PC_DEVICE_CPU);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        for (int k = 0; k < CALLS; k++)
            pc_tensor_free(pc_add(a, b));
        times[i] = (now() - start) * 1e6 / CALLS;
    }
    pc_tensor_free(a);
    pc_tensor_free(b);
    qsort(times, ROUNDS, sizeof *times, ascending);
    printf("{\"bench\": \"add16\", \"median_ns\": %.0f, \"min_ns\": %.0f}\n", times[ROUNDS / 2], times[0]);
}

int main(void)
{
    measure_step("article");
    measure_step("two-conv");
    measure_add();
    return 0;
}
