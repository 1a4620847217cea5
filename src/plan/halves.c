/* halves.c: gradients of plain convolutions in two calls, of the input and of the weights, so that each can go its own way
 * (aside.c). They share no work where nothing follows the convolution and its memory lies channels last. */
#include "plan/plan.h"

#include "ops/conv2d.h"
#include "ops/table.h"

static bool is_plain(const pc__plan_node *node)
{
    if (node->gone || node->kind != PC__NODE_CALL || node->call->op->index != PC__OP_conv2d_backward)
        return false;
    const pc__conv2d_attributes *a = node->call->attributes;
    return a->needs[0] && a->needs[1] && !a->needs[2] && a->spec.activation == PC_ACTIVATION_NONE &&
           a->spec.pool <= 1 && !a->planes;
}

/* The call for one of the two gradients; what it does not make is the bias's, of no elements. */
static bool become_half(pc__plan_node *node, const pc__plan_node *of, int gradient)
{
    enum { MOST = 8 };
    pc_call call = *of->call;
    pc__conv2d_attributes attributes = *(const pc__conv2d_attributes *)call.attributes;
    int number[MOST];
    memcpy(number, of->number, (size_t)pc__node_uses(of) * sizeof *number);
    attributes.needs[1 - gradient] = false;
    call.attributes = &attributes;
    call.out[1 - gradient] = call.out[2];
    number[call.n_in + 1 - gradient] = number[call.n_in + 2];
    return pc__node_become(node, &call, number, of->kernel);
}

/* Node i does the first half from then on, and one behind it the second. */
static bool split(pc__plan *plan, int i)
{
    if (pc__grow((void **)&plan->node, &plan->room, plan->count, sizeof *plan->node) != PC_OK)
        return false;
    pc__plan_node *first = &plan->node[i], second = *first;
    second.call = NULL;
    second.number = NULL;
    if (!become_half(&second, first, 1))
        return false;
    if (!become_half(first, first, 0)) {
        pc__plan_node_drop(&second);
        return false;
    }
    memmove(first + 2, first + 1, (size_t)(plan->count - i - 1) * sizeof *first);
    first[1] = second;
    plan->count++;
    return true;
}

void pc__plan_halve(pc__plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (is_plain(&plan->node[i]) && !split(plan, i++)) {
            pc_error_clear(); /* the plan is right as it is */
            return;
        }
}
