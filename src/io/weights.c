/* weights.c: modules from and to safetensors files, which have whole tensors, whoever has parts of them. */
#include "io/safetensors.h"
#include "parallel/agree.h"
#include "parallel/cut.h"

#include <fnmatch.h>
#include <paracord/no_grad.h>

/* From pc__alloc; NULL: an error. */
static pc_parameter *state_of(const pc_module *module, int *count)
{
    *count = pc_module_state_list(module, NULL, 0);
    pc_parameter *list = *count < 0 ? NULL : pc__alloc((size_t)*count * sizeof *list);
    if (list)
        pc_module_state_list(module, list, *count);
    return list;
}

typedef struct job {
    pc_weights *file;
    const pc_weights_options *options;
    pc_module *cut_up; /* the module, where ranks have parts of it */
    pc__text name;     /* in the file */
    int wanted, used;
} job;

static const pc__weight *place_of(job *j, const char *name)
{
    j->name.length = 0;
    pc__text_add(&j->name, "%s%s", j->options->prefix ? j->options->prefix : "", name);
    return j->name.failed ? NULL : pc__weights_find(j->file, j->name.data);
}

static bool is_left(const job *j, const char *name)
{
    return j->options->leave && fnmatch(j->options->leave, name, 0) == 0;
}

const pc__weight *pc__weights_behind(const pc_weights *w, const char *name, int *count)
{
    const pc__weight *first = NULL;
    const size_t n = strlen(name);
    *count = 0;
    for (int i = 0; i < w->count; i++) {
        const size_t length = strlen(w->list[i].name);
        if (length <= n || w->list[i].name[length - n - 1] != '.' || strcmp(w->list[i].name + length - n, name) != 0)
            continue;
        first = first ? first : &w->list[i];
        ++*count;
    }
    return first;
}

/* Files have modules in parts of others, too: "module.0.weight". */
static pc_status fail_missing(const job *j)
{
    int count;
    const pc__weight *behind = pc__weights_behind(j->file, j->name.data, &count);
    const int front = behind ? (int)(strlen(behind->name) - j->name.length) : 0;
    if (count == 0)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has no tensor \"%.120s\", which the module has", j->file->path,
                        j->name.data);
    return pc__fail(PC_ERR_NOT_FOUND,
                    "%s has no tensor \"%.120s\", which the module has, but \"%.120s\"%s; the prefix \"%.*s\" "
                    "chooses that",
                    j->file->path, j->name.data, behind->name, count > 1 ? " and others that end so" : "", front,
                    behind->name);
}

/* Of the whole one, which files have. */
static pc_shape shape_of(const pc_tensor *own, const pc__cut *cut)
{
    pc_shape shape = pc_shape_of(own->ndim, own->shape);
    if (cut)
        shape.dim[cut->dim] = cut->size;
    return shape;
}

static bool has_shape(const pc__weight *t, pc_shape shape)
{
    return t->ndim == shape.ndim && memcmp(t->shape, shape.dim, (size_t)shape.ndim * sizeof *t->shape) == 0;
}

static pc_status fail_shape(const job *j, const pc__weight *t, const pc_tensor *own, pc_shape whole, const pc__cut *cut)
{
    const pc_shape there = pc_shape_of(PC__MIN(t->ndim, PC_MAX_DIMS), t->shape);
    if (cut && has_shape(t, pc_shape_of(own->ndim, own->shape)))
        return pc__fail(PC_ERR_SHAPE,
                        "%s: the tensor \"%.120s\" has shape %s in the file, as a rank's part of it has, and %s in the "
                        "module; files have whole ones: read each rank's parts by pc_weights_read, for pc_module_load",
                        j->file->path, j->name.data, pc__shape_format(there.ndim, there.dim).s,
                        pc__shape_format(whole.ndim, whole.dim).s);
    return pc__fail(PC_ERR_SHAPE, "%s: the tensor \"%.120s\" has shape %s in the file and %s in the module",
                    j->file->path, j->name.data, pc__shape_format(there.ndim, there.dim).s,
                    pc__shape_format(whole.ndim, whole.dim).s);
}

static pc_status check(void *context, const char *name, pc__named *part)
{
    job *j = context;
    const pc_tensor *own = part->object;
    const pc__cut *cut = pc__cut_of(j->cut_up, part);
    const pc_shape whole = shape_of(own, cut);
    const pc__weight *t = place_of(j, name);
    if (j->name.failed)
        return PC_ERR_MEMORY;
    if (is_left(j, name)) {
        j->used += t != NULL;
        return PC_OK;
    }
    j->wanted++;
    if (!t)
        return j->options->partial || strcmp(part->name, "num_batches_tracked") == 0 ? PC_OK : fail_missing(j);
    j->used++;
    if (!has_shape(t, whole))
        return fail_shape(j, t, own, whole, cut);
    if (t->type->how == 'x')
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: the tensor \"%.120s\" is of the type %s, which cannot be read here",
                        j->file->path, j->name.data, t->type->name);
    PC__TRY(pc__weights_finished(j->file, t));
    if (pc__is_float(t->type->dtype) != pc__is_float((pc_dtype)own->dtype))
        return pc__fail(PC_ERR_DTYPE, "%s: the tensor \"%.120s\" is %s in the file and %s in the module", j->file->path,
                        j->name.data, t->type->name, pc_dtype_name((pc_dtype)own->dtype));
    return PC_OK;
}

static pc_status read_one(void *context, const char *name, pc__named *part)
{
    job *j = context;
    if (is_left(j, name) || !place_of(j, name))
        return PC_OK;
    const pc__cut *cut = pc__cut_of(j->cut_up, part);
    pc_status status = PC_OK;
    PC_SCOPE {
        const pc_device device = cut ? PC_DEVICE_CPU : pc_tensor_device(part->object);
        pc_tensor *t = pc_weights_read(j->file, j->name.data, device);
        status = !t ? pc_error_last()->status : cut ? pc__cut_take(cut, part->object, t) : pc_copy(part->object, t);
    }
    return status;
}

/* What has not the prefix is another module's. */
static bool is_known(const job *j, const char *name, const pc_parameter *list, int count)
{
    const size_t skip = j->options->prefix ? strlen(j->options->prefix) : 0;
    if (skip && strncmp(name, j->options->prefix, skip) != 0)
        return true;
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name + skip) == 0)
            return true;
    return is_left(j, name + skip);
}

/* Name the first tensor of the file, or of the part of it with the prefix, that the module does not have. */
static pc_status fail_more(const job *j, const pc_module *module)
{
    int count, i = 0;
    pc_parameter *list = state_of(module, &count);
    if (!list)
        return pc_error_last()->status;
    while (i < j->file->count && is_known(j, j->file->list[i].name, list, count))
        i++;
    pc__free(list);
    return i == j->file->count
               ? PC_OK
               : pc__fail(PC_ERR_NOT_FOUND,
                          "%s has a tensor \"%.120s\", which the module does not have; take the network that the file "
                          "is of, or in a program leave it out by .partial",
                          j->file->path, j->file->list[i].name);
}

static pc_status load(job *j, pc_module *module)
{
    PC__TRY(pc__module_visit_state(module, check, j));
    if (j->options->partial && j->wanted && !j->used)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has none of the module's tensors%s%.80s%s", j->file->path,
                        j->options->prefix ? " with the prefix \"" : "", j->options->prefix ? j->options->prefix : "",
                        j->options->prefix ? "\"" : "");
    if (!j->options->partial && j->used != j->file->count)
        PC__TRY(fail_more(j, module));
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__module_visit_state(module, read_one, j);
    }
    return status;
}

pc_status pc_weights_load(pc_module *module, const char *path, pc_weights_options options)
{
    PC__NEED(module);
    PC__NEED(path);
    job j = {.file = pc_weights_open(path), .options = &options, .cut_up = pc__cut_group(module) ? module : NULL};
    if (!j.file)
        return pc_error_last()->status;
    const pc_status status = load(&j, module);
    pc_weights_free(j.file);
    pc__text_free(&j.name);
    return status;
}

/* --- to files --- */

typedef struct joining {
    pc_module *module;
    pc_parameter *list; /* of the module's own, in the order of its state; becomes that of the whole ones */
    int next;
    bool writes;
    pc_status status;
} joining;

/* In the rank that writes they wait in memory of the host. PC_OK at all events: others wait for this rank's part in what is to come. */
static pc_status join(void *context, const char *name, pc__named *part)
{
    joining *j = context;
    pc_parameter *p = &j->list[j->next++];
    const pc__cut *cut = pc__cut_of(j->module, part);
    (void)name;
    if (!pc__is_cut(cut))
        return PC_OK;
    PC_SCOPE {
        pc_tensor *whole = pc__cut_join_next(cut, part->object, &j->status);
        if (!whole || !j->writes)
            break;
        whole = pc_keep(pc_to(whole, PC_DEVICE_CPU, (pc_dtype)whole->dtype, false));
        j->status = whole ? PC_OK : pc_error_last()->status;
        p->tensor = whole;
    }
    return PC_OK;
}

static pc_status write_list(const char *path, const pc_parameter *list, int count)
{
    static const pc_weights_note_pair notes[] = {{"format", "pt"}, {NULL, NULL}}; /* as readers of them expect */
    return pc_weights_write(path, list, count, notes);
}

/* The end of a path, where paths of several ranks differ. */
typedef struct place {
    uint64_t hash;
    char end[96];
} place;

static pc_status agree_on_path(pc_group *group, const char *path)
{
    const size_t n = strlen(path);
    place mine = {.hash = 0xcbf29ce484222325u}, *all = pc__alloc((size_t)group->size * sizeof *all);
    for (size_t i = 0; i < n; i++) /* FNV-1a */
        mine.hash = (mine.hash ^ (unsigned char)path[i]) * 0x100000001b3u;
    snprintf(mine.end, sizeof mine.end, "%s", n < sizeof mine.end ? path : path + n - sizeof mine.end + 1);
    pc_status status = pc__agree_on_success(group, all ? PC_OK : PC_ERR_MEMORY);
    if (status == PC_OK)
        status = pc__group_exchange(group, &mine, sizeof mine, all);
    for (int r = 1; r < group->size && status == PC_OK; r++)
        if (all[r].hash != all[0].hash)
            status =
                pc__fail(PC_ERR_ARGUMENT,
                         "pc_weights_save: rank 0 names %s, and rank %d %s; the network is cut up among them, and the "
                         "first writes one file of all of it: let all ranks name that",
                         all[0].end, r, all[r].end);
    pc__free(all);
    return status;
}

/* The list is NULL where this rank has no memory for it. */
static pc_status save_joined(pc_module *module, const char *path, pc_parameter *list, int count, pc_group *group)
{
    joining j = {.module = module, .list = list, .writes = group->rank == 0};
    PC__TRY(agree_on_path(group, path));
    PC__TRY(pc__cut_agree(group, module, list ? PC_OK : pc_error_last()->status));
    PC_NO_GRAD
        PC_SCOPE {
            (void)pc__module_visit_state(module, join, &j); /* names are no longer than they were */
            if (j.status == PC_OK && j.writes)
                j.status = write_list(path, list, count);
        }
    return pc__agree_on_success(group, j.status);
}

pc_status pc_weights_save(const pc_module *module, const char *path)
{
    PC__NEED(module);
    PC__NEED(path);
    int count;
    pc_group *group = pc__cut_group((pc_module *)module);
    pc_parameter *list = state_of(module, &count);
    pc_status status = !list ? pc_error_last()->status : PC_OK;
    if (group)
        status = save_joined((pc_module *)module, path, list, count, group);
    else if (list)
        status = write_list(path, list, count);
    pc__free(list);
    return status;
}
