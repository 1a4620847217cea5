/* weights.c: modules from and to safetensors files. */
#include "io/safetensors.h"
#include "nn/module.h"

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
    pc__text name; /* in the file */
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

static pc_status check(void *context, const char *name, pc__named *part)
{
    job *j = context;
    const pc_tensor *own = part->object;
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
    const bool same = t->ndim == own->ndim && memcmp(t->shape, own->shape, (size_t)own->ndim * sizeof *t->shape) == 0;
    if (!same) {
        const pc_shape there = pc_shape_of(PC__MIN(t->ndim, PC_MAX_DIMS), t->shape);
        return pc__fail(PC_ERR_SHAPE, "%s: the tensor \"%.120s\" has shape %s in the file and %s in the module",
                        j->file->path, j->name.data, pc__shape_format(there.ndim, there.dim).s, PC__SHAPE_OF(own));
    }
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
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = pc_weights_read(j->file, j->name.data, pc_tensor_device(part->object));
        status = t ? pc_copy(part->object, t) : pc_error_last()->status;
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
    job j = {.file = pc_weights_open(path), .options = &options};
    if (!j.file)
        return pc_error_last()->status;
    const pc_status status = load(&j, module);
    pc_weights_free(j.file);
    pc__text_free(&j.name);
    return status;
}

pc_status pc_weights_save(const pc_module *module, const char *path)
{
    PC__NEED(module);
    PC__NEED(path);
    int count;
    pc_parameter *list = state_of(module, &count);
    if (!list)
        return pc_error_last()->status;
    static const pc_weights_note_pair notes[] = {{"format", "pt"}, {NULL, NULL}}; /* as readers of them expect */
    const pc_status status = pc_weights_write(path, list, count, notes);
    pc__free(list);
    return status;
}
