/* run_text.c: a run in words: what is about to happen, and which settings a checkpoint belongs to. */
#include "data/gather.h"
#include "train/checkpoint.h"
#include "train/model_about.h"
#include "train/run.h"
#include "train/summary.h"

#include <paracord/threads.h>

static int64_t count_class(const pc_loader *loader, int label)
{
    int64_t n = 0;
    for (int64_t i = 0; i < pc_loader_count(loader); i++)
        n += pc__loader_label(loader, i) == label;
    return n;
}

/* Pictures of each class: "cat 500, dog 500". */
static void put_classes(pc__text *text, const pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    for (int k = 0; k < classes && k < 8; k++) {
        pc__text_add(text, "%s", k ? ", " : "");
        pc__text_add_name(text, run->class_names[k]);
        pc__text_add(text, " %s", pc__thousands(run->counts[k]).s);
    }
    if (classes > 8)
        pc__text_add(text, ", ... (%d classes)", classes);
}

/* Classes of which the share for testing is no whole picture. */
static void put_too_small(pc__text *text, const pc__run *run)
{
    enum { NAMED = 4 };
    const int classes = pc_loader_class_count(run->fit.train);
    int small = 0;
    for (int k = 0; k < classes; k++)
        if (!run->fit.test || !count_class(run->fit.test, k)) {
            if (small < NAMED) {
                pc__text_add(text, "%s",
                             small ? ", " : "\ntoo few pictures to hold a share back, all are for training: ");
                pc__text_add_name(text, pc_loader_class_name(run->fit.train, k));
                pc__text_add(text, " %s", pc__thousands(count_class(run->fit.train, k)).s);
            }
            small++;
        }
    if (small > NAMED)
        pc__text_add(text, " and %d more", small - NAMED);
    if (!run->fit.test)
        pc__text_add(text, "; nothing is left to test on (--val-split %g)", run->s.val_split);
}

static void put_streamed(pc__text *text, const pc__run *run)
{
    const int64_t streamed =
        pc_loader_streamed(run->fit.train) + (run->fit.test ? pc_loader_streamed(run->fit.test) : 0);
    const int64_t all = pc_loader_count(run->fit.train) + (run->fit.test ? pc_loader_count(run->fit.test) : 0);
    if (streamed)
        pc__text_add(text,
                     "\n%s of the %s pictures, %.2f MB, are not kept decoded (--cache): they are read from their files "
                     "in every epoch",
                     pc__thousands(streamed).s, pc__thousands(all).s,
                     (double)streamed * (double)pc__frame_bytes(pc__run_frame(run)) * 1e-6);
}

static void put_pictures(pc__text *text, const pc__run *run)
{
    pc__text_add(text, "%s pictures in ", pc__thousands(pc_loader_count(run->fit.train)).s);
    pc__text_add_name(text, run->train_folder);
    pc__text_add(text, " (");
    put_classes(text, run);
    pc__text_add(text, ")");
    if (run->fit.test)
        pc__text_add(text, run->split ? "; another %s to test on, held back from training" : "; %s to test on in ",
                     pc__thousands(pc_loader_count(run->fit.test)).s);
    if (run->fit.test && !run->split)
        pc__text_add_name(text, run->test_folder);
    if (run->split)
        put_too_small(text, run);
    put_streamed(text, run);
}

char *pc__run_describe(const pc__run *run)
{
    pc__text text = {0};
    char device[PC_DEVICE_NAME_MAX];
    const pc_train_options *s = &run->s;
    put_pictures(&text, run);
    pc__text_add(&text, "\nnetwork ");
    pc__text_add_name(&text, s->arch);
    pc__text_add(&text, ": %s parameters; %s %g, batch %d, %dx%d pixels%s, on %s",
                 pc__thousands(pc_module_parameter_elements(run->fit.net)).s, s->optimizer, s->lr, s->batch, s->height,
                 s->width, s->channels == 1 ? " in grey" : "", pc_device_name(run->device, device));
    if (run->fit.group)
        pc__text_add(&text, " and %d other rank%s", pc_group_size(run->fit.group) - 1,
                     pc_group_size(run->fit.group) == 2 ? "" : "s");
    if (run->zero)
        pc__text_add(&text, ", stage %d of ZeRO", s->zero);
    if (s->accumulate > 1)
        pc__text_add(&text, ", each batch in %d parts", s->accumulate);
    if (run->fit.trained)
        pc__text_add(&text, ", all but %s frozen", run->head);
    if (strcmp(s->schedule, "constant") != 0)
        pc__text_add(&text, ", rate %s", s->schedule);
    if (s->clip > 0)
        pc__text_add(&text, ", gradients clipped at %g", s->clip);
    if (strcmp(s->normalise, "none") != 0)
        pc__text_add(&text, ", normalised by %.80s", s->normalise);
    if (s->label_smoothing > 0)
        pc__text_add(&text, ", labels smoothed by %g", s->label_smoothing);
    if (s->mixup > 0)
        pc__text_add(&text, ", mixup %g", s->mixup);
    if (s->cutmix > 0)
        pc__text_add(&text, ", cutmix %g", s->cutmix);
    if (run->fit.mixed)
        pc__text_add(&text, ", products in %s", s->precision);
    if (run->device.type == PC_CPU)
        pc__text_add(&text, " (%d thread%s)", pc_threads_get(), pc_threads_get() == 1 ? "" : "s");
    char where[256];
    (void)pc_loader_resident(run->fit.train, where, sizeof where);
    if (run->device.type != PC_CPU)
        pc__text_add(&text, "\n%s", where);
    if (run->begun)
        pc__text_add(&text, "\n%s", run->begun);
    pc__run_describe_classes(&text, run);
    if (run->resumed)
        pc__text_add(&text, "\ngoing on after epoch %lld, batch %lld", (long long)run->fit.at.epoch,
                     (long long)run->fit.at.batch);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

/* What was not always there, where it is used. A schedule goes by the number of epochs. */
static void put_steps(pc__text *text, const pc__run *run)
{
    const pc_train_options *s = &run->s;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"weight-decay", s->weight_decay},
                   {"clip", s->clip},
                   {"warmup", s->warmup},
                   {"label-smoothing", s->label_smoothing},
                   {"mixup", s->mixup},
                   {"cutmix", s->cutmix},
                   {"shorter", s->shorter},
                   {"crop", s->crop},
                   {"pad", s->pad},
                   {"brightness", s->brightness},
                   {"contrast", s->contrast},
                   {"saturation", s->saturation},
                   {"hue", s->hue},
                   {"erase", s->erase}};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (numbers[i].value != 0) {
            pc__text_add(text, "--%s ", numbers[i].name);
            pc__json_number(text, PC__MAX(numbers[i].value, 0)); /* below 0: none, and the usual is some */
            pc__text_add(text, "\n");
        }
    if (s->nesterov)
        pc__text_add(text, "--nesterov\n");
    if (strcmp(s->schedule, "constant") != 0)
        pc__text_add(text, "--schedule %s\n--epochs %d\n", s->schedule, s->epochs);
}

/* FNV-1a */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* They say which epoch is the best. Older checkpoints lack the line. */
static void put_test_pictures(pc__text *text, const pc__run *run)
{
    pc__text_add(text, "%s ", PC__TEST_PICTURES);
    if (run->fit.test)
        pc__text_add(text, "%016llx\n", (unsigned long long)pc_loader_fingerprint(run->fit.test));
    else
        pc__text_add(text, "none\n");
}

/* A checkpoint has room for so many bytes of them: the lines beyond are there as a sum alone. */
static void shorten(pc__text *text)
{
    enum { ROOM = PC__SETTINGS_MOST - 64 };
    if (text->failed || text->length < PC__SETTINGS_MOST)
        return;
    size_t end = ROOM;
    while (end && text->data[end - 1] != '\n')
        end--;
    const uint64_t rest = hash(text->data + end);
    text->data[text->length = end] = 0;
    pc__text_add(text, "the other settings %016llx\n", (unsigned long long)rest);
}

/* Everything that decides the weights, but not how long to train. */
pc_status pc__run_settings_text(pc__run *run)
{
    const pc_train_options *s = &run->s;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"lr", s->lr},     {"momentum", s->momentum}, {"shear", s->shear},
                   {"zoom", s->zoom}, {"rotation", s->rotation}, {"val-split", run->split ? s->val_split : 0}};
    pc__text text = {0};
    char device[PC_DEVICE_NAME_MAX];
    const char *name = run->description ? "described" : s->arch;
    /* the kind of device, not which one; sim computes with cpu's kernels, to the same bits */
    pc_device_name(run->device.type == PC_SIM ? PC_DEVICE_CPU : run->device, device);
    device[strcspn(device, ":")] = 0;
    pc__text_add(&text, "--arch %s\n--batch %d\n--size %d", name, s->batch, s->height);
    if (s->width != s->height)
        pc__text_add(&text, "x%d", s->width);
    if (s->channels != 3) /* what was always so is not said: old checkpoints go on */
        pc__text_add(&text, "\n--channels %d", s->channels);
    pc__text_add(&text, "\n--optimizer %s\n--init %s\n--resize %s\n--seed %llu\n", s->optimizer, s->init, s->resize,
                 (unsigned long long)s->seed);
    for (int i = 0; i < PC__COUNT(numbers); i++) {
        pc__text_add(&text, "--%s ", numbers[i].name);
        pc__json_number(&text, numbers[i].value);
        pc__text_add(&text, "\n");
    }
    put_steps(&text, run);
    if (run->fit.mixed)
        pc__text_add(&text, "--precision %s\n", s->precision);
    if (s->no_exif)
        pc__text_add(&text, "--no-exif\n");
    if (s->init_from)
        pc__text_add(&text, "--init-from %.100s\n",
                     strrchr(s->init_from, '/') ? strrchr(s->init_from, '/') + 1 : s->init_from);
    if (run->description)
        pc__text_add(&text, "the description %016llx\n", (unsigned long long)hash(run->description));
    if (run->fit.trained)
        pc__text_add(&text, "--freeze backbone\n");
    pc__text_add(&text, "--%sflip\n--device %s\nthe set of pictures %016llx\n", s->flip ? "" : "no-", device,
                 (unsigned long long)pc_loader_fingerprint(run->fit.train));
    put_test_pictures(&text, run);
    if (strcmp(s->fill, "nearest") != 0)
        pc__text_add(&text, "--fill %s\n", s->fill);
    if (strcmp(s->normalise, "none") != 0)
        pc__text_add(&text, "--normalise %s\n", s->normalise);
    if (strcmp(s->class_weights, "none") != 0)
        pc__text_add(&text, "--class-weights %s\n", s->class_weights);
    if (run->fit.test && !run->kept)
        pc__text_add(&text, "--keep last\n");
    shorten(&text);
    run->settings = text.data;
    pc__model_file model = pc__run_model(run);
    run->about = text.failed ? NULL : pc__model_about(run->arch, &model);
    run->fit.about = run->about;
    return run->about ? PC_OK : PC_ERR_MEMORY;
}
