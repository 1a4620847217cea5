/* own.c: making ops of the program known. They lie in a fixed list, which grows at its end: an entry never changes, so
 * nobody who reads one needs the lock, and no memory is left that somebody would have to free. */
#include "ops/own.h"

#include "ops/lessons.h"
#include "ops/table.h"

#include <pthread.h>

static pc_op ops[PC_OPS_MAX];
static atomic_int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pc_status check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
    PC__NEED(name);
    const size_t length = strlen(name);
    if (length < 1 || length > PC_OP_NAME_MAX || strspn(name, letters) != length)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_op_register: \"%.60s\" is no name; it has 1 to %d letters, digits and \"_.:-\"", name,
                        PC_OP_NAME_MAX);
    return PC_OK;
}

static pc_status check_counts(const pc_op_spec *spec)
{
    if (spec->writes != PC_OP_NEW && spec->writes != PC_OP_UPDATES && spec->writes != PC_OP_OVERWRITES)
        return pc__fail(PC_ERR_ARGUMENT, "pc_op_register: %s: writes is %d; it is one of pc_op_writes", spec->name,
                        (int)spec->writes);
    const int fewest = spec->writes == PC_OP_NEW;
    if (spec->inputs < fewest || spec->inputs > PC_OP_INPUTS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pc_op_register: %s: %d inputs; %s has %d to %d", spec->name, spec->inputs,
                        fewest ? "an op" : "an op in place", fewest, PC_OP_INPUTS_MAX);
    if (spec->outputs < 1 || spec->outputs > PC_OP_OUTPUTS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pc_op_register: %s: %d outputs; an op has 1 to %d", spec->name, spec->outputs,
                        PC_OP_OUTPUTS_MAX);
    if (spec->attribute_bytes > PC_OP_ATTRIBUTES_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pc_op_register: %s: %zu bytes of attributes; they are %d at most", spec->name,
                        spec->attribute_bytes, PC_OP_ATTRIBUTES_MAX);
    return PC_OK;
}

static pc_status check_gradient(const pc_op_spec *spec)
{
    if (spec->gradient && spec->writes != PC_OP_NEW)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_op_register: %s: what writes in place has no gradient; let it make new tensors, or leave "
                        "the rule out",
                        spec->name);
    const unsigned there = ((1u << spec->inputs) - 1) | ((1u << spec->outputs) - 1) << PC_OP_INPUTS_MAX;
    if (spec->saves & ~there)
        return pc__fail(PC_ERR_ARGUMENT, "pc_op_register: %s: saves names an input or output that it does not have",
                        spec->name);
    return PC_OK;
}

static unsigned flags_of(const pc_op_spec *spec)
{
    static const unsigned places[] = {
        [PC_OP_UPDATES] = PC__IN_PLACE, [PC_OP_OVERWRITES] = PC__IN_PLACE | PC__OVERWRITES};
    const unsigned inputs = spec->saves & ((1u << PC_OP_INPUTS_MAX) - 1), outputs = spec->saves >> PC_OP_INPUTS_MAX;
    return places[spec->writes] | inputs * PC__SAVE_IN0 | outputs * PC__SAVE_OUT0 | PC__BY_ALL_ATTRIBUTES |
           (spec->side_effects ? PC__SIDE_EFFECTS : 0);
}

static void fill(pc_op *op, const pc_op_spec *spec)
{
    *op = (pc_op){.row = {.name = op->name,
                          .index = PC__OP_own,
                          .n_out = spec->outputs,
                          .flags = flags_of(spec),
                          .infer = pc__infer_own,
                          .gradient = spec->gradient ? pc__grad_own : pc__no_gradient},
                  .inputs = spec->inputs,
                  .attribute_bytes = spec->attribute_bytes,
                  .strided = spec->strided,
                  .shape = spec->shape,
                  .gradient = spec->gradient,
                  .cpu = spec->cpu,
                  .cuda = spec->cuda,
                  .run = pc__own_run};
    memcpy(op->name, spec->name, strlen(spec->name) + 1);
}

static const pc_op *find(const char *name)
{
    const int n = atomic_load_explicit(&count, memory_order_acquire);
    for (int i = 0; i < n; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

static bool is_taken(const char *name)
{
    for (int i = 0; i < PC__OP_COUNT; i++)
        if (strcmp(pc__ops[i].name, name) == 0)
            return true;
    return find(name);
}

/* The lock is held. */
static const pc_op *add(const pc_op_spec *spec)
{
    const int n = atomic_load_explicit(&count, memory_order_relaxed);
    if (is_taken(spec->name))
        return pc__null(PC_ERR_ARGUMENT, "pc_op_register: there is an op %s already; pc_op_find finds one of your own",
                        spec->name);
    if (n == PC_OPS_MAX)
        return pc__null(PC_ERR_UNSUPPORTED,
                        "pc_op_register: %s: a process has %d ops of its own at most; give one "
                        "attributes in the place of several",
                        spec->name, PC_OPS_MAX);
    fill(&ops[n], spec);
    atomic_store_explicit(&count, n + 1, memory_order_release);
    return &ops[n];
}

const pc_op *pc_op_register(const pc_op_spec *spec)
{
    PC__NEED_OR(NULL, spec);
    if (check_name(spec->name) != PC_OK || check_counts(spec) != PC_OK || check_gradient(spec) != PC_OK)
        return NULL;
    if (!spec->cpu && !spec->cuda)
        return pc__null(PC_ERR_ARGUMENT, "pc_op_register: %s: it has no kernel; give cpu or cuda", spec->name);
    pthread_mutex_lock(&lock);
    const pc_op *op = add(spec);
    pthread_mutex_unlock(&lock);
    return op;
}

const pc_op *pc_op_find(const char *name)
{
    PC__NEED_OR(NULL, name);
    return strncmp(name, PC__LESSON_NAMES, strlen(PC__LESSON_NAMES)) == 0 ? NULL : find(name);
}
