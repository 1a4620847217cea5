/* loader: batches of a folder's pictures, decoded, resized and changed at random in every epoch. Prints "name seconds wall"
 * per picture: the CPU time of all threads, and the time that passes; of one epoch behind the first. Usage: loader FOLDER
 * [threads]. The settings are those of peers/loader.py. */
#include <paracord/loader.h>
#include <paracord/threads.h>

#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_epoch(pc_loader *loader)
{
    pc_batch batch;
    while (pc_loader_next(loader, &batch))
        ;
    if (pc_failed())
        exit(pc_report(stderr));
}

static void measure(const char *name, const char *folder, pc_loader_options options)
{
    options.shuffle = true;
    options.resize = PC_RESIZE_AREA;
    pc_loader *loader = pc_loader_new(folder, options);
    if (!loader)
        exit(pc_report(stderr));
    run_epoch(loader);
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC), n = (double)pc_loader_count(loader);
    run_epoch(loader);
    printf("%s %.9f %.9f\n", name, (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / n, (now(CLOCK_MONOTONIC) - wall) / n);
    fflush(stdout);
    pc_loader_free(loader);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: loader FOLDER [threads]\n", stderr);
        return 2;
    }
    if (argc > 2)
        pc_threads_set(atoi(argv[2]));
    const pc_augment plain = {.flip_horizontal = true};
    const pc_augment recipe = {.flip_horizontal = true,
                               .crop_low = 0.08,
                               .crop_high = 1,
                               .jitter_brightness = 0.4,
                               .jitter_contrast = 0.4,
                               .jitter_saturation = 0.4,
                               .mean = {0.485, 0.456, 0.406},
                               .std = {0.229, 0.224, 0.225}};
    measure("loader.plain", argv[1], (pc_loader_options){.size = 64, .augment = plain, .cache = -1});
    measure("loader.recipe", argv[1], (pc_loader_options){.size = 224, .augment = recipe, .cache = -1});
    measure("loader.kept", argv[1], (pc_loader_options){.size = 224, .augment = recipe});
    return 0;
}
