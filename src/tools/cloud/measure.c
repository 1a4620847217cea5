/* measure.c: short measurements on this machine: training steps, decoding, and which GPU it has. */
#include "cloud/cloud.h"
#include "cloud/work.h"
#include "data/folder.h"
#include "io/file.h"
#include "train/fit.h"

#include <dirent.h>
#include <math.h>
#include <paracord/augment.h>
#include <paracord/autograd.h>
#include <paracord/step.h>
#include <paracord/stream.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 64
#define WARM_UP 3 /* runs that make memory and, on a GPU, the recording; one where a single one takes too long */

typedef struct training {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *y;
    pc_device device;
    double update; /* seconds of the last optimiser's step, where the device works at once */
} training;

static pc_status learn(void *user)
{
    training *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc__batch_loss(pc_forward(t->net, t->x), t->y, NULL);
        status = pc_backward(loss);
        double before = pc__seconds_now();
        if (status == PC_OK)
            status = pc_optimizer_step(t->adam);
        t->update = pc__seconds_now() - before;
    }
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* On a device that works later eight steps are timed together, which is how training queues them. */
static pc_status time_steps(training *t, pc_step *step, double seconds, double *median)
{
    double times[ROUNDS], begin = pc__seconds_now();
    int count = 0, together = t->device.type == PC_CPU ? 1 : 8;
    for (int i = -WARM_UP; count < ROUNDS; i++) {
        double start = pc__seconds_now();
        for (int k = 0; k < together; k++)
            PC__TRY(pc_step_run(step));
        PC__TRY(pc_device_synchronize(t->device));
        double now = pc__seconds_now();
        bool over = now - begin > seconds;
        if (i >= 0 || (over && i > -WARM_UP))
            times[count++] = (now - start) / together;
        if (over && count)
            break;
        if (i == -1)
            begin = now; /* the warm-up does not count */
    }
    qsort(times, (size_t)count, sizeof *times, ascending);
    *median = times[count / 2];
    return PC_OK;
}

pc_status pc__cloud_measure_steps(pc_module *net, pc__frame pictures, int classes, int batch, double seconds,
                                  double *step_time, double *update)
{
    pc_parameter first;
    if (pc_module_parameter_list(net, &first, 1) < 1)
        return pc__fail(PC_ERR_ARGUMENT, "the network has no parameters: there is nothing to train");
    training t = {.net = net, .device = pc_tensor_device(first.tensor)};
    pc_status status = PC_OK;
    pc_module_set_training(net, true);
    t.adam = pc_adam(net, .lr = 1e-4);
    PC_SCOPE {
        t.x = pc_permute(pc_rand(PC_SHAPE(batch, pictures.height, pictures.width, pictures.channels), PC_F32, t.device),
                         PC_SHAPE(0, 3, 1, 2));
        t.y =
            classes == 2 ? pc_zeros(PC_SHAPE(batch, 1), PC_F32, t.device) : pc_zeros(PC_SHAPE(batch), PC_I64, t.device);
        pc_step *step = t.adam && t.x && t.y ? pc_step_new(learn, &t, t.adam) : NULL;
        status = step ? time_steps(&t, step, seconds, step_time) : pc_error_last()->status;
        pc_step_free(step);
        *update = t.device.type == PC_CPU ? t.update : 0;
    }
    pc_optimizer_free(t.adam);
    return status;
}

/* Of the calling thread: waiting for a disk or for other programs does not count. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Times of what was decoded so far. */
typedef struct looking {
    pc__frame frame;
    int decoded;
    double decode, augment;
    float *room;
} looking;

static pc_status look_at(looking *l, const char *path, int number)
{
    static const pc_augment plan = {.shear = 0.2, .zoom_low = 0.8, .zoom_high = 1.2, .flip_horizontal = true};
    pc_image_options options = {.channels = l->frame.channels, .width = l->frame.width, .height = l->frame.height};
    pc_image image;
    double start = thread_seconds();
    pc_status status = pc_image_read(path, options, &image);
    double middle = thread_seconds();
    l->decode += middle - start;
    if (status != PC_OK)
        return status;
    pc_augment_values values = pc_augment_draw(&plan, 0, 0, (uint64_t)number, l->frame.height, l->frame.width);
    status =
        pc_augment_apply(&plan, &values, image.pixels, l->frame.height, l->frame.width, l->frame.channels, l->room);
    l->augment += thread_seconds() - middle;
    l->decoded++;
    pc_image_free(&image);
    return status;
}

pc_status pc__cloud_measure_pictures(const pc__folder *folder, pc__frame pictures, double seconds, double *decode,
                                     double *augment)
{
    looking l = {.frame = pictures, .room = pc__alloc(pc__frame_bytes(pictures) * sizeof(float))};
    /* a prime that is no part of the count: through all files, without coming near where it was for long */
    const int stride = folder->count % 37 ? 37 : folder->count % 41 ? 41 : 1;
    double begin = pc__seconds_now();
    pc_status status = l.room ? PC_OK : PC_ERR_MEMORY;
    pc_error before = pc__error_take();
    for (int i = 0; status == PC_OK && i < folder->count && (l.decoded < 3 || pc__seconds_now() - begin < seconds);
         i++) {
        char *path = pc__folder_path(folder, (int)((int64_t)i * stride % folder->count));
        status = path ? look_at(&l, path, i) : PC_ERR_MEMORY;
        pc__free(path);
        if (status != PC_OK && status != PC_ERR_MEMORY && status != PC_ERR_UNSUPPORTED) {
            pc__error_take(); /* a broken picture takes its time too, and is no reason to stop */
            status = PC_OK;
        }
    }
    pc__free(l.room);
    if (before.status != PC_OK)
        (void)pc__error_put(&before);
    if (status == PC_OK && !l.decoded)
        return pc__fail(PC_ERR_FORMAT, "none of the pictures in %s could be decoded; paracord pictures check names why",
                        folder->root);
    *decode = l.decode / l.decoded;
    *augment = l.augment / l.decoded;
    return status;
}

/* All words of a catalogue's name ("A100 40GB") stand in the driver's ("NVIDIA A100-SXM4-40GB"). */
static bool names(const char *ours, const char *drivers)
{
    for (size_t n; *ours; ours += n + strspn(ours + n, " ")) {
        n = strcspn(ours, " ");
        const char *word = drivers;
        while (*word && (strcspn(word, " -") != n || strncmp(word, ours, n) != 0)) {
            word += strcspn(word, " -");
            word += strspn(word, " -");
        }
        if (!*word)
            return false;
    }
    return true;
}

const pc_cloud_gpu *pc_cloud_gpu_named(const pc_cloud *cloud, const char *model)
{
    PC__NEED_OR(NULL, cloud);
    PC__NEED_OR(NULL, model);
    for (int i = 0; i < cloud->gpu_count && !strstr(model, "PCIe"); i++) /* the catalogue's are the faster boards */
        if (names(cloud->gpus[i].name, model))
            return &cloud->gpus[i];
    return NULL;
}

/* The "Model:" of one GPU's information file. */
static const pc_cloud_gpu *read_model(const pc_cloud *cloud, const char *proc, const char *address)
{
    pc__text path = {0};
    pc__text_add(&path, "%s/%s/information", proc, address);
    FILE *file = path.failed ? NULL : fopen(path.data, "re");
    const pc_cloud_gpu *found = NULL;
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "Model:", 6)) {
            line[strcspn(line, "\n")] = 0;
            found = pc_cloud_gpu_named(cloud, line + 6 + strspn(line + 6, " \t"));
        }
    if (file)
        fclose(file);
    pc__text_free(&path);
    return found;
}

const pc_cloud_gpu *pc__cloud_this_gpu(const pc_cloud *cloud, const char *proc)
{
    DIR *folder = opendir(proc);
    const pc_cloud_gpu *found = NULL;
    bool several = false, any = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        const pc_cloud_gpu *gpu = read_model(cloud, proc, entry->d_name);
        several = several || (any && gpu != found);
        found = gpu;
        any = true;
    }
    if (folder)
        closedir(folder);
    return several ? NULL : found;
}
