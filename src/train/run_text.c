/* run_text.c: a run in words: what is about to happen, and which settings a checkpoint belongs to. */
#include "train/run.h"
#include "train/summary.h"

#include <paracord/threads.h>

/* Pictures of each class: "cat 500, dog 500". */
static void put_classes(pc__text *text, const pc_loader *loader)
{
    int classes = pc_loader_class_count(loader);
    for (int k = 0; k < classes && k < 8; k++) {
        int64_t n = 0;
        pc_picture picture;
        for (int64_t i = 0; i < pc_loader_count(loader); i++)
            n += pc_loader_picture(loader, i, &picture) == PC_OK && picture.label == k;
        pc__text_add(text, "%s%s %s", k ? ", " : "", pc_loader_class_name(loader, k), pc__thousands(n).s);
    }
    if (classes > 8)
        pc__text_add(text, ", ... (%d classes)", classes);
}

char *pc__run_describe(const pc__run *run)
{
    pc__text text = {0};
    char device[PC_DEVICE_NAME_MAX];
    const pc_train_settings *s = &run->s;
    pc__text_add(&text, "%s pictures in %s (", pc__thousands(pc_loader_count(run->fit.train)).s, run->train_folder);
    put_classes(&text, run->fit.train);
    pc__text_add(&text, ")");
    if (run->fit.test)
        pc__text_add(&text, "; %s to test on %s%s", pc__thousands(pc_loader_count(run->fit.test)).s,
                     run->split ? "held back from " : "in ", run->split ? "them" : run->test_folder);
    pc__text_add(&text, "\nnetwork %s: %s parameters; %s %g, batch %d, %dx%d pixels, on %s", s->arch,
                 pc__thousands(pc_module_parameter_elements(run->fit.net)).s, s->optimizer, s->lr, s->batch, s->size,
                 s->size, pc_device_name(run->device, device));
    if (run->fit.mixed)
        pc__text_add(&text, ", products in %s", s->precision);
    if (run->device.type == PC_CPU)
        pc__text_add(&text, " (%d thread%s)", pc_get_threads(), pc_get_threads() == 1 ? "" : "s");
    char where[256];
    (void)pc_loader_resident(run->fit.train, where, sizeof where);
    if (run->device.type != PC_CPU)
        pc__text_add(&text, "\n%s", where);
    if (run->resumed)
        pc__text_add(&text, "\ngoing on after epoch %lld, batch %lld", (long long)run->fit.at.epoch,
                     (long long)run->fit.at.batch);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

/* Everything that decides the weights, but not how long to train. */
pc_status pc__run_settings_text(pc__run *run)
{
    const pc_train_settings *s = &run->s;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"lr", s->lr},     {"momentum", s->momentum}, {"shear", s->shear},
                   {"zoom", s->zoom}, {"rotation", s->rotation}, {"val-split", run->split ? s->val_split : 0}};
    pc__text text = {0};
    char device[PC_DEVICE_NAME_MAX];
    /* the kind of device, not which one; sim computes with cpu's kernels, to the same bits */
    pc_device_name(run->device.type == PC_SIM ? PC_DEVICE_CPU : run->device, device);
    device[strcspn(device, ":")] = 0;
    pc__text_add(&text, "--arch %s\n--batch %d\n--size %d\n--optimizer %s\n--init %s\n--resize %s\n--seed %llu\n",
                 s->arch, s->batch, s->size, s->optimizer, s->init, s->resize, (unsigned long long)s->seed);
    for (int i = 0; i < PC__COUNT(numbers); i++) {
        pc__text_add(&text, "--%s ", numbers[i].name);
        pc__json_number(&text, numbers[i].value);
        pc__text_add(&text, "\n");
    }
    if (run->fit.mixed)
        pc__text_add(&text, "--precision %s\n", s->precision);
    pc__text_add(&text, "--%sflip\n--device %s\nthe set of pictures %016llx\n", s->flip ? "" : "no-", device,
                 (unsigned long long)pc_loader_fingerprint(run->fit.train));
    run->settings = text.data;
    return text.failed ? PC_ERR_MEMORY : PC_OK;
}
