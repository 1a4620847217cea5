/* checkpoint.c: forward passes of which inputs and results alone are kept. The result is a view of what was computed
 * without a record, and its gradient rule computes it once more with one, from which gradients go on: those of
 * parameters are collected by the leaves themselves, those of the inputs are the rule's. */
#include "nn/module.h"

#include "autograd/leaf_watch.h"
#include "ops/again.h"
#include "ops/random.h"
#include "ops/table.h"

#include <paracord/amp.h>
#include <paracord/autograd.h>

/* What the second forward pass needs to be the first. */
typedef struct checkpoint {
    pc_module *module;
    int in_count;
    pc_generator generator;
    pc_dtype autocast;
    bool evaluating, recorded;
    uint64_t modes;
} checkpoint;

/* The modes of the module and of all below it, in order, as one number (FNV-1a). */
static uint64_t modes_of(const pc_module *module, uint64_t sum)
{
    sum = (sum ^ (uint64_t)(1 + atomic_load_explicit(&module->training, memory_order_relaxed))) * 0x100000001b3u;
    for (int i = 0; i < module->child_count; i++)
        sum = modes_of(module->children[i].object, sum);
    return sum;
}

static uint64_t modes(const pc_module *module)
{
    return modes_of(module, 0xcbf29ce484222325u);
}

/* Inputs of the call: the result, what the module took, the parameters that it trains, and watched ones of other modules
 * that its forward pass uses: who watches these waits for the rule, which has brought them their gradients when it is
 * done. */
enum { RESULT, FIRST };

static pc_status infer(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[RESULT]);
    return PC_OK;
}

static pc_status run(const checkpoint *c, pc_tensor *const *in, pc_tensor **y)
{
    if (!c->evaluating)
        return pc__forward_own(c->module, in, c->in_count, y, 1);
    pc_status status = PC_OK;
    PC__EVALUATE
    {
        status = pc__forward_own(c->module, in, c->in_count, y, 1);
    }
    return status;
}

/* With a record, inside a backward pass, which keeps none. */
static pc_status run_again(const checkpoint *c, pc_tensor *const *in, pc_tensor **y)
{
    const pc__again before = pc__again_enter(c->generator);
    const int no_grad = pc__mode.no_grad;
    pc_status status = PC_OK;
    pc__mode.no_grad = 0;
    PC_AUTOCAST(c->autocast) {
        status = run(c, in, y);
    }
    pc__mode.no_grad = no_grad;
    pc__again_leave(&before);
    return status;
}

/* Leaves of their own, so that what they collect is what goes on. */
static pc_status take_inputs(const pc__grad *grad, int count, pc_tensor **in)
{
    for (int i = 0; i < count; i++) {
        in[i] = pc_detach(grad->in[FIRST + i]);
        if (!in[i])
            return pc_error_last()->status;
        if (grad->needs[FIRST + i])
            PC__TRY(pc_require_grad(in[i], true));
    }
    return PC_OK;
}

static pc_status gradient(pc__grad *grad)
{
    const checkpoint *c = grad->attributes;
    pc_tensor *in[PC__CHECKPOINT_INPUTS], *y = NULL;
    if (c->recorded != pc__draws_recorded())
        return pc__fail(PC_ERR_STATE,
                        "backward: the forward pass of a checkpoint of %s was not recorded in the step that "
                        "its backward pass is recorded in; let the step do both",
                        c->module->type->name);
    if (!c->evaluating && c->modes != modes(c->module))
        return pc__fail(PC_ERR_STATE,
                        "backward: the training mode of the checkpoint of %s, or of a part of it, is not that of its "
                        "forward pass; set it back for the backward pass",
                        c->module->type->name);
    PC__TRY(take_inputs(grad, c->in_count, in));
    PC__TRY(run_again(c, in, &y));
    if (!pc_requires_grad(y))
        return PC_OK;
    PC__TRY(pc__backward_inside(y, pc__as_dtype(grad->out_grad[0], (pc_dtype)y->dtype)));
    for (int i = 0; i < c->in_count; i++)
        if (grad->needs[FIRST + i] && pc_grad(in[i]))
            PC__TRY(pc__set_grad(grad, FIRST + i, pc__share(pc_grad(in[i]))));
    return PC_OK;
}

static const pc__op checkpoint_op = {
    "checkpoint", PC__OP_view, 1, PC__VIEW | PC__SAVE_IN1 | PC__SAVE_IN2 | PC__SAVE_IN3 | PC__SAVE_IN4,
    infer,        gradient};

typedef struct inputs {
    pc_tensor **tensor;
    int count, room;
    bool wanted; /* one of them has a gradient */
} inputs;

static pc_status add(inputs *i, pc_tensor *t)
{
    PC__TRY(pc__grow((void **)&i->tensor, &i->room, i->count, sizeof *i->tensor));
    i->tensor[i->count++] = t;
    i->wanted = i->wanted || pc_requires_grad(t);
    return PC_OK;
}

static pc_status add_trained(void *context, const char *name, pc__named *parameter)
{
    (void)name;
    return pc_requires_grad(parameter->object) ? add(context, parameter->object) : PC_OK;
}

/* Room for the result, which comes later, and the rest. */
static pc_status take_all(inputs *i, pc_module *module, pc_tensor *const *in, int in_count)
{
    PC__TRY(add(i, in[0]));
    for (int k = 0; k < in_count; k++)
        PC__TRY(add(i, in[k]));
    return pc__module_each(module, add_trained, i);
}

static pc_status add_once(inputs *i, pc_tensor *t)
{
    for (int k = FIRST; k < i->count; k++)
        if (i->tensor[k] == t)
            return PC_OK;
    return add(i, t);
}

/* Without a record. A weight of another module may be used here before that module has it again on the way back. */
static pc_status run_first(pc_module *module, int in_count, inputs *i)
{
    pc_status status = PC_OK;
    pc__leaf_notes noted = {0};
    PC_NO_GRAD {
        const pc__leaf_notes before = pc__leaf_note_begin();
        status = pc__forward_own(module, i->tensor + FIRST, in_count, &i->tensor[RESULT], 1);
        if (status == PC_OK)
            status = pc__leaf_note(i->tensor[RESULT]);
        noted = pc__leaf_note_end(before);
    }
    for (int k = 0; k < noted.count && status == PC_OK; k++)
        status = add_once(i, noted.leaf[k]);
    pc__free(noted.leaf);
    return status;
}

static pc_status run_once(pc_module *module, int in_count, inputs *i, pc_tensor **out)
{
    const checkpoint c = {.module = module,
                          .in_count = in_count,
                          .generator = pc_generator_get(),
                          .autocast = pc_autocast_dtype(),
                          .evaluating = pc__is_evaluating(),
                          .recorded = pc__draws_recorded(),
                          .modes = modes(module)};
    PC__TRY(run_first(module, in_count, i));
    pc_call call = {.op = &checkpoint_op,
                    .in = i->tensor,
                    .n_in = i->count,
                    .n_out = 1,
                    .attributes = &c,
                    .attribute_bytes = sizeof c};
    const pc_status status = pc_dispatch(&call);
    out[0] = status == PC_OK ? call.out[0] : NULL;
    return status;
}

pc_status pc__forward_again(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out)
{
    inputs i = {0};
    pc_status status = take_all(&i, module, in, in_count);
    if (status == PC_OK)
        status = i.wanted && pc_grad_enabled() ? run_once(module, in_count, &i, out)
                                               : pc__forward_own(module, in, in_count, out, 1);
    pc__free(i.tensor);
    return status;
}
