/* order: what the order between streams costs where there is nothing to order: a call's three storages (two read, one
 * written) on their own stream, cold and with a second stream reading too; and what queuing a small op costs the host
 * beside it, with a tensor and with a number. */
#include "device/order.h"
#include "ops/table.h"

#include <paracord.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 1000000, ROUNDS = 15, OPS = 20000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *seconds)
{
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    printf("{\"bench\": \"%s\", \"median_ns\": %.2f}\n", name, seconds[ROUNDS / 2] * 1e9);
}

/* The same loop without the uses, so that the loop itself is not counted. */
static void uses(pc_stream *stream, bool with)
{
    pc_tensor *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = pc_zeros(PC_SHAPE(16), PC_F32, pc_stream_device(stream));
    pc__work work = {.name = "bench"};
    for (uint64_t n = 0; n < CALLS; n++) {
        work.ticket = n;
        __asm__ volatile("" ::: "memory");
        for (int i = 0; with && i < 3; i++)
            if (pc__uses(t[i]->storage, stream, &work, i == 2) != PC_OK)
                exit(1);
    }
    for (int i = 0; i < 3; i++) {
        pc__order_reset(t[i]->storage);
        pc_tensor_free(t[i]);
    }
}

static void measure_uses(pc_stream *stream)
{
    double seconds[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = now();
        uses(stream, false);
        double loop = now() - start;
        start = now();
        uses(stream, true);
        seconds[r] = (now() - start - loop) / CALLS;
    }
    report("order.same_stream", seconds);
}

static pc_tensor *added(pc_tensor *a)
{
    return pc_add(a, a);
}

static pc_tensor *halved(pc_tensor *a)
{
    return pc_mul_scalar(a, .5);
}

static void measure_op(pc_device device, const char *name, int64_t elements, pc_tensor *(*op)(pc_tensor *))
{
    const int calls = elements > 1000 ? OPS / 50 : OPS;
    double seconds[ROUNDS];
    pc_tensor *a = pc_zeros(PC_SHAPE(elements), PC_F32, device);
    for (int r = 0; r < ROUNDS; r++) {
        double start = now();
        for (int i = 0; i < calls; i++)
            pc_tensor_free(op(a));
        seconds[r] = (now() - start) / calls;
        if (pc_device_synchronize(device) != PC_OK)
            exit(pc_report(stderr));
    }
    pc_tensor_free(a);
    report(name, seconds);
}

int main(void)
{
    if (pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1)) != PC_OK)
        return pc_report(stderr);
    pc_device device = pc_device_pick("sim:0");
    measure_uses(pc_stream_current(device));
    measure_op(PC_DEVICE_CPU, "add16.cpu", 16, added);
    measure_op(device, "add16.queued_on_sim", 16, added);
    measure_op(PC_DEVICE_CPU, "mul_scalar16.cpu", 16, halved);
    measure_op(PC_DEVICE_CPU, "mul_scalar1M.cpu", 1 << 20, halved);
    return 0;
}
