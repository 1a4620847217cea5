/* run_begin.c: how the network of a run begins: with the weights of a file, and with a part of it frozen. */
#include "io/safetensors.h"
#include "nn/module.h"
#include "train/run.h"

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
    pc__text_add(&words, "weights from %s", run->s.init_from);
    if (*prefix)
        pc__text_add(&words, ", those of \"%.*s\"", (int)strlen(prefix) - 1, prefix);
    if (!fits && theirs >= 0)
        pc__text_add(&words, ", but for the last layer, %s: it has %lld output%s there and %lld here", run->head,
                     (long long)theirs, theirs == 1 ? "" : "s", (long long)ours);
    else if (!fits)
        pc__text_add(&words, ", but for the last layer, %s, which is not in it", run->head);
    run->begun = words.data;
    return words.failed ? PC_ERR_MEMORY : PC_OK;
}

static pc_status freeze(pc__run *run)
{
    char pattern[80];
    if (strcmp(run->s.freeze, "backbone") != 0)
        return PC_OK;
    snprintf(pattern, sizeof pattern, "%s.*", run->head);
    run->fit.trained = pc_module_child_named(run->fit.net, run->head);
    PC__TRY(run->fit.trained ? PC_OK : pc_error_last()->status);
    PC__TRY(pc_module_freeze(run->fit.net, "*"));
    return pc_module_unfreeze(run->fit.net, pattern);
}

/* Of pictures of up to 32 pixels blocks come to one number a channel, and norms cannot go by that of one picture; of a
 * rank they go by its part. */
static pc_status check_last_batch(const pc__run *run)
{
    enum { ONE_PLACE = 32 };
    const pc_train_options *s = &run->s;
    const bool by_batch = pc__module_buffer_count(run->fit.net) > 0 && !run->fit.trained;
    const int64_t pictures = pc_loader_count(run->fit.train);
    if (!by_batch || s->height > ONE_PLACE || s->width > ONE_PLACE || pc__run_least_part(run) > 1)
        return PC_OK;
    if (run->s.accumulate > 1)
        return pc__fail(
            PC_ERR_SHAPE,
            "of %lld pictures by %d in %d parts some part is one picture, which the norms of %s cannot go by at "
            "%d x %d pixels: choose a smaller --accumulate, another --batch, or a --size above %d",
            (long long)pictures, s->batch, s->accumulate, s->arch, s->height, s->width, ONE_PLACE);
    if (run->fit.group)
        return pc__fail(PC_ERR_SHAPE,
                        "of a batch of %lld pictures by %d a rank has one picture, which the norms of %s cannot go by "
                        "at %d x %d pixels: choose another --batch, fewer --devices, or a --size above %d",
                        (long long)pictures, s->batch, s->arch, s->height, s->width, ONE_PLACE);
    return pc__fail(
        PC_ERR_SHAPE,
        "the last batch of %lld pictures by %d is one picture, which the norms of %s cannot go by at %d x %d "
        "pixels: choose another --batch, or a --size above %d",
        (long long)pictures, s->batch, s->arch, s->height, s->width, ONE_PLACE);
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
