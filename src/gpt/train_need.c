/* train_need.c: the memory that a training takes, by the plans of its steps, and how fast the device is. */
#include "gpt/train.h"
#include "nn/optimizer.h"
#include "train/fit.h"

#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/no_grad.h>
#include <paracord/stream.h>

#include <math.h>

#define MARGIN 0.9 /* of what is left is taken at most */

/* What a recording of a step of so many stretches needs beside weights and moments, which are there: gradients and
 * activations. Nothing is launched. */
static pc_status plan_bytes(pc__gpt_training *t, int batch, int64_t *bytes)
{
    PC__TRY(pc__gpt_make_batch(t, batch));
    pc_stream *stream = pc_stream(t->device);
    pc_graph *graph = NULL;
    pc_status status = stream ? pc_graph_begin(stream) : pc_error_last()->status;
    if (status == PC_OK) {
        PC_WITH_STREAM(stream) {
            status = pc__gpt_forward_backward(t);
        }
        graph = pc_graph_end(stream);
        status = graph ? status : pc_error_last()->status;
    }
    if (status == PC_OK)
        *bytes = pc_graph_memory(graph);
    pc_graph_free(graph);
    pc_module_zero_grad(t->gpt);
    pc_stream_free(stream);
    return status;
}

static int64_t bytes_left(pc_device device)
{
    pc_memory_stats stats;
    if (device.type == PC_CPU || pc_memory_query(device, &stats) != PC_OK || !stats.total)
        return pc_memory_left();
    return stats.free + stats.cached;
}

bool pc__gpt_fits(const pc__gpt_training *t, const pc_module *network)
{
    return 1.25 * (double)pc_module_parameter_elements(network) * sizeof(float) <= MARGIN * bytes_left(t->device);
}

/* The largest power of two that fits, of at most so many tokens, in each part of a batch. */
static int largest(const pc__gpt_training *t, double fixed, double each, double left)
{
    const int context = pc__gpt_of(t->gpt, "pc_gpt_train")->context, most = t->device.type == PC_CPU ? 8192 : 65536;
    int batch = 1;
    while (2 * batch * context <= most && fixed + 2 * batch * each <= left)
        batch *= 2;
    return batch * t->o.accumulate;
}

/* Bytes that are there already: weights and moments, gradients where these have a place of their own, or parts of them. On
 * the device, or in host memory in its place. */
static double bytes_there(const pc__gpt_training *t, bool host)
{
    const double numbers = (double)pc_module_parameter_elements(t->gpt), slots = t->optimizer->slots;
    const int stage = t->zero ? t->o.zero : 0;
    const double weights = stage == 3 ? 1.0 / t->copies : 1, moments = stage ? slots / t->copies : slots;
    const double gradients = (t->ddp || stage == 1 ? 1 : 0) + (stage ? 1.0 / t->copies : 0);
    const bool away = t->o.offload && t->device.type != PC_CPU;
    const double moved = away ? moments + (stage == 3 ? weights : 0) : 0;
    return numbers * (host ? moved : weights + gradients + moments - moved) * sizeof(float);
}

pc_status pc__gpt_fit_batch(pc__gpt_training *t)
{
    int64_t one, three;
    const int parts = t->o.accumulate;
    if (t->o.batch > 0 && t->all / t->copies < parts)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: %d stretches of a rank cannot be taken in %d parts",
                        t->all / t->copies, parts);
    PC__TRY(plan_bytes(t, parts, &one));
    PC__TRY(plan_bytes(t, 3 * parts, &three));
    const double each = fmax((double)(three - one) / 2, 1), fixed = fmax((double)one - each, 0);
    const double left = MARGIN * (double)bytes_left(t->device);
    if (t->o.batch < 0)
        t->o.batch = largest(t, fixed, each, left);
    const double need = fixed + ceil((double)t->o.batch / parts) * each;
    t->run.bytes = (int64_t)(need + bytes_there(t, false));
    t->host_bytes = (int64_t)bytes_there(t, true);
    if (need <= left)
        return PC_OK;
    return pc__fail(
        PC_ERR_MEMORY,
        "a step of %d stretches needs %.0f MB beside weights and moments, and %.0f MB are left; %d stretches would "
        "fit",
        t->o.batch, need / 1e6, left / 1e6, parts * (int)fmax((left - fixed) / each, 0));
}

/* Seconds of a product of matrices n x n, the best of three. */
static double seconds_of(pc_device device, pc_dtype dtype, int64_t n)
{
    double best = INFINITY;
    PC_SCOPE {
        pc_tensor *a = pc_full(PC_SHAPE(n, n), 0.5, dtype, device);
        for (int i = 0; a && i < 4 && best > 0; i++) {
            const double start = pc__seconds_now();
            if (!pc_matmul(a, a) || pc_device_synchronize(device) != PC_OK)
                best = NAN;
            else if (i)
                best = fmin(best, pc__seconds_now() - start);
        }
    }
    return best;
}

double pc__gpt_peak(pc_device device, pc_dtype dtype)
{
    double peak = NAN;
    PC_NO_GRAD {
        const int64_t n = device.type == PC_CUDA ? 8192 : 512;
        peak = 2.0 * (double)n * (double)n * (double)n / seconds_of(device, dtype, n);
    }
    return peak;
}
