/* estimate.c: from what a training asks and what a GPU's datasheet promises to hours and dollars. */
#include "cloud/cloud.h"
#include "cloud/work.h"

#include <math.h>

/* What fits 24 kinds of step that were measured on an NVIDIA H200 (bench/cloud.c; docs/cloud.md has the table); that
 * other GPUs reach the same shares is an assumption. Convolutions to few channels fill a part of the kernels' tiles. */
const pc_cloud_model pc__cloud_model = {.pass_seconds = 2.3e-6,
                                        .flops_share = 0.74,
                                        .narrow_share = 0.064,
                                        .bytes_share = 0.82,
                                        .host_seconds = 0.1e-6,
                                        .worst = 0.35,
                                        .billed_seconds = 60,
                                        .narrow_channels = 32};

#define LOWEST_CAPABILITY 75 /* CUDA 13 has no code for older ones */
#define ROOM_SHARE 0.9       /* of the memory; the driver has the rest */

pc_cloud_model pc_cloud_estimate_model(void)
{
    return pc__cloud_model;
}

bool pc_cloud_gpu_runs(const pc_cloud_gpu *gpu)
{
    return gpu && gpu->capability >= LOWEST_CAPABILITY;
}

static double step_time(double flops, double narrow, double bytes, int passes, const pc_cloud_gpu *gpu)
{
    const pc_cloud_model *m = &pc__cloud_model;
    double wide = flops - narrow;
    return passes * m->pass_seconds + (wide / m->flops_share + narrow / m->narrow_share) / (gpu->f32 * 1e12) +
           bytes / (gpu->bandwidth * 1e9 * m->bytes_share);
}

/* Forward, back and the optimiser: each layer twice, and what is done once a step. */
double pc__cloud_step_time(const pc_cloud_work *w, const pc_cloud_gpu *gpu, int batch)
{
    return step_time(batch * w->train_flops, batch * w->train_narrow, batch * w->train_bytes + w->step_bytes,
                     2 * w->layers + 2, gpu);
}

double pc__cloud_look_time(const pc_cloud_work *w, const pc_cloud_gpu *gpu, int batch)
{
    return step_time(batch * w->infer_flops, batch * w->infer_narrow, batch * w->infer_bytes, w->layers + 1, gpu);
}

double pc_cloud_job_bytes(const pc_cloud_job *job)
{
    PC__NEED_OR(NAN, job);
    return 2 * job->batch * job->work.resident_bytes + 16.0 * (double)job->work.parameters;
}

static pc_cloud_reason reason_for(const pc_cloud_job *job, const pc_cloud_instance *instance)
{
    const pc_cloud_gpu *gpu = instance->family->gpu;
    if (!pc_cloud_gpu_runs(gpu))
        return PC_CLOUD_NO_CUDA;
    if (strcmp(instance->family->arch, "x86_64") != 0)
        return PC_CLOUD_OTHER_ARCH;
    if (instance->parts > 1)
        return PC_CLOUD_PART;
    if (isnan(gpu->f32) || isnan(gpu->bandwidth))
        return PC_CLOUD_NO_RATES;
    if (pc_cloud_job_bytes(job) > ROOM_SHARE * (double)instance->memory_mib * 1048576)
        return PC_CLOUD_NO_ROOM;
    return PC_CLOUD_ESTIMATED;
}

/* From seconds of a picture, training and looking, and threads that decode. */
static void fill(const pc_cloud_job *job, double train, double look, int threads, pc_cloud_estimate *e)
{
    e->pictures_per_second = 1 / train;
    e->decode = (double)(job->train_pictures + job->test_pictures) * job->decode / threads;
    e->train = job->epochs * ((double)job->train_pictures * train + (double)job->test_pictures * look);
    e->seconds = e->decode + e->train;
}

static const pc_cloud_estimate unknown = {PC_CLOUD_NO_RATES, NAN, NAN, NAN, NAN, NAN};

pc_cloud_estimate pc_cloud_estimate_job(const pc_cloud_job *job, const pc_cloud_instance *instance,
                                        pc_cloud_price price)
{
    PC__NEED_OR(unknown, job);
    PC__NEED_OR(unknown, instance);
    const pc_cloud_gpu *gpu = instance->family->gpu;
    pc_cloud_estimate e = {reason_for(job, instance), NAN, NAN, NAN, NAN, NAN};
    if (e.reason != PC_CLOUD_ESTIMATED)
        return e;
    double step = pc__cloud_step_time(&job->work, gpu, job->batch) * job->correction;
    double look = pc__cloud_look_time(&job->work, gpu, job->batch) * job->correction;
    fill(job, step / job->batch + pc__cloud_model.host_seconds, look / job->batch + pc__cloud_model.host_seconds,
         instance->vcpus, &e);
    e.usd = price.usd * fmax(e.seconds, pc__cloud_model.billed_seconds) / 3600;
    return e;
}

pc_cloud_estimate pc_cloud_estimate_here(const pc_cloud_job *job)
{
    PC__NEED_OR(unknown, job);
    pc_cloud_estimate e = {PC_CLOUD_ESTIMATED, NAN, NAN, NAN, NAN, NAN};
    bool gpu = !strncmp(job->device, "cuda", 4);
    double host = gpu ? pc__cloud_model.host_seconds : job->augment / job->threads;
    /* forward alone takes about the share of the flops that it has */
    double look = job->work.train_flops > 0 ? job->work.infer_flops / job->work.train_flops : 1;
    fill(job, 1 / job->here + host, look / job->here, job->threads, &e);
    return e;
}
