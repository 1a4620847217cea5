/* checkpoint.c: forward passes of which inputs and results alone are kept. The result is a view of what was computed
 * without a record, and its gradient rule computes it once more with one, from which gradients go on: those of
 * parameters are collected by the leaves themselves, those of the inputs are the rule's. */
#include "nn/module.h"
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
} checkpoint;

/* Inputs of the call: the result, what the module took, and a parameter, which says that there is something to
 * differentiate where the inputs do not. */
enum { RESULT, FIRST, CALL_INPUTS = FIRST + PC__CHECKPOINT_INPUTS + 1 };

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
    PC__TRY(take_inputs(grad, c->in_count, in));
    PC__TRY(run_again(c, in, &y));
    if (!pc_requires_grad(y))
        return PC_OK;
    PC__TRY(pc_backward_with(y, pc__as_dtype(grad->out_grad[0], (pc_dtype)y->dtype)));
    for (int i = 0; i < c->in_count; i++)
        if (grad->needs[FIRST + i] && pc_grad(in[i]))
            PC__TRY(pc__set_grad(grad, FIRST + i, pc__share(pc_grad(in[i]))));
    return PC_OK;
}

static const pc__op checkpoint_op = {
    "checkpoint", PC__OP_view, 1, PC__VIEW | PC__SAVE_IN1 | PC__SAVE_IN2 | PC__SAVE_IN3 | PC__SAVE_IN4,
    infer,        gradient};

static pc_status find_trained(void *context, const char *name, pc__named *parameter)
{
    (void)name;
    if (pc_requires_grad(parameter->object))
        *(pc_tensor **)context = parameter->object;
    return PC_OK;
}

pc_status pc__forward_again(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out)
{
    pc_tensor *tensors[CALL_INPUTS] = {NULL}, *trained = NULL;
    (void)pc__module_visit(module, find_trained, &trained);
    bool wanted = trained;
    for (int i = 0; i < in_count; i++)
        wanted = wanted || pc_requires_grad(in[i]);
    if (!wanted || !pc_grad_enabled())
        return pc__forward_own(module, in, in_count, out, 1);

    const checkpoint c = {
        module, in_count, pc_generator_get(), pc_autocast_dtype(), pc__is_evaluating(), pc__draws_recorded()};
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__forward_own(module, in, in_count, &tensors[RESULT], 1);
    }
    PC__TRY(status);
    memcpy(tensors + FIRST, in, (size_t)in_count * sizeof *tensors);
    tensors[FIRST + in_count] = trained;
    pc_call call = {.op = &checkpoint_op,
                    .in = tensors,
                    .n_in = FIRST + in_count + (trained != NULL),
                    .n_out = 1,
                    .attributes = &c,
                    .attribute_bytes = sizeof c};
    status = pc_dispatch(&call);
    out[0] = status == PC_OK ? call.out[0] : NULL;
    return status;
}
