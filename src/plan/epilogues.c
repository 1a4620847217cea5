/* epilogues.c: the pass that gives to convolutions and linear layers what follows them: an activation, a max-pooling, a
 * copy into C order. The gradient goes with it: from the layer's own backward call the way of the gradient is walked back
 * over the same steps, and where all of them are found that call does them too. Steps are taken as far as nobody else
 * needs what is between them; a backend may refuse what it does faster as calls of their own.
 *
 * In float32 activations have the bits of the single calls. So has a pooling, but where the CPU convolves to few outputs, or at few
 * places: the call that pools adds its sums up in another order there. Gradients of what a pooled convolution reads are added up in
 * another order anywhere. In 16 bits sigmoid, tanh and poolings come from a product that was not rounded before. */
#include "plan/epilogue.h"

#include "ops/activation.h"
#include "ops/conv2d.h"
#include "ops/linear.h"
#include "ops/pool2d.h"

/* The same elements in the same places of memory, whatever their shapes. */
bool pc__is_same_memory(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && a->offset == b->offset &&
           (pc__same_places(a, b) || (pc__is_contiguous(a) && pc__is_contiguous(b) &&
                                      pc__count(a->ndim, a->shape) == pc__count(b->ndim, b->shape)));
}

/* Of a value that was made in the recording, once: nobody else sees it, and those that read it are among these nodes. */
bool pc__is_only_for(const pc__epilogues *s, int number, const int *nodes, int count)
{
    if (!pc__is_temporary(s, number))
        return false;
    for (int i = s->uses.first[number]; i < s->uses.first[number + 1]; i++) {
        int k = 0;
        while (k < count && s->uses.reader[i] != nodes[k])
            k++;
        if (k == count && !pc__node(s, s->uses.reader[i])->gone)
            return false;
    }
    return true;
}

/* --- the steps behind a product --- */

/* The same numbers in another order of memory. */
bool pc__is_reordering(const pc__epilogues *s, int i)
{
    return pc__node_is(s, i, PC__OP_cast) && pc__node(s, i)->call->in[0]->dtype == pc__result(s, i)->dtype;
}

static bool is_fusable_pool(const pc__epilogues *s, int i)
{
    if (!pc__node_is(s, i, PC__OP_max_pool2d))
        return false;
    const pc_fn_pool2d_options *p = &((const pc__pool2d_attributes *)pc__node(s, i)->call->attributes)->spec;
    return p->kernel[0] == p->kernel[1] && p->stride[0] == p->kernel[0] && p->stride[1] == p->kernel[0] &&
           !p->padding[0] && !p->padding[1] && !p->ceil_mode && p->kernel[0] > 1 && p->kernel[0] <= 16;
}

static bool is_step(const pc__epilogues *s, int i, pc__epilogue_step kind, bool convolution)
{
    const pc__plan_node *node = pc__node(s, i);
    if (node->gone || node->kind != PC__NODE_CALL)
        return false;
    if (kind == PC__STEP_ACTIVATION)
        return pc__activation_by_op(node->call->op) != PC_ACTIVATION_NONE;
    if (!convolution)
        return false;
    return kind == PC__STEP_POOL
               ? is_fusable_pool(s, i)
               : s->backend->convolves_to_c_order && pc__is_reordering(s, i) && pc__is_contiguous(pc__result(s, i));
}

/* The step of that kind that reads what node `from` makes, or -1. */
static int step_behind(const pc__epilogues *s, int from, pc__epilogue_step kind, bool convolution)
{
    const int number = pc__result_number(s, from);
    for (int i = s->uses.first[number]; i < s->uses.first[number + 1]; i++) {
        const int reader = s->uses.reader[i];
        const pc__plan_node *node = pc__node(s, reader);
        if (is_step(s, reader, kind, convolution) && node->stream == pc__node(s, from)->stream &&
            node->number[0] == number && pc__is_same_memory(node->call->in[0], pc__result(s, from)) &&
            s->plan->storage[pc__result_number(s, reader)].writes == 1)
            return reader;
    }
    return -1;
}

/* The first step that a convolution does not do yet. */
static pc__epilogue_step next_step(const pc__epilogues *s, int convolution)
{
    const pc_fn_conv2d_options *spec =
        &((const pc__conv2d_attributes *)pc__node(s, convolution)->call->attributes)->spec;
    return spec->pool > 1                           ? PC__STEP_C_ORDER
           : spec->activation != PC_ACTIVATION_NONE ? PC__STEP_POOL
                                                    : PC__STEP_ACTIVATION;
}

/* Which steps there are, one behind the other. */
static bool find_steps(const pc__epilogues *s, pc__epilogue *e)
{
    const bool convolution = pc__is_convolution(s, e);
    const pc__epilogue_step next = convolution ? next_step(s, e->product) : PC__STEP_ACTIVATION;
    int from = e->product;
    bool found = false;
    for (pc__epilogue_step kind = PC__STEP_ACTIVATION; kind < PC__EPILOGUE_STEPS; kind++) {
        e->step[kind] = kind < next ? -1 : step_behind(s, from, kind, convolution);
        found |= e->step[kind] >= 0;
        from = e->step[kind] < 0 ? from : e->step[kind];
    }
    return found;
}

/* Nobody but these nodes needs what is between the product and the last step. */
static bool is_alone(const pc__epilogues *s, const pc__epilogue *e)
{
    int nodes[PC__EPILOGUE_STEPS + PC__EPILOGUE_UNDONE + 1], count = 0, from = e->product;
    for (pc__epilogue_step kind = PC__STEP_ACTIVATION; kind <= e->last; kind++)
        if (e->step[kind] >= 0)
            nodes[count++] = e->step[kind];
    for (int i = 0; i < e->undone_count; i++)
        nodes[count++] = e->undone[i];
    if (e->backward >= 0)
        nodes[count++] = e->backward;
    for (pc__epilogue_step kind = PC__STEP_ACTIVATION; kind <= e->last; kind++) {
        if (e->step[kind] < 0)
            continue;
        if (!pc__is_only_for(s, pc__result_number(s, from), nodes, count) ||
            (kind == PC__STEP_POOL && !pc__is_only_for(s, pc__node(s, e->step[kind])->number[2], nodes, count)))
            return false;
        from = e->step[kind];
    }
    return true;
}

/* A ReLU behind no bias, of which nothing is read but a copy into C order that the backend does not do with the product: on the way
 * there it costs nothing, while the product would do it in a pass of its own. */
static bool goes_with_copy(const pc__epilogues *s, const pc__epilogue *e)
{
    return e->last == PC__STEP_ACTIVATION && e->step[PC__STEP_C_ORDER] >= 0 && e->step[PC__STEP_POOL] < 0 &&
           e->backward < 0 && pc__node(s, e->product)->call->n_in == 2 &&
           pc__is_only_for(s, pc__result_number(s, e->step[PC__STEP_ACTIVATION]), &e->step[PC__STEP_C_ORDER], 1) &&
           pc__activation_by_op(pc__node(s, e->step[PC__STEP_ACTIVATION])->call->op) == PC_ACTIVATION_RELU;
}

/* As many steps as can be. */
static void visit(pc__epilogues *s, int product)
{
    pc__epilogue e = {.product = product};
    if (!find_steps(s, &e))
        return;
    for (int last = PC__EPILOGUE_STEPS - 1; last >= 0; last--) {
        e.last = (pc__epilogue_step)last;
        if (e.step[last] >= 0 && pc__epilogue_gradient(s, &e) && !goes_with_copy(s, &e) && is_alone(s, &e) &&
            pc__epilogue_is_taken(s, &e)) {
            pc__epilogue_fuse(s, &e);
            return;
        }
    }
}

/* What takes further steps. */
static bool is_open(const pc__epilogues *s, int i)
{
    const void *attributes = pc__node(s, i)->kind == PC__NODE_CALL ? pc__node(s, i)->call->attributes : NULL;
    if (pc__node_is(s, i, PC__OP_linear))
        return ((const pc__linear_attributes *)attributes)->activation == PC_ACTIVATION_NONE;
    const pc__conv2d_attributes *conv = attributes;
    return pc__node_is(s, i, PC__OP_conv2d) && !conv->planes;
}

void pc__pass_epilogues(pc__plan *plan, const pc__backend *backend)
{
    pc__epilogues s = {.plan = plan, .backend = backend};
    if (!pc__epilogues_find(&s))
        return;
    for (int i = 0; i < plan->count; i++)
        if (is_open(&s, i))
            visit(&s, i);
    pc__plan_uses_free(&s.uses);
}
