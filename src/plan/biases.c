/* biases.c: the pass that has the product of a weight's gradient also add up its first factor, the gradient behind the
 * layer, whose sum over the batch is the bias's gradient: both read the same numbers. 16 bits, with sums in float32. */
#include "plan/epilogue.h"

#include "ops/matmul.h"
#include "ops/reduce.h"

enum { EIGHTS = 8 /* a row is whole accesses of matrix units' kernels */ };

/* [rows][batch] of 16 bits by columns, of which there is nothing else in its memory, times [batch][columns]. */
static bool is_weights(const pc_call *call)
{
    const pc__matmul_attributes *a = call->attributes;
    const pc_tensor *g = call->in[0], *x = call->in[1];
    return call->n_in == 2 && call->n_out == 1 && a && a->wide && g->ndim == 2 && x->ndim == 2 &&
           pc__is_half((pc_dtype)g->dtype) && g->shape[0] % EIGHTS == 0 && x->shape[1] % EIGHTS == 0 &&
           g->strides[0] == 1 && g->strides[1] == g->shape[0] && g->shape[1] > 1;
}

/* Of the same numbers, over the batch. */
static bool is_sum(const pc__epilogues *s, int i, const pc__plan_node *product)
{
    const pc__plan_node *node = pc__node(s, i);
    if (!pc__node_is(s, i, PC__OP_sum) || node->stream != product->stream)
        return false;
    const pc__reduce_attributes *a = node->call->attributes;
    const pc_tensor *t = node->call->in[0], *out = pc__result(s, i), *g = product->call->in[0];
    return a->outer == 1 && a->reduced == g->shape[1] && a->inner == g->shape[0] && a->divisor == 1 &&
           pc__is_contiguous(t) && t->dtype == g->dtype && t->offset == g->offset && out->dtype == PC_F32 &&
           pc__is_contiguous(out) && out->offset % 4 == 0 && !out->storage->foreign;
}

static void visit(pc__epilogues *s, int i)
{
    const pc__plan_node *product = pc__node(s, i);
    const int number = product->number[0];
    int sum = -1;
    for (int k = s->uses.first[number]; k < s->uses.first[number + 1] && sum < 0; k++)
        if (s->uses.reader[k] > i && is_sum(s, s->uses.reader[k], product))
            sum = s->uses.reader[k];
    if (sum < 0)
        return;
    const int to = pc__result_number(s, sum);
    if (to == number || to == product->number[1] || s->plan->storage[to].place == PC__PLACE_BEFORE ||
        pc__is_between(s, i + 1, sum, product->stream, (int[]){to, number}, 2, true))
        return;
    pc_tensor sums = *pc__result(s, sum);
    pc_call call = *product->call;
    call.n_out = 2, call.out[1] = &sums;
    if (pc__node_become(pc__node(s, i), &call, (int[]){number, product->number[1], product->number[2], to},
                        product->kernel))
        pc__node(s, sum)->gone = PC__PASS_BIASES;
}

void pc__pass_biases(pc__plan *plan, const pc__backend *backend)
{
    pc__epilogues s = {.plan = plan, .backend = backend};
    if (backend->type != PC_CUDA)
        return;
    if (!pc__plan_uses_make(&s.uses, plan)) {
        pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    for (int i = 0; i < plan->count; i++)
        if (pc__node_is(&s, i, PC__OP_matmul) && is_weights(pc__node(&s, i)->call))
            visit(&s, i);
    pc__plan_uses_free(&s.uses);
}
