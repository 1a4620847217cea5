/* backward.c: the walk over the tape, newest record first, and the gradients of leaves. */
#include "autograd/leaf_watch.h"
#include "autograd/tape.h"

#include "device/graph.h"
#include "ops/autocast.h"
#include "ops/number.h"
#include "ops/table.h"
#include "tensor/node.h"

#include <paracord/autograd.h>
#include <stdlib.h>

typedef struct walk {
    pc__node **nodes;
    int count, capacity;
    pc__leaf_sets sets;
    pc__node *one; /* the last record's, where its gradient is one and not there as a tensor */
    bool inner;    /* of a rule of another walk, which alone tells those who watch leaves */
} walk;

static atomic_uint_fast64_t last_visit;
static _Thread_local uint64_t outermost; /* the walk around those of rules */

static pc_status reach(walk *w, pc__node *node, uint64_t visit)
{
    if (!node || node->visit == visit)
        return PC_OK;
    if (node->released)
        return pc__fail(PC_ERR_STATE,
                        "backward: %s was already differentiated and its saved values are gone; compute the "
                        "loss again before a second backward",
                        node->op->name);
    node->visit = visit;
    PC__TRY(pc__grow((void **)&w->nodes, &w->capacity, w->count, sizeof *w->nodes));
    atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed); /* held until the walk ends */
    w->nodes[w->count++] = node;
    return PC_OK;
}

static int newest_first(const void *a, const void *b)
{
    uint64_t x = (*(pc__node *const *)a)->sequence, y = (*(pc__node *const *)b)->sequence;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Whoever watches the leaf waits for the rule that this walk is in: what comes later would be in no rank's sum. */
static pc_status check_awaited(const pc_tensor *leaf)
{
    const pc__leaf_watch *watch = leaf->watch;
    if (!watch || !leaf->requires_grad || (watch->set->visit == outermost && watch->awaited > 0))
        return PC_OK;
    return pc__fail(
        PC_ERR_STATE,
        "backward: the second forward pass of a checkpoint uses a parameter of shape %s, trained with other "
        "ranks or devices, that its first one did not use; let both use the same",
        PC__SHAPE_OF(leaf));
}

static pc_status meet(walk *w, pc_tensor *leaf, uint64_t visit)
{
    return w->inner ? check_awaited(leaf) : pc__leaf_awaits(&w->sets, leaf, visit);
}

/* All records that lead to `root`, newest first. */
static pc_status collect(walk *w, pc__node *root)
{
    uint64_t visit = atomic_fetch_add(&last_visit, 1) + 1;
    if (!w->inner)
        outermost = visit;
    PC__TRY(reach(w, root, visit));
    for (int i = 0; i < w->count; i++) {
        pc__node *node = w->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (!node->edges[k].leaf)
                PC__TRY(reach(w, node->edges[k].node, visit));
            else
                PC__TRY(meet(w, node->edges[k].leaf, visit));
    }
    qsort(w->nodes, (size_t)w->count, sizeof *w->nodes, newest_first);
    return PC_OK;
}

static pc_status check_versions(const pc__node *node)
{
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        const pc__saved *saved = i < node->n_in ? &node->saved_in[i] : &node->saved_out[i - node->n_in];
        if (!saved->tensor || atomic_load(&saved->tensor->storage->version) == saved->version)
            continue;
        return pc__fail(PC_ERR_STATE,
                        "backward: %s needs its %s of shape %s, which was changed in place since; change a "
                        "pc_clone of it instead",
                        node->op->name, i < node->n_in ? "input" : "output", PC__SHAPE_OF(saved->tensor));
    }
    return PC_OK;
}

/* Nobody else can see it. A recording, which holds its memory, would repeat the copy in every launch. */
static bool is_alone(const pc_tensor *g)
{
    const pc_stream *stream = pc_stream_current(g->storage->device);
    const int holders = 1 + (stream ? pc__graph_holds(stream, g->storage) : 0);
    return atomic_load(&g->references) == 1 && atomic_load(&g->storage->references) == holders;
}

/* In the memory order of the leaf, or C order where that leaves gaps. */
static bool lies_as(const pc_tensor *leaf, const pc_tensor *g)
{
    return pc__is_dense(leaf) ? pc__same_places(leaf, g) : pc__is_contiguous(g);
}

pc_status pc__leaf_adds(pc_tensor *leaf, pc_tensor *g, bool fresh)
{
    if (leaf->watch)
        leaf->watch->given = true;
    if (leaf->grad) {
        PC__TRY(pc__grad_changes(leaf));
        return pc_saxpy(leaf->grad, 1, g);
    }
    if (leaf->watch && leaf->watch->set->place)
        PC__TRY(leaf->watch->set->place(leaf->watch->set, leaf->watch));
    pc_tensor *place = leaf->watch ? leaf->watch->place : NULL;
    pc_tensor *own = !place && fresh && lies_as(leaf, g) && is_alone(g) ? g : NULL;
    if (!own) {
        pc__meta meta;
        pc__meta_like(&meta, leaf, (pc_dtype)g->dtype);
        own = place ? place : pc__tensor_new(&meta, g->storage->device);
        if (!own || pc_copy(own, g) != PC_OK)
            return pc_error_last()->status;
    }
    return pc__leaf_gets(leaf, own);
}

static pc_status arrive(pc__node *node, int output, pc_tensor *g)
{
    pc_tensor *before = node->pending[output];
    pc_tensor *now = before ? pc_add(before, g) : g;
    if (!now)
        return pc_error_last()->status;
    node->pending[output] = pc_tensor_retain(now);
    pc_tensor_free(before);
    return PC_OK;
}

/* True when the gradient of input i was made for it alone: some rules pass on the gradient that arrived, or one tensor
 * to several inputs, and what a leaf takes is added to in place later. What arrived for a record of one input is gone
 * when it has been passed on. */
static bool is_fresh(const pc__node *node, pc_tensor **in_grad, int i)
{
    for (int k = 0; k < node->n_out && node->n_in > 1; k++)
        if (node->pending[k] == in_grad[i])
            return false;
    for (int k = 0; k < node->n_in; k++)
        if (k != i && in_grad[k] == in_grad[i])
            return false;
    return true;
}

/* Casts, and what is computed with a number that its dtype of 16 bits does not have. */
static bool takes_wider(const pc__node *node)
{
    if (node->op->gradient == pc__grad_cast)
        return true;
    return node->n_in == 1 && node->op->flags & PC__TAKES_NUMBER &&
           !pc__number_fits(((const pc__number *)node->attributes)->value, (pc_dtype)node->in_meta[0].dtype);
}

/* g in the dtype of what it is the gradient of: products of 16-bit numbers give float32 ones, which some take as they
 * are. */
static pc_tensor *fitting(const pc__edge *edge, pc_tensor *g)
{
    if (edge->leaf)
        return pc__as_dtype(g, edge->leaf->dtype);
    return takes_wider(edge->node) ? g : pc__as_dtype(g, edge->node->out_meta[edge->output].dtype);
}

/* The rule of a record of one input is done with what arrived: where it passed that on as a view, a leaf may now be the
 * only holder. */
static void let_go(pc__node *node, const pc_tensor *passed)
{
    for (int k = 0; k < node->n_out && node->n_in == 1; k++)
        if (node->pending[k] != passed) {
            pc_tensor_free(node->pending[k]);
            node->pending[k] = NULL;
        }
}

/* A leaf that collected gradients when it was recorded may have been frozen since. */
static bool wants(const pc__edge *edge)
{
    return edge->node || (edge->leaf && edge->leaf->requires_grad);
}

static pc_status deliver(pc__node *node, pc_tensor **in_grad)
{
    let_go(node, in_grad[0]);
    for (int i = 0; i < node->n_in; i++) {
        const pc__edge *edge = &node->edges[i];
        if (!in_grad[i] || !wants(edge))
            continue;
        in_grad[i] = fitting(edge, in_grad[i]);
        if (!in_grad[i])
            return pc_error_last()->status;
        if (edge->leaf)
            PC__TRY(pc__leaf_adds(edge->leaf, in_grad[i], is_fresh(node, in_grad, i)));
        else
            PC__TRY(arrive(edge->node, edge->output, in_grad[i]));
    }
    return PC_OK;
}

/* What a rule makes on the way is gone before leaves ask whether a gradient is theirs alone. */
static pc_status apply_rule(const pc__node *node, pc__grad *grad)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = node->op->gradient(grad);
        for (int i = 0; i < node->n_in && status == PC_OK; i++)
            if (grad->in_grad[i] && !pc_keep(grad->in_grad[i]))
                status = pc_error_last()->status;
    }
    return status;
}

static pc_status run_rule(pc__node *node, bool *needs, bool *wider, pc_tensor **in, pc_tensor **in_grad)
{
    pc_tensor *out[PC__OUT_MAX];
    bool needed = false;
    for (int i = 0; i < node->n_in; i++) {
        needs[i] = wants(&node->edges[i]);
        needed = needed || needs[i];
        wider[i] = node->edges[i].node && takes_wider(node->edges[i].node);
        in[i] = node->saved_in[i].tensor;
        in_grad[i] = NULL;
    }
    for (int i = 0; i < node->n_out; i++)
        out[i] = node->saved_out[i].tensor;
    pc__grad grad = {.op = node->op,
                     .attributes = node->attributes,
                     .n_in = node->n_in,
                     .n_out = node->n_out,
                     .in = in,
                     .out = out,
                     .in_meta = node->in_meta,
                     .out_meta = node->out_meta,
                     .device = node->device,
                     .out_grad = node->pending,
                     .needs = needs,
                     .wider = wider,
                     .in_grad = in_grad};
    PC__TRY(check_versions(node));
    if (!needed)
        return PC_OK;
    PC__TRY(apply_rule(node, &grad));
    return deliver(node, in_grad);
}

#define FEW 8

static pc_status differentiate(pc__node *node)
{
    bool few_flags[2 * FEW];
    pc_tensor *few[2 * FEW];
    size_t n = (size_t)node->n_in;
    char *many = n > FEW ? pc__alloc(n * (2 * sizeof(bool) + 2 * sizeof(pc_tensor *))) : NULL;
    if (n > FEW && !many)
        return PC_ERR_MEMORY;
    pc_tensor **tensors = many ? (pc_tensor **)(void *)many : few;
    bool *flags = many ? (bool *)(tensors + 2 * n) : few_flags;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = run_rule(node, flags, flags + n, tensors, tensors + n);
    }
    pc__free(many);
    return status;
}

/* A first output of several may have got no gradient (only the argmax was used, say): its rule has nothing to do. Rules
 * of the program's ops are told of each output. */
static bool is_reached(const walk *w, const pc__node *node)
{
    const int outputs = node->op->index == PC__OP_own ? node->n_out : 1;
    for (int i = 0; i < outputs; i++)
        if (node->pending[i])
            return true;
    return node == w->one;
}

/* Those that got nothing have no more to wait for either. */
static pc_status tell_leaves(const pc__node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->edges[k].leaf)
            PC__TRY(pc__leaf_came(node->edges[k].leaf));
    return PC_OK;
}

static pc_status walk_all(walk *w)
{
    for (int i = 0; i < w->count; i++) {
        if (is_reached(w, w->nodes[i]))
            PC__TRY(differentiate(w->nodes[i]));
        if (!w->inner)
            PC__TRY(tell_leaves(w->nodes[i]));
        if (w->nodes[i]->shared)
            pc__node_clear(w->nodes[i]);
        else
            pc__node_release(w->nodes[i]);
    }
    return PC_OK;
}

/* Give up the walk's hold; after a failure gradients that arrived and went no further are dropped. */
static void finish(walk *w)
{
    for (int i = 0; i < w->count; i++) {
        pc__node_clear(w->nodes[i]);
        pc__node_drop(w->nodes[i]);
    }
    pc__free(w->nodes);
}

static pc_status walk_from(pc_tensor *t, pc_tensor *gradient, bool inner)
{
    walk w = {.one = gradient ? NULL : t->node, .inner = inner};
    const uint64_t around = outermost;
    pc_status status = collect(&w, t->node);
    if (status == PC_OK && gradient)
        status = arrive(t->node, t->output, gradient);
    if (status == PC_OK)
        status = walk_all(&w);
    status = pc__leaf_sets_end(&w.sets, status);
    outermost = around;
    finish(&w);
    return status;
}

/* gradient NULL: one, at a loss whose rule takes that. */
static pc_status backward(pc_tensor *t, pc_tensor *gradient, bool inner)
{
    if (!t->requires_grad)
        return pc__fail(PC_ERR_STATE,
                        "backward: nothing in the tensor's history requires a gradient; call pc_require_grad "
                        "on a leaf before computing it");
    if (gradient && (!pc__same_shape(t, gradient) || t->dtype != gradient->dtype))
        return pc__fail(PC_ERR_SHAPE, "backward: the gradient is %s %s, the tensor %s %s",
                        pc_dtype_name(gradient->dtype), PC__SHAPE_OF(gradient), pc_dtype_name(t->dtype),
                        PC__SHAPE_OF(t));
    pc_status status = PC_OK;
    pc_dtype casting = pc__autocast_pause();
    PC_NO_GRAD {
        if (t->node) {
            status = walk_from(t, gradient, inner);
            break;
        }
        status = inner ? check_awaited(t) : PC_OK;
        PC_SCOPE {
            if (status == PC_OK)
                status = pc__leaf_adds(t, gradient, false);
        }
    }
    pc__autocast_resume(casting);
    return status;
}

pc_status pc_backward_with(pc_tensor *t, pc_tensor *gradient)
{
    PC__NEED(t);
    PC__NEED(gradient);
    return backward(t, gradient, false);
}

pc_status pc__backward_inside(pc_tensor *t, pc_tensor *gradient)
{
    PC__NEED(t);
    PC__NEED(gradient);
    return backward(t, gradient, true);
}

pc_status pc_backward(pc_tensor *loss)
{
    PC__NEED(loss);
    if (pc_tensor_count(loss) != 1)
        return pc__fail(PC_ERR_SHAPE,
                        "backward: the loss has shape %s; it must be one number (pc_mean or pc_sum it, or use "
                        "pc_backward_with)",
                        PC__SHAPE_OF(loss));
    if (loss && loss->node && loss->node->op->flags & PC__TAKES_ONE)
        return backward(loss, NULL, false);
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_tensor *one = loss ? pc_ones(pc_tensor_shape(loss), loss->dtype, loss->storage->device) : NULL;
        status = pc_backward_with(loss, one);
    }
    return status;
}
