/* ema.c: moving averages of weights. What changes from update to update, the share of the new weights and the count, is the
 * device's, so that a recorded update is the same work each time. */
#include "device/graph.h"
#include "nn/module.h"

#include <paracord/ema.h>
#include <paracord/no_grad.h>

struct pc_ema {
    double decay;
    int count;
    pc_parameter *names;              /* tensors: the parameters, a reference each */
    pc_tensor **average, **before;    /* before: what the parameters were, while the averages are in; else NULL */
    pc_tensor *share, *updates, *one; /* float64 and int64, of no dimensions */
    bool in;
};

static pc_tensor *made(pc_tensor *t)
{
    return t ? pc_tensor_retain(t) : NULL;
}

/* A tensor under two names has one average. */
static pc_status take(void *context, const char *name, pc__named *parameter)
{
    pc_ema *e = context;
    for (int i = 0; i < e->count; i++)
        if (e->names[i].tensor == parameter->object)
            return PC_OK;
    pc_tensor *of = parameter->object;
    pc_tensor *own = made(pc__is_half((pc_dtype)of->dtype) ? pc_cast(of, PC_F32) : pc_clone(of));
    if (!own)
        return pc_error_last()->status;
    e->average[e->count] = own;
    e->names[e->count].tensor = pc_tensor_retain(parameter->object);
    const int length = snprintf(e->names[e->count].name, sizeof e->names->name, "module.%s", name);
    e->count++;
    return length < (int)sizeof e->names->name
               ? PC_OK
               : pc__fail(PC_ERR_ARGUMENT,
                          "pc_ema_new: the name \"module.%s\" is longer than %zu bytes; nest fewer modules", name,
                          sizeof e->names->name - 1);
}

static pc_status fill(pc_ema *e, pc_module *module)
{
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            status = pc__module_visit(module, take, e);
            if (status == PC_OK && e->count) {
                const pc_device device = pc_tensor_device(e->names[0].tensor);
                e->share = made(pc_ones(PC_SHAPE_SCALAR, PC_F64, device));
                e->updates = made(pc_zeros(PC_SHAPE_SCALAR, PC_I64, device));
                e->one = made(pc_ones(PC_SHAPE_SCALAR, PC_I64, device));
                status = e->share && e->updates && e->one ? PC_OK : pc_error_last()->status;
            }
        }
    return status;
}

pc_ema *pc_ema_new(pc_module *module, double decay)
{
    PC__NEED_OR(NULL, module);
    const int count = pc_module_parameter_list(module, NULL, 0);
    if (!(decay >= 0 && decay < 1))
        return pc__null(PC_ERR_ARGUMENT, "pc_ema_new: decay is %g; it must be in [0, 1)", decay);
    if (count < 0)
        return NULL;
    if (!count)
        return pc__null(PC_ERR_ARGUMENT, "pc_ema_new: the %s has no parameters", module->type->name);
    pc_ema *e = pc__calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->decay = decay;
    e->names = pc__calloc((size_t)count, sizeof *e->names);
    e->average = pc__calloc((size_t)count, sizeof *e->average);
    e->before = pc__calloc((size_t)count, sizeof *e->before);
    if (e->names && e->average && e->before && fill(e, module) == PC_OK)
        return e;
    pc_ema_free(e);
    return NULL;
}

static void forget_before(pc_ema *e)
{
    for (int i = 0; i < e->count; i++) {
        pc_tensor_free(e->before[i]);
        e->before[i] = NULL;
    }
}

/* Recorded steps look at the mark (nn/watch.c): while it is there, no launch repeats an update. */
static void mark(const pc_ema *e, bool in)
{
    for (int i = 0; i < e->count; i++)
        e->names[i].tensor->averaged = in;
}

void pc_ema_free(pc_ema *ema)
{
    if (!ema)
        return;
    if (ema->in)
        mark(ema, false);
    if (ema->before)
        forget_before(ema);
    for (int i = 0; i < ema->count; i++) {
        pc_tensor_free(ema->average[i]);
        pc_tensor_free(ema->names[i].tensor);
    }
    pc_tensor_free(ema->share);
    pc_tensor_free(ema->updates);
    pc_tensor_free(ema->one);
    pc__free(ema->names);
    pc__free(ema->average);
    pc__free(ema->before);
    pc__free(ema);
}

/* What has not moved stays as it is, to the last bit. The first is the parameter itself, whatever stood there: weights
 * from before a file was loaded may be huge, or no numbers. */
static pc_status update(const pc_ema *e, int i, pc_tensor *const *share, pc_tensor *first)
{
    pc_tensor *average = e->average[i], *parameter = e->names[i].tensor;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *now = pc_cast(parameter, (pc_dtype)average->dtype);
        pc_tensor *step = pc_mul(pc_sub(now, average), share[average->dtype == PC_F64]);
        status = pc_copy(average, pc_where(first, now, pc_add(average, step)));
    }
    return status;
}

static pc_status check_place(const pc_ema *e, const char *who)
{
    for (int i = 0; i < e->count; i++)
        if (e->names[i].tensor->moved)
            return pc__fail(
                PC_ERR_STATE,
                "%s: pc_module_to has moved \"%s\" since pc_ema_new, and the averages are of what was there "
                "before; make them after it",
                who, e->names[i].name);
    return PC_OK;
}

pc_status pc_ema_update(pc_ema *ema)
{
    PC__NEED(ema);
    PC__TRY(check_place(ema, "pc_ema_update"));
    if (ema->in)
        return pc__fail(PC_ERR_STATE, "pc_ema_update: the averages are in the network; pc_ema_swap_out first");
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            pc_tensor *share[2] = {pc_cast(ema->share, PC_F32), ema->share};
            pc_tensor *first = pc_gt(ema->one, ema->updates);
            for (int i = 0; i < ema->count && status == PC_OK; i++)
                status = update(ema, i, share, first);
            status = status == PC_OK ? pc_fill(ema->share, 1 - ema->decay) : status;
            status = status == PC_OK ? pc_saxpy(ema->updates, 1, ema->one) : status;
        }
    return status;
}

/* --- in and out --- */

static pc_status check_swap(const pc_ema *e, const char *who, bool in)
{
    PC__TRY(check_place(e, who));
    if (pc__graph_here(pc_tensor_device(e->names[0].tensor)))
        return pc__fail(PC_ERR_STATE, "%s: it changes what the host knows, which no recording can hold", who);
    return e->in == in
               ? PC_OK
               : pc__fail(PC_ERR_STATE, "%s: the averages are %s the network", who, e->in ? "already in" : "not in");
}

/* All of `from`, as far as they are there, into the parameters. */
static pc_status put(const pc_ema *e, pc_tensor *const *from)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int i = 0; i < e->count && status == PC_OK; i++)
            status = from[i] ? pc_copy(e->names[i].tensor, from[i]) : PC_OK;
    }
    return status;
}

static pc_status keep_before(pc_ema *e)
{
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            for (int i = 0; i < e->count && status == PC_OK; i++) {
                e->before[i] = made(pc_clone(e->names[i].tensor));
                status = e->before[i] ? PC_OK : pc_error_last()->status;
            }
        }
    return status;
}

pc_status pc_ema_swap_in(pc_ema *ema)
{
    PC__NEED(ema);
    PC__TRY(check_swap(ema, "pc_ema_swap_in", false));
    pc_status status = keep_before(ema);
    ema->in = status == PC_OK;
    mark(ema, ema->in);
    if (ema->in)
        status = put(ema, ema->average);
    else
        forget_before(ema);
    return status;
}

pc_status pc_ema_swap_out(pc_ema *ema)
{
    PC__NEED(ema);
    PC__TRY(check_swap(ema, "pc_ema_swap_out", true));
    PC__TRY(put(ema, ema->before));
    forget_before(ema);
    mark(ema, false);
    ema->in = false;
    return PC_OK;
}

/* --- state --- */

int pc_ema_state_list(const pc_ema *ema, pc_parameter *list, int room)
{
    PC__NEED_OR(0, ema);
    if (room > 0)
        PC__NEED_OR(0, list);
    if (room > 0)
        list[0] = (pc_parameter){"n_averaged", ema->updates};
    for (int i = 0; i < ema->count && i + 1 < room; i++) {
        list[i + 1] = ema->names[i];
        list[i + 1].tensor = ema->average[i];
    }
    return ema->count + 1;
}

static const pc_parameter *find(const pc_parameter *state, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(state[i].name, name) == 0)
            return &state[i];
    return NULL;
}

static pc_status check_state(const pc_parameter *own, int own_count, const pc_parameter *state, int count)
{
    if (count != own_count)
        return pc__fail(PC_ERR_NOT_FOUND,
                        "pc_ema_load: the state has %d entries, and the averages are %d with n_averaged", count,
                        own_count);
    for (int i = 0; i < own_count; i++) {
        const pc_parameter *given = find(state, count, own[i].name);
        if (!given || !given->tensor)
            return pc__fail(PC_ERR_NOT_FOUND, "pc_ema_load: the state has no \"%s\"", own[i].name);
        if (!pc__same_shape(own[i].tensor, given->tensor))
            return pc__fail(PC_ERR_SHAPE, "pc_ema_load: \"%s\" has shape %s in the state and %s here", own[i].name,
                            PC__SHAPE_OF(given->tensor), PC__SHAPE_OF(own[i].tensor));
    }
    return PC_OK;
}

static pc_status load(pc_ema *e, const pc_parameter *own, int own_count, const pc_parameter *state, int count)
{
    int64_t updates = 0;
    PC__TRY(check_state(own, own_count, state, count));
    for (int i = 0; i < own_count; i++)
        PC__TRY(pc_copy(own[i].tensor, find(state, count, own[i].name)->tensor));
    PC__TRY(pc_read(e->updates, &updates, sizeof updates));
    return pc_fill(e->share, updates > 0 ? 1 - e->decay : 1);
}

pc_status pc_ema_load(pc_ema *ema, const pc_parameter *state, int count)
{
    PC__NEED(ema);
    if (count > 0)
        PC__NEED(state);
    const int own_count = ema->count + 1;
    pc_parameter *own = pc__calloc((size_t)own_count, sizeof *own);
    if (!own)
        return PC_ERR_MEMORY;
    (void)pc_ema_state_list(ema, own, own_count);
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = load(ema, own, own_count, state, count);
    }
    pc__free(own);
    return status;
}
