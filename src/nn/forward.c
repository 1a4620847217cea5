/* forward.c: the way into a module's forward pass. */
#include "nn/module.h"

static void drop(void *tensor)
{
    pc_tensor_free(tensor);
}

pc_tensor *pc__hand_out(pc_tensor *owned)
{
    return owned && pc_scope_own(owned, drop) == PC_OK ? owned : NULL;
}

static pc_status check_made(const pc_module *module, pc_tensor *const *out, int count)
{
    for (int i = 0; i < count; i++)
        if (!out[i])
            return pc__fail(PC_ERR_ARGUMENT, "forward: %s left result %d of %d NULL", module->type->name, i, count);
    return PC_OK;
}

static pc_status check_counts(const pc_module_class *type, int in_count, int out_count)
{
    if ((!type->inputs || type->inputs == in_count) && (!type->outputs || type->outputs == out_count))
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT, "forward: %s takes %d tensors and gives %d; %d were given and %d asked for",
                    type->name, type->inputs ? type->inputs : in_count, type->outputs ? type->outputs : out_count,
                    in_count, out_count);
}

pc_status pc__forward_own(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    const pc_module_class *type = module->type;
    if (type->forward_many) {
        PC__TRY(check_counts(type, in_count, out_count));
        PC__TRY(type->forward_many(module, in, in_count, out, out_count));
        return check_made(module, out, out_count);
    }
    if (in_count != 1 || out_count != 1)
        return pc__fail(PC_ERR_ARGUMENT,
                        "forward: %s gives one tensor of one, and %d of %d were asked for; a class of your own with "
                        "forward_many takes several",
                        type->name, out_count, in_count);
    out[0] = type->forward(module, in[0]);
    return out[0] ? PC_OK : pc_error_last()->status;
}

/* The results that were taken hold of go to the scope outside, or to the caller. */
static pc_status hand_out(pc_tensor **out, int count, pc_status status)
{
    for (int i = 0; i < count; i++) {
        if (status == PC_OK) {
            out[i] = pc__hand_out(out[i]);
            status = out[i] ? PC_OK : PC_ERR_MEMORY;
        } else {
            pc_tensor_free(out[i]);
            out[i] = NULL;
        }
    }
    for (int i = 0; i < count && status != PC_OK; i++)
        out[i] = NULL; /* those are the scope's */
    return status;
}

static _Thread_local const pc__observer *observing;

void pc__forward_observe(const pc__observer *observer)
{
    observing = observer;
}

bool pc__forward_is_watched(const pc_module *module)
{
    return module->hook_count || module->checkpointed || observing;
}

/* One forward pass under way. */
typedef struct pass {
    pc_module *module;
    pc_tensor **out;
    int in_count, out_count;
    bool again; /* the backward pass does it once more */
} pass;

static pc_status call(const pass *p, pc_tensor *const *in)
{
    const bool again = p->again && p->in_count <= PC__CHECKPOINT_INPUTS && p->out_count == 1;
    return again ? pc__forward_again(p->module, in, p->in_count, p->out)
                 : pc__forward_own(p->module, in, p->in_count, p->out, p->out_count);
}

/* Hooks may put others in the place of the inputs. */
static pc_status call_hooked(const pass *p, pc_tensor *const *in)
{
    if (!p->module->hook_count)
        return call(p, in);
    pc_tensor **taken = pc__calloc((size_t)p->in_count, sizeof *taken);
    if (!taken)
        return PC_ERR_MEMORY;
    memcpy(taken, in, (size_t)p->in_count * sizeof *taken);
    pc_status status = pc__hooks_before(p->module, taken, p->in_count);
    status = status == PC_OK ? call(p, taken) : status;
    status = status == PC_OK ? pc__hooks_after(p->module, taken, p->in_count, p->out, p->out_count) : status;
    pc__free(taken);
    return status;
}

static pc_status call_observed(const pass *p, pc_tensor *const *in)
{
    const pc__observer *observer = observing;
    if (!observer)
        return call_hooked(p, in);
    observer->enter(observer->context, p->module);
    PC__TRY(call_hooked(p, in));
    observer->leave(observer->context, p->module, p->out, p->out_count);
    return PC_OK;
}

/* In a scope, so that it makes no difference whose the results are. */
static pc_status forward(const pass *p, pc_tensor *const *in)
{
    pc_status status = PC_OK;
    pc__watch_asked(p->module);
    PC_SCOPE {
        status = call_observed(p, in);
        for (int i = 0; i < p->out_count; i++)
            p->out[i] = status == PC_OK ? pc_tensor_retain(p->out[i]) : NULL;
    }
    return hand_out(p->out, p->out_count, status);
}

pc_tensor *pc_forward(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc_tensor *y = NULL;
    if (!module->type->forward || pc__forward_is_watched(module)) {
        (void)forward(&(pass){module, &y, 1, 1, module->checkpointed}, &x);
        return y;
    }
    pc__watch_asked(module);
    return module->type->forward(module, x);
}

pc_status pc_forward_many(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    PC__NEED(module);
    PC__NEED(in);
    PC__NEED(out);
    if (in_count < 1 || out_count < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_forward_many: %d inputs and %d outputs; there is at least one of each",
                        in_count, out_count);
    for (int i = 0; i < out_count; i++)
        out[i] = NULL;
    for (int i = 0; i < in_count; i++)
        PC__NEED(in[i]);
    return forward(&(pass){module, out, in_count, out_count, module->checkpointed}, in);
}

pc_tensor *pc_forward2(pc_module *module, pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    pc_tensor *y = NULL;
    (void)forward(&(pass){module, &y, 2, 1, module->checkpointed}, (pc_tensor *[]){a, b});
    return y;
}

pc_tensor *pc_forward_child(pc_module *module, const char *name, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, name);
    PC__NEED_OR(NULL, x);
    pc_module *child = pc_module_child_named(module, name);
    return child ? pc_forward(child, x) : NULL;
}

pc_tensor *pc_checkpoint(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc_tensor *y = NULL;
    (void)forward(&(pass){module, &y, 1, 1, true}, &x);
    return y;
}

void pc_module_set_checkpoint(pc_module *module, bool on)
{
    PC__NEED_OR(, module);
    module->version += module->checkpointed != on;
    module->checkpointed = on;
}
