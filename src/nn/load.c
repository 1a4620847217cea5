/* load.c: values of a state dict into a module, all of it or what has the same names. */
#include "nn/module.h"

#include "tensor/overlap.h"

#include <paracord/no_grad.h>

typedef struct loader {
    const pc_parameter *state;
    pc_tensor **given; /* of the state; copies where a parameter that is written before shares memory */
    bool *taken;       /* of the state: a parameter has that name */
    int count;
    int twice; /* of the unexpected: names that were taken already */
    pc_load_report report;
} loader;

static int place_of(const loader *l, const char *name)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->state[i].name, name) == 0)
            return l->given[i] ? i : -1;
    return -1;
}

/* One more name in a list of them, which ends with "..." where it is full. */
static void note(char *names, size_t n, int *count, const char *name)
{
    const char *between = (*count)++ ? ", " : "";
    const size_t at = strlen(names), end = sizeof ", ...";
    if (at >= 3 && strcmp(names + at - 3, "...") == 0)
        return;
    const bool fits = at + strlen(between) + strlen(name) + end <= n;
    snprintf(names + at, n - at, "%s%s", between, fits ? name : "...");
}

/* Of a parameter of which this rank has a part, which is smaller: one row among several ranks is as large as a part of it. */
static bool is_whole(const pc__named *parameter, const pc_tensor *given)
{
    const pc_tensor *own = parameter->object;
    const pc__cut *cut = parameter->cut;
    return cut && pc_group_size(cut->group) > 1 && given->ndim == own->ndim && given->shape[cut->dim] == cut->size &&
           own->shape[cut->dim] != cut->size;
}

static pc_status check(void *context, const char *name, pc__named *parameter)
{
    loader *l = context;
    const int i = place_of(l, name);
    const pc_tensor *own = parameter->object;
    if (i < 0) {
        note(l->report.missing_names, sizeof l->report.missing_names, &l->report.missing, name);
        return PC_OK;
    }
    l->taken[i] = true;
    if (is_whole(parameter, l->given[i]))
        return pc__fail(
            PC_ERR_SHAPE,
            "pc_module_load: \"%s\" is whole in the state, %s, and the module has rank %d's part of it, %s; "
            "pc_tensor_parallel_cut takes parts of a whole network, and pc_weights_load of a file",
            name, PC__SHAPE_OF(l->given[i]), pc_group_rank(parameter->cut->group), PC__SHAPE_OF(own));
    if (!pc__same_shape(own, l->given[i]))
        return pc__fail(PC_ERR_SHAPE, "pc_module_load: \"%s\" has shape %s in the state and %s in the module", name,
                        PC__SHAPE_OF(l->given[i]), PC__SHAPE_OF(own));
    l->report.loaded++;
    return PC_OK;
}

/* Everything has its counterpart. */
static pc_status check_whole(const loader *l)
{
    const pc_load_report *r = &l->report;
    if (!r->missing && !r->unexpected)
        return PC_OK;
    char lacks[192] = "", more[256] = "";
    if (r->missing)
        snprintf(lacks, sizeof lacks, " has no %.160s", r->missing_names);
    if (r->unexpected)
        snprintf(more, sizeof more, "%s has %.160s%s", r->missing ? ", and" : "", r->unexpected_names,
                 l->twice == r->unexpected ? " twice"
                 : l->twice                ? ", which the module has not, or not twice"
                                           : ", which the module has not");
    return pc__fail(
        PC_ERR_NOT_FOUND,
        "pc_module_load: the state%s%s (%d missing, %d unexpected); pc_module_load_matching takes what there is", lacks,
        more, r->missing, r->unexpected);
}

/* What shares memory with a parameter of another name is kept as it is now. */
static pc_status keep_apart(void *context, const char *name, pc__named *parameter)
{
    loader *l = context;
    for (int i = 0; i < l->count; i++)
        if (l->taken[i] && strcmp(l->state[i].name, name) != 0 &&
            pc__overlap(parameter->object, l->given[i]) != PC__APART) {
            l->given[i] = pc_clone(l->given[i]);
            if (!l->given[i])
                return pc_error_last()->status;
        }
    return PC_OK;
}

static pc_status load(void *context, const char *name, pc__named *parameter)
{
    const loader *l = context;
    const int i = place_of(l, name);
    return i < 0 ? PC_OK : pc_copy(parameter->object, l->given[i]);
}

static pc_status load_all(pc_module *module, loader *l, bool whole)
{
    pc_load_report *r = &l->report;
    PC__TRY(pc__module_visit_state(module, check, l));
    for (int i = 0; i < l->count; i++)
        if (!l->taken[i]) {
            const int first = place_of(l, l->state[i].name);
            l->twice += first >= 0 && l->taken[first];
            note(r->unexpected_names, sizeof r->unexpected_names, &r->unexpected, l->state[i].name);
        }
    PC__TRY(whole ? check_whole(l) : PC_OK);
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            status = pc__module_visit_state(module, keep_apart, l);
            status = status == PC_OK ? pc__module_visit_state(module, load, l) : status;
        }
    return status;
}

static pc_status load_from(pc_module *module, const pc_parameter *state, int count, bool whole, pc_load_report *report)
{
    const size_t n = (size_t)PC__MAX(count, 1);
    loader l = {.state = state,
                .given = pc__calloc(n, sizeof *l.given),
                .taken = pc__calloc(n, sizeof *l.taken),
                .count = count};
    for (int i = 0; l.given && i < count; i++)
        l.given[i] = state[i].tensor;
    pc_status status = l.given && l.taken ? load_all(module, &l, whole) : PC_ERR_MEMORY;
    if (report)
        *report = l.report;
    pc__free(l.given);
    pc__free(l.taken);
    return status;
}

pc_status pc_module_load(pc_module *module, const pc_parameter *state, int count)
{
    PC__NEED(module);
    if (count)
        PC__NEED(state);
    return load_from(module, state, count, true, NULL);
}

pc_status pc_module_load_matching(pc_module *module, const pc_parameter *state, int count, pc_load_report *report)
{
    PC__NEED(module);
    if (count)
        PC__NEED(state);
    return load_from(module, state, count, false, report);
}
