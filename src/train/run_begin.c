/* run_begin.c: how the network of a run begins: with the weights of a file, and with a part of it frozen. */
#include "io/safetensors.h"
#include "nn/module.h"
#include "nn/rehearse.h"
#include "train/arch.h"
#include "train/run.h"
#include "train/summary.h"

#include <paracord/random.h>

enum { PREFIX_MAX = 128 };

pc_status pc__run_check_begin(const pc__run *run)
{
    const pc_train_options *s = &run->s;
    if (strcmp(s->freeze, "none") != 0 && strcmp(s->freeze, "backbone") != 0)
        return pc__fail(PC_ERR_ARGUMENT, "there is no way to freeze \"%.40s\"; there are none, backbone", s->freeze);
    return strcmp(s->freeze, "backbone") != 0 || s->init_from
               ? PC_OK
               : pc__fail(
                     PC_ERR_ARGUMENT,
                     "freeze \"backbone\" leaves all but the last layer as it begins: give weights that were trained "
                     "(init_from, --init-from FILE)");
}

/* The last layer is the one that has the last parameter. */
static pc_status find_head(pc__run *run)
{
    const int count = pc_module_parameter_list(run->fit.net, NULL, 0);
    if (count < 0)
        return pc_error_last()->status;
    pc_parameter *list = pc__calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    (void)pc_module_parameter_list(run->fit.net, list, count);
    char *point = count ? strrchr(list[count - 1].name, '.') : NULL;
    if (point)
        *point = 0;
    snprintf(run->head, sizeof run->head, "%.63s", point ? list[count - 1].name : "");
    pc__free(list);
    return PC_OK;
}

/* The outputs of the last layer in the file; -1 where it has no such layer. */
static int64_t outputs_in(const pc_weights *file, const char *prefix, const char *head)
{
    char name[PREFIX_MAX + 80];
    pc_weights_entry entry;
    snprintf(name, sizeof name, "%s%s.weight", prefix, head);
    if (pc_weights_find(file, name, &entry) != PC_OK) {
        pc_error_clear();
        return -1;
    }
    return entry.shape.ndim ? entry.shape.dim[0] : -1;
}

/* What stands in front of the network's names in the file: nothing, or such as "module.", if only one does. */
static pc_status find_prefix(const pc__run *run, const pc_weights *file, char prefix[PREFIX_MAX])
{
    pc_parameter first;
    int count;
    *prefix = 0;
    if (pc_module_parameter_list(run->fit.net, &first, 1) < 1 || pc__weights_find(file, first.name))
        return PC_OK;
    const pc__weight *behind = pc__weights_behind(file, first.name, &count);
    const size_t n = behind ? strlen(behind->name) - strlen(first.name) : 0;
    if (count > 1)
        return pc__fail(
            PC_ERR_NOT_FOUND,
            "%s has several networks, such as that of \"%.80s\"; in Python save the one to begin with alone: "
            "torch.save(network.state_dict(), ...)",
            file->path, behind->name);
    if (n >= PREFIX_MAX)
        return PC_OK; /* loading says what is missing */
    snprintf(prefix, PREFIX_MAX, "%.*s", (int)n, behind ? behind->name : "");
    return PC_OK;
}

static pc_status take(pc__run *run)
{
    char leave[80], weight[80], prefix[PREFIX_MAX];
    pc__text words = {0};
    snprintf(leave, sizeof leave, "%s.*", run->head);
    snprintf(weight, sizeof weight, "%s.weight", run->head);
    pc_weights *file = pc_weights_open(run->s.init_from);
    if (!file)
        return pc_error_last()->status;
    const pc_status found = find_prefix(run, file, prefix);
    const int64_t theirs = found == PC_OK ? outputs_in(file, prefix, run->head) : -1;
    pc_weights_free(file);
    PC__TRY(found);
    const int64_t ours = pc_tensor_size(pc_module_parameter(run->fit.net, weight), 0);
    const bool fits = theirs == ours;
    PC__TRY(pc_weights_load(run->fit.net, run->s.init_from,
                            (pc_weights_options){.prefix = prefix, .leave = fits ? NULL : leave}));
    pc__text_add(&words, "weights from ");
    pc__text_add_name(&words, run->s.init_from);
    if (*prefix) {
        prefix[strlen(prefix) - 1] = 0;
        pc__text_add(&words, ", those of \"");
        pc__text_add_name(&words, prefix);
        pc__text_add(&words, "\"");
    }
    if (!fits && theirs >= 0)
        pc__text_add(&words, ", but for the last layer, %s: it has %lld output%s there and %lld here", run->head,
                     (long long)theirs, theirs == 1 ? "" : "s", (long long)ours);
    else if (!fits)
        pc__text_add(&words, ", but for the last layer, %s, which is not in it", run->head);
    run->begun = words.data;
    return words.failed ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__run_freeze(const pc__run *run, pc_module *net)
{
    char pattern[80];
    if (strcmp(run->s.freeze, "backbone") != 0)
        return PC_OK;
    snprintf(pattern, sizeof pattern, "%s.*", run->head);
    PC__TRY(pc_module_freeze(net, "*"));
    return pc_module_unfreeze(net, pattern);
}

static pc_status freeze(pc__run *run)
{
    if (strcmp(run->s.freeze, "backbone") != 0)
        return PC_OK;
    run->fit.trained = pc_module_child_named(run->fit.net, run->head);
    PC__TRY(run->fit.trained ? PC_OK : pc_error_last()->status);
    return pc__run_freeze(run, run->fit.net);
}

/* Whether the network can be trained on so many pictures at once; a pass is not computed for that. */
static bool takes(pc_module *net, int64_t pictures, pc__frame frame)
{
    const int64_t shape[4] = {pictures, frame.channels, frame.height, frame.width};
    pc__meta x;
    pc__meta_contiguous(&x, PC_F32, 4, shape);
    const bool taken = pc__rehearse_forward("pc_train_folder", net, &x) == PC_OK;
    pc_error_clear();
    return taken;
}

/* The same network for pictures whose sides are longer; NULL without an error where it would be much larger. */
static pc_module *longer(const pc__run *run, int times, pc__frame *frame)
{
    enum { MANY = 20000000 };
    const int classes = pc_loader_class_count(run->fit.train), outputs = classes == 2 ? 1 : classes;
    const pc__frame now = pc__run_frame(run);
    const pc_generator before = pc_generator_get();
    pc__arch_size size, size_now;
    *frame = (pc__frame){.height = times * now.height, .width = times * now.width, .channels = now.channels};
    pc_module *net = NULL;
    if (pc__arch_measure(run->arch, now, outputs, &size_now) == PC_OK &&
        pc__arch_measure(run->arch, *frame, outputs, &size) == PC_OK &&
        size.parameters <= PC__MAX(2 * size_now.parameters, MANY))
        net = pc__arch_new(run->arch, *frame, outputs, run->init);
    pc_error_clear();
    pc_generator_set(before);
    return net;
}

/* ", or a larger --size (128x64 will do)", or nothing where that does not help as far as is tried. */
static void hint_at_size(const pc__run *run, char hint[64])
{
    *hint = 0;
    for (int times = 2; times <= 8 && !*hint; times *= 2) {
        pc__frame frame;
        pc_module *net = longer(run, times, &frame);
        if (net && takes(net, 1, frame))
            snprintf(hint, 64, ", or a larger --size (%dx%d will do)", frame.height, frame.width);
        pc_module_free(net);
    }
}

/* Norms that come to one number a channel cannot go by one picture; of a rank they go by its part. */
static pc_status check_last_batch(const pc__run *run)
{
    const pc_train_options *s = &run->s;
    const int64_t pictures = pc_loader_count(run->fit.train);
    const int64_t ranks = run->fit.group ? pc_group_size(run->fit.group) : 1;
    const int64_t last = pictures % s->batch ? pictures % s->batch : s->batch;
    char size[64];
    if (pc__run_least_part(run) > 1 || pc__module_buffer_count(run->fit.net) == 0)
        return PC_OK;
    pc__fit_set_training(&run->fit);
    if (takes(run->fit.net, 1, pc__run_frame(run)) || !takes(run->fit.net, 2, pc__run_frame(run)))
        return PC_OK;
    hint_at_size(run, size);
    if (last / ranks > 1)
        return pc__fail(
            PC_ERR_SHAPE,
            "of %lld pictures by %d in %d parts some part is one picture, which the norms of %s cannot go by at "
            "%d x %d pixels: choose a smaller --accumulate or another --batch%s",
            (long long)pictures, s->batch, s->accumulate, s->arch, s->height, s->width, size);
    if (run->fit.group)
        return pc__fail(PC_ERR_SHAPE,
                        "of a batch of %lld pictures by %d a rank has one picture, which the norms of %s cannot go by "
                        "at %d x %d pixels: choose another --batch or fewer --devices%s",
                        (long long)pictures, s->batch, s->arch, s->height, s->width, size);
    return pc__fail(PC_ERR_SHAPE,
                    "the last batch of %lld pictures by %d is one picture, which the norms of %s cannot go by at %d x "
                    "%d pixels: choose another --batch%s",
                    (long long)pictures, s->batch, s->arch, s->height, s->width, size);
}

pc_status pc__run_begin(pc__run *run)
{
    PC__TRY(find_head(run));
    if (run->s.init_from && !run->s.resume)
        PC__TRY(take(run));
    PC__TRY(freeze(run));
    return check_last_batch(run);
}

pc_status pc__run_begin_late(pc__run *run)
{
    if (!run->s.init_from || !run->s.resume || run->resumed)
        return PC_OK;
    PC__TRY(pc__fit_whole(&run->fit, true));
    PC__TRY(take(run));
    return pc__fit_whole(&run->fit, false);
}
