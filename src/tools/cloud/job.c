/* job.c: a training as the cloud needs to know it: the network counted, the folder counted, this machine measured. */
#include "cloud/cloud.h"
#include "cloud/work.h"
#include "data/folder.h"
#include "train/arch.h"
#include "train/data_folders.h"
#include "train/model_path.h"

#include <math.h>
#include <unistd.h>

#define VALIDATION 0.2   /* what `paracord train` keeps for testing where there is no test folder */
#define CPU_SECONDS 0.02 /* to measure for */
#define GPU_SECONDS 0.5
#define DECODE_SECONDS 0.02
#define CPU_FLOPS 1e9 /* of one measured step on a CPU: about 15 ms at 70 GFLOP/s */

static pc_status count_files(const char *path, int *count, int *classes, pc__folder *keep)
{
    pc__folder folder;
    PC__TRY(pc__folder_scan(path, &folder));
    pc_status status = pc__folder_check(&folder);
    *count = folder.count;
    *classes = folder.class_count;
    if (status == PC_OK && keep)
        *keep = folder;
    else
        pc__folder_free(&folder);
    return status;
}

/* As `paracord train` looks: train and test folders, or class folders of which a part is kept for testing. */
static pc_status count_pictures(const char *data, pc_cloud_job *job, pc__folder *train)
{
    char *train_folder, *test_folder = NULL;
    int count, classes;
    if (!pc__is_folder(data))
        return pc__fail(PC_ERR_FILE, "%s is not a folder", data);
    PC__TRY(pc__find_train_folder(data, &train_folder));
    pc_status status = train_folder ? pc__find_test_folder(data, &test_folder) : PC_OK;
    if (status == PC_OK)
        status = count_files(train_folder ? train_folder : data, &count, &job->classes, train);
    if (status == PC_OK && test_folder) {
        job->train_pictures = count;
        status = count_files(test_folder, &count, &classes, NULL);
        job->test_pictures = count;
        if (status != PC_OK)
            pc__folder_free(train);
    } else if (status == PC_OK) {
        job->test_pictures = (int64_t)(count * VALIDATION);
        job->train_pictures = count - job->test_pictures;
    }
    pc__free(train_folder);
    pc__free(test_folder);
    return status;
}

static pc__frame frame_of(const pc_cloud_job *job)
{
    return (pc__frame){job->height, job->width, job->channels};
}

/* The plan's size where the file leaves a side open (0); else the file's own. */
static pc_status choose_size(const pc_cloud_job_options *plan, pc_cloud_job *job)
{
    const int height = plan->height ? plan->height : plan->size, width = plan->width ? plan->width : plan->size;
    if (!height && (!job->height || !job->width))
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s takes pictures of any size: say which size they are to be brought to (--size)",
                        plan->model);
    job->height = job->height ? job->height : height;
    job->width = job->width ? job->width : width;
    return !height || (height == job->height && width == job->width)
               ? PC_OK
               : pc__fail(PC_ERR_ARGUMENT, "%s takes pictures of %d x %d, not of %d x %d", plan->model, job->height,
                          job->width, height, width);
}

static pc_status check_classes(const pc_cloud_job_options *plan, const pc_cloud_job *job, int classes)
{
    return classes == job->classes ? PC_OK
                                   : pc__fail(PC_ERR_SHAPE, "%s has %d classes and %s knows %d", plan->folder,
                                              job->classes, plan->model, classes);
}

/* By name or from a file; the caller frees it. */
static pc_module *make_network(const pc_cloud_job_options *plan, pc_cloud_job *job)
{
    if (access(plan->model, F_OK) != 0 && !strpbrk(plan->model, "./")) {
        job->height = plan->height ? plan->height : plan->size ? plan->size : 64;
        job->width = plan->width ? plan->width : job->height;
        job->channels = 3;
        return pc__arch_new(plan->model, frame_of(job), job->classes == 2 ? 1 : job->classes, PC_INIT_GLOROT);
    }
    pc__opened_model model;
    if (pc__model_open_any(plan->model, &model) != PC_OK)
        return NULL;
    pc_module *net = model.file.net;
    job->height = model.file.preparation.height;
    job->width = model.file.preparation.width;
    job->channels = model.file.preparation.channels;
    int classes = model.file.class_count;
    model.file.net = NULL;
    pc__model_close(&model);
    if (choose_size(plan, job) == PC_OK && check_classes(plan, job, classes) == PC_OK)
        return net;
    pc_module_free(net);
    return NULL;
}

/* How fast this machine trains it, and by how much the model of a GPU is off where it has one that is known. */
static pc_status measure(const pc_cloud *cloud, const pc_cloud_job_options *plan, pc_module *net, pc_cloud_job *job)
{
    pc_device device;
    PC__TRY(pc_device_parse(plan->device ? plan->device : "auto", &device));
    PC__TRY(pc_module_to(net, device, PC_F32));
    pc_device_name(device, job->device);
    bool gpu = device.type == PC_CUDA;
    double seconds = plan->seconds > 0 ? plan->seconds : gpu ? GPU_SECONDS : CPU_SECONDS, step, update;
    double room = CPU_FLOPS / PC__MAX(job->work.train_flops, 1.0);
    job->measured_batch = gpu || room >= job->batch ? job->batch : PC__MAX((int)room, 1);
    PC__TRY(pc__cloud_measure_steps(net, frame_of(job), job->classes, job->measured_batch, seconds, &step, &update));
    step = (step - update) * job->batch / job->measured_batch + update;
    job->here = job->batch / step;
    job->gpu = gpu ? pc__cloud_this_gpu(cloud, "/proc/driver/nvidia/gpus") : NULL;
    double modelled = job->gpu ? pc__cloud_step_time(&job->work, job->gpu, job->batch) : NAN;
    job->correction = isnan(modelled) ? 1 : step / modelled;
    return PC_OK;
}

static const pc_cloud_gpu *find_gpu(const pc_cloud *cloud, const char *name)
{
    pc__text there = {0};
    for (int i = 0; i < cloud->gpu_count; i++) {
        if (!strcmp(cloud->gpus[i].name, name)) {
            pc__text_free(&there);
            return &cloud->gpus[i];
        }
        pc__text_add(&there, "%s%s", i ? ", " : "", cloud->gpus[i].name);
    }
    (void)pc__fail(PC_ERR_NOT_FOUND, "there is no GPU \"%.40s\" in the catalogue; there are %s", name,
                   there.failed ? "..." : there.data);
    pc__text_free(&there);
    return NULL;
}

/* What somebody has measured elsewhere, instead of this machine's GPU. */
static pc_status take_known(const pc_cloud *cloud, const pc_cloud_job_options *plan, pc_cloud_job *job)
{
    if (!plan->known_gpu && !(plan->known_rate > 0))
        return PC_OK;
    if (!plan->known_gpu || !(plan->known_rate > 0))
        return pc__fail(PC_ERR_ARGUMENT, "a known rate needs both pictures a second and the GPU that they are of");
    const pc_cloud_gpu *gpu = find_gpu(cloud, plan->known_gpu);
    if (!gpu)
        return PC_ERR_NOT_FOUND;
    double modelled = pc__cloud_step_time(&job->work, gpu, job->batch);
    if (!gpu->capability || isnan(modelled))
        return pc__fail(PC_ERR_UNSUPPORTED, "what was measured on %s says nothing of others: %s", gpu->name,
                        gpu->capability ? "the catalogue does not know its rates" : "it runs no CUDA");
    /* the host's part is in it; where it would be nearly all, the rate is taken as it is */
    double step = job->batch / plan->known_rate, host = job->batch * pc__cloud_model.host_seconds;
    job->gpu = gpu;
    job->correction = PC__MAX(step - host, step / 4) / modelled;
    return PC_OK;
}

pc_status pc_cloud_plan_job(const pc_cloud *cloud, pc_cloud_job_options options, pc_cloud_job *job)
{
    const pc_cloud_job_options *plan = &options;
    PC__NEED(job);
    *job = (pc_cloud_job){0};
    PC__NEED(cloud);
    *job = (pc_cloud_job){.batch = plan->batch ? plan->batch : 32,
                          .epochs = plan->epochs ? plan->epochs : 25,
                          .threads = pc__cpu_count(),
                          .correction = 1};
    if (!plan->model || !plan->folder)
        return pc__fail(PC_ERR_ARGUMENT, "pc_cloud_plan_job: needs a model and a folder");
    if (plan->height < 0 || plan->height > 4096 || plan->width < 0 || plan->width > 4096 ||
        !plan->height != !plan->width)
        return pc__fail(PC_ERR_ARGUMENT, "pc_cloud_plan_job: height %d and width %d: both 1 to 4096, or both 0",
                        plan->height, plan->width);
    if (plan->size < 0 || plan->size > 4096 || job->batch < 1 || job->epochs < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_cloud_plan_job: size, batch and epochs must be 1 or more, 0 the default");
    pc__folder train;
    PC__TRY(count_pictures(plan->folder, job, &train));
    job->batch = (int)PC__MIN(job->batch, PC__MAX(job->train_pictures, 1)); /* as loaders have it */
    pc_module *net = make_network(plan, job);
    pc_status status = net ? pc__cloud_count(net, frame_of(job), &job->work) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc__cloud_measure_pictures(&train, frame_of(job), DECODE_SECONDS, &job->decode, &job->augment);
    if (status == PC_OK)
        status = measure(cloud, plan, net, job);
    if (status == PC_OK)
        status = take_known(cloud, plan, job);
    pc_module_free(net);
    pc__folder_free(&train);
    return status;
}
