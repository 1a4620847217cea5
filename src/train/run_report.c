/* run_report.c: the last look at the test pictures, and report.html. */
#include "train/run.h"
#include "train/summary.h"

#include <math.h>
#include <time.h>

#define SAMPLES 24

typedef struct collector {
    pc__run *run;
    const pc_loader *loader;
    int64_t *confusion;
    int classes;
    pc__report_sample samples[SAMPLES];
    int sample_count;
    int64_t every; /* one picture in so many becomes a sample */
    int64_t seen;
    pc_status status;
} collector;

static double probability_of(const float *row, int64_t width, int named)
{
    if (width == 1) {
        double p = 1 / (1 + exp(-(double)row[0]));
        return named ? p : 1 - p;
    }
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += exp((double)row[i] - (double)row[named]);
    return 1 / sum;
}

static pc_status add_sample(collector *c, const pc_picture *picture, int named, double probability)
{
    pc__report_sample *sample = &c->samples[c->sample_count];
    uint8_t *png = NULL;
    size_t n = 0;
#if PC_HAVE_PNG /* without libpng the report has no pictures, and is still a report */
    PC__TRY(pc_image_encode_png(&picture->image, &png, &n));
#endif
    *sample = (pc__report_sample){.name = picture->path,
                                  .truth = c->run->class_names[picture->label],
                                  .predicted = c->run->class_names[named],
                                  .probability = probability,
                                  .bytes = png,
                                  .n = n};
    c->sample_count++;
    return PC_OK;
}

static bool collect(void *context, const pc_batch *batch, const float *logits, int64_t width)
{
    collector *c = context;
    for (int64_t i = 0; i < batch->n; i++, c->seen++) {
        pc_picture picture;
        if (pc_loader_picture(c->loader, batch->sample[i], &picture) != PC_OK)
            return false;
        int named = pc__named_class(logits + i * width, width);
        c->confusion[picture.label * c->classes + named]++;
        if (c->seen % c->every == 0 && c->sample_count < SAMPLES)
            c->status = add_sample(c, &picture, named, probability_of(logits + i * width, width, named));
        if (c->status != PC_OK)
            return false;
    }
    return true;
}

static void count_classes(const pc_loader *loader, pc__report_class *classes, bool test)
{
    pc_picture picture;
    for (int64_t i = 0; loader && i < pc_loader_count(loader); i++)
        if (pc_loader_picture(loader, i, &picture) == PC_OK)
            ++*(test ? &classes[picture.label].test : &classes[picture.label].train);
}

/* The last name of a path, as a title: "catdog" of "data/catdog/". */
typedef struct name {
    char s[128];
} name;

static name last_part(const char *path)
{
    name result = {"pictures"};
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (end > start && path[start] != '.')
        snprintf(result.s, sizeof result.s, "%.*s", (int)(end - start), path + start);
    return result;
}

static pc_status write_report(pc__run *run, collector *c, pc__report_class *classes, const char *network)
{
    const pc_train_settings *s = &run->s;
    char date[32], device[PC_DEVICE_NAME_MAX], numbers[8][32], title[160];
    snprintf(title, sizeof title, "%s on %.120s", s->arch, last_part(s->data).s);
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    const double values[8] = {s->epochs, s->batch, s->size, s->lr, s->shear, s->zoom, s->rotation, (double)s->seed};
    for (int i = 0; i < 8; i++)
        snprintf(numbers[i], sizeof numbers[i], "%.10g", values[i]);
    const pc__report_setting settings[] = {{"network", s->arch},
                                           {"optimiser", s->optimizer},
                                           {"learning rate", numbers[3]},
                                           {"initialiser", s->init},
                                           {"products in", s->precision},
                                           {"epochs", numbers[0]},
                                           {"batch", numbers[1]},
                                           {"picture size", numbers[2]},
                                           {"resize", s->resize},
                                           {"shear (degrees)", numbers[4]},
                                           {"zoom", numbers[5]},
                                           {"rotation (degrees)", numbers[6]},
                                           {"flip", s->flip ? "yes" : "no"},
                                           {"seed", numbers[7]}};
    pc__report report = {.title = title,
                         .without_test = !run->fit.test,
                         .date = date,
                         .device = pc_device_name(run->device, device),
                         .version = pc_version(),
                         .seconds = run->seconds,
                         .planned_epochs = s->epochs,
                         .settings = settings,
                         .setting_count = PC__COUNT(settings),
                         .network = network,
                         .data = s->data,
                         .classes = classes,
                         .class_count = c->classes,
                         .skipped = run->skipped,
                         .skipped_count = run->skipped_count,
                         .skipped_total =
                             pc_loader_skipped(run->fit.train) + (run->fit.test ? pc_loader_skipped(run->fit.test) : 0),
                         .history = &run->history,
                         .confusion = c->confusion,
                         .samples = c->samples,
                         .sample_count = c->sample_count};
    return pc__report_write(run->report, &report);
}

pc_status pc__run_report(pc__run *run)
{
    pc_loader *loader = run->fit.test ? run->fit.test : run->fit.train;
    int classes = pc_loader_class_count(loader), row_count = 0;
    collector c = {
        .run = run, .loader = loader, .classes = classes, .every = PC__MAX(pc_loader_count(loader) / SAMPLES, 1)};
    pc__report_class *list = pc__calloc((size_t)classes, sizeof *list);
    pc__layer_row *rows = NULL;
    pc__text network = {0};
    c.confusion = pc__calloc((size_t)classes * (size_t)classes, sizeof *c.confusion);
    pc_status status = list && c.confusion ? PC_OK : PC_ERR_MEMORY;
    pc__score score;
    if (status == PC_OK)
        status = pc__score_loader(run->fit.net, loader, collect, &c, &score);
    if (c.status != PC_OK)
        status = c.status;
    if (status == PC_OK)
        status = pc__summary_rows(run->fit.net, run->s.size, &rows, &row_count);
    if (status == PC_OK) {
        for (int i = 0; i < classes; i++)
            list[i] = (pc__report_class){run->class_names[i], 0, run->fit.test ? 0 : -1};
        count_classes(run->fit.train, list, false);
        count_classes(run->fit.test, list, true);
        pc__summary_text(&network, rows, row_count);
        status = network.failed ? PC_ERR_MEMORY : write_report(run, &c, list, network.data);
    }
    for (int i = 0; i < c.sample_count; i++)
        pc_image_bytes_free((uint8_t *)c.samples[i].bytes);
    pc__text_free(&network);
    pc__free(rows);
    pc__free(c.confusion);
    pc__free(list);
    return status;
}
