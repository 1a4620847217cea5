/* run_shots.c: pictures for a run's report. */
#include "train/run_shots.h"

enum { SIDE = 160 }; /* pixels of a thumbnail's longer side */

#if PC_HAVE_PNG /* without libpng the report has no pictures, and is still a report */
static pc_status encode(const pc_image *image, uint8_t **png, size_t *n)
{
    const int side = PC__MAX(image->width, image->height);
    if (side <= SIDE)
        return pc_image_encode_png(image, png, n);
    pc_image small;
    PC__TRY(pc_image_resize(image, PC__MAX(image->width * SIDE / side, 1), PC__MAX(image->height * SIDE / side, 1),
                            PC_RESIZE_AREA, &small));
    pc_status status = pc_image_encode_png(&small, png, n);
    pc_image_free(&small);
    return status;
}
#else
static pc_status encode(const pc_image *image, uint8_t **png, size_t *n)
{
    (void)image;
    *png = NULL, *n = 0;
    return PC_OK;
}
#endif

static pc_status add(const pc__run *run, const pc_loader *loader, int64_t i, pc__report_sample *list, int *count)
{
    const pc__answer *answer = &run->shown.list[i];
    pc_picture picture;
    uint8_t *png = NULL;
    size_t n = 0;
    PC__TRY(pc_loader_picture(loader, i, &picture));
    PC__TRY(encode(&picture.image, &png, &n));
    list[(*count)++] = (pc__report_sample){.name = picture.path,
                                           .truth = run->class_names[answer->label],
                                           .predicted = run->class_names[answer->named],
                                           .probability = (double)answer->probability,
                                           .bytes = png,
                                           .n = n};
    return PC_OK;
}

/* The wrong answers that were surest, in order; of equals the one that comes first. */
static int worst(const pc__answers *a, int64_t list[PC__RUN_MISTAKES])
{
    int count = 0;
    for (int64_t i = 0; i < a->count; i++) {
        if (a->list[i].label == a->list[i].named)
            continue;
        int place = count;
        while (place > 0 && a->list[list[place - 1]].probability < a->list[i].probability)
            place--;
        if (place == PC__RUN_MISTAKES)
            continue;
        count = PC__MIN(count + 1, PC__RUN_MISTAKES);
        memmove(list + place + 1, list + place, (size_t)(count - 1 - place) * sizeof *list);
        list[place] = i;
    }
    return count;
}

pc_status pc__run_shots_take(const pc__run *run, const pc_loader *loader, pc__run_shots *shots)
{
    int64_t list[PC__RUN_MISTAKES], every = PC__MAX(run->shown.count / PC__RUN_SAMPLES, 1);
    int count = worst(&run->shown, list);
    for (int i = 0; i < count; i++)
        PC__TRY(add(run, loader, list[i], shots->mistakes, &shots->mistake_count));
    for (int64_t i = 0; i < run->shown.count && shots->sample_count < PC__RUN_SAMPLES; i += every)
        PC__TRY(add(run, loader, i, shots->samples, &shots->sample_count));
    return PC_OK;
}

void pc__run_shots_free(pc__run_shots *shots)
{
    for (int i = 0; i < shots->mistake_count; i++)
        pc_image_bytes_free((uint8_t *)shots->mistakes[i].bytes);
    for (int i = 0; i < shots->sample_count; i++)
        pc_image_bytes_free((uint8_t *)shots->samples[i].bytes);
}
