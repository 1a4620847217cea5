/* epilogue_gradient.c: the way of a gradient back to a product, over the steps that follow it and copies of memory. */
#include "plan/epilogue.h"

#include "ops/activation.h"

/* The product's gradient has its result among its inputs. */
static int backward_of(const pc__epilogues *s, const pc__epilogue *e)
{
    const int op = pc__is_convolution(s, e) ? PC__OP_conv2d_backward : PC__OP_linear_backward;
    const int number = pc__result_number(s, e->product);
    for (int i = s->uses.first[number]; i < s->uses.first[number + 1]; i++) {
        const int reader = s->uses.reader[i];
        if (pc__node_is(s, reader, op) && pc__node(s, reader)->number[pc__operand_y(s, e)] == number &&
            pc__node(s, reader)->stream == pc__node(s, e->product)->stream)
            return reader;
    }
    return -1;
}

/* Who makes the gradient, where it is for node `to` alone; else -1. */
static int maker_of(const pc__epilogues *s, int number, int to)
{
    const int maker = s->uses.writer[number];
    const bool alone = maker >= 0 && pc__is_only_for(s, number, &to, 1);
    return alone && !pc__node(s, maker)->gone && pc__node(s, maker)->kind == PC__NODE_CALL &&
                   pc__node(s, maker)->call->n_out == 1
               ? maker
               : -1;
}

static bool undoes(const pc__epilogues *s, const pc__epilogue *e, pc__epilogue_step kind, int i)
{
    const pc__plan_node *node = pc__node(s, i), *step = kind < PC__EPILOGUE_STEPS ? pc__node(s, e->step[kind]) : NULL;
    if (kind == PC__STEP_ACTIVATION)
        return pc__activation_by_backward(node->call->op) == pc__activation_by_op(step->call->op) &&
               node->number[1] == step->number[1];
    return kind == PC__STEP_POOL && pc__node_is(s, i, PC__OP_max_pool2d_backward) && node->number[1] == step->number[2];
}

/* Over one node, in front of `*to`: that which undoes the step, or one that only turns memory. */
static bool walk_back(const pc__epilogues *s, pc__epilogue *e, pc__epilogue_step kind, int *to, bool *done)
{
    const int maker = maker_of(s, e->dy_number, *to);
    if (maker < 0 || e->undone_count == PC__EPILOGUE_UNDONE)
        return false;
    *done = undoes(s, e, kind, maker);
    if ((!*done && !pc__is_reordering(s, maker)) || s->plan->storage[pc__node(s, maker)->number[0]].writes != 1)
        return false;
    e->copy = e->copy < 0 && !*done ? maker : e->copy;
    e->undone[e->undone_count++] = maker;
    e->dy = pc__node(s, maker)->call->in[0];
    e->dy_number = pc__node(s, maker)->number[0];
    *to = maker;
    return true;
}

/* As the last step's result lies in memory, by copies on the way or by one that stays. */
static bool has_order(const pc__epilogues *s, pc__epilogue *e, int to)
{
    const pc_tensor *out = pc__result(s, e->step[e->last]);
    bool done;
    while (!pc__is_same_memory(e->dy, out) && !pc__same_places(e->dy, out))
        if (!walk_back(s, e, PC__EPILOGUE_STEPS, &to, &done))
            return e->copy >= 0 && pc__same_shape(e->dy, out) && pc__same_places(pc__result(s, e->copy), out);
    e->copy = -1;
    return true;
}

bool pc__epilogue_gradient(const pc__epilogues *s, pc__epilogue *e)
{
    e->backward = backward_of(s, e);
    e->undone_count = 0;
    e->copy = -1;
    if (e->backward < 0)
        return true;
    e->dy = pc__node(s, e->backward)->call->in[pc__operand_dy(s, e)];
    e->dy_number = pc__node(s, e->backward)->number[pc__operand_dy(s, e)];
    int to = e->backward;
    for (pc__epilogue_step kind = PC__STEP_ACTIVATION; kind <= PC__STEP_POOL && kind <= e->last; kind++)
        for (bool done = e->step[kind] < 0; !done;)
            if (!walk_back(s, e, kind, &to, &done))
                return false;
    return has_order(s, e, to);
}
