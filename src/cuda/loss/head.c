/* head.c: what a recording holds back, and whether a call goes on from it. */
#include "cuda/loss/head.h"

#include "cuda/loss/loss.h"
#include "cuda/runtime/state.h"
#include "ops/linear.h"

static pc__cuda_head *held_by(const pc_stream *stream, enum pc__cuda_head_stage stage)
{
    pc__cuda_branch *branch = pc__cuda_state_of(stream)->face.branch;
    return branch && branch->head.stage == stage ? &branch->head : NULL;
}

bool pc__cuda_head_layer(const pc_stream *stream, const pc__cuda_linear *l)
{
    pc__cuda_head *head = held_by(stream, PC__HEAD_NONE);
    if (!head || l->n != 1 || l->m > PC__HEAD_ROWS || l->k > PC__HEAD_INPUTS || l->activation != PC_ACTIVATION_NONE ||
        !pc__cuda_head_wide(l))
        return false;
    *head = (pc__cuda_head){.stage = PC__HEAD_LAYER, .layer = *l};
    pc__cuda_state_of(stream)->face.holds = true;
    return true;
}

/* Of the held logits, with a gradient; the labels, in float32, are not the logits too, which are yet to be made. */
bool pc__cuda_head_loss(const pc_stream *stream, const pc_call *call)
{
    pc__cuda_head *head = held_by(stream, PC__HEAD_LAYER);
    const pc_tensor *y = call->in[1], *rounded = call->out[2];
    if (!head || pc__data(call->in[0]) != head->layer.y || pc_tensor_count(y) != head->layer.m || y->dtype != PC_F32 ||
        pc__data(y) == head->layer.y || !pc_tensor_count(call->out[1]))
        return false;
    head->stage = PC__HEAD_LOSS;
    head->labels = pc__data(y);
    head->loss = pc__data(call->out[0]);
    head->dlogits = pc__data(call->out[1]);
    head->rounded = pc_tensor_count(rounded) ? pc__data(rounded) : NULL;
    return true;
}

bool pc__cuda_head_score(const pc_stream *stream, const pc__cuda_score *score)
{
    pc__cuda_head *head = held_by(stream, PC__HEAD_LOSS);
    if (!head || score->logits != head->layer.y || score->n != head->layer.m || score->loss != head->loss ||
        score->labels != head->labels)
        return false;
    head->stage = PC__HEAD_SCORE;
    head->score = *score;
    return true;
}

/* The layer's own, of the loss's gradient as it is. */
bool pc__cuda_head_backward(const pc_stream *stream, const pc_call *call)
{
    pc__cuda_head *head = held_by(stream, PC__HEAD_LOSS);
    head = head ? head : held_by(stream, PC__HEAD_SCORE);
    const pc_tensor *dy = call->in[0], *x = call->in[2], *weight = call->n_in > 3 ? call->in[3] : NULL;
    const pc__linear_backward_attributes *a = call->attributes;
    if (!head || pc__data(dy) != (head->rounded ? head->rounded : head->dlogits) || pc__data(x) != head->layer.x ||
        pc_tensor_count(dy) != head->layer.m || x->shape[1] != head->layer.k || x->strides[0] != head->layer.x_row ||
        (weight && pc__data(weight) != head->layer.weight) || a->activation != PC_ACTIVATION_NONE ||
        call->out[1]->dtype != PC_F32)
        return false;
    pc__cuda_linear all = head->layer;
    all.dx = weight ? pc__data(call->out[0]) : NULL;
    all.dweight = pc__data(call->out[1]);
    all.db = pc__data(call->out[2]);
    if (!pc__cuda_head_wide(&all))
        return false;
    head->layer = all;
    head->stage = PC__HEAD_BACKWARD;
    return true;
}

/* Of the layer whose result is the head's x, dense. */
bool pc__cuda_head_behind(const pc_stream *stream, pc__cuda_linear *l)
{
    pc__cuda_head *head = held_by(stream, PC__HEAD_BACKWARD);
    if (!head || !head->layer.dx || l->dy != head->layer.dx || l->y != head->layer.x || l->m != head->layer.m ||
        l->n != head->layer.k || l->n != head->layer.x_row || l->n > PC__HEAD_BEHIND || l->dtype != head->layer.dtype ||
        !pc__cuda_linear_has_columns(l))
        return false;
    l->queue = head->layer.queue;
    l->early = head->layer.early;
    (void)pc__cuda_linear_columns(l, head);
    head->stage = PC__HEAD_NONE;
    pc__cuda_state_of(stream)->face.holds = false;
    return true;
}

cudaError_t pc__cuda_let_go(const pc_stream *stream)
{
    pc__cuda_stream *face = &pc__cuda_state_of(stream)->face;
    pc__cuda_branch *branch = face->branch;
    face->holds = false;
    if (!branch)
        return cudaSuccess;
    pc__cuda_head *head = &branch->head;
    if (!head->stage)
        return branch->refused;
    const pc__cuda_linear *l = &head->layer;
    if (head->stage == PC__HEAD_BACKWARD)
        (void)pc__cuda_head_launch(head);
    else
        (void)pc__cuda_linear_forward(l);
    if (head->stage == PC__HEAD_LOSS || head->stage == PC__HEAD_SCORE) {
        const pc__view x = {.dtype = l->dtype, .count = l->m, .data = l->y},
                       y = {.dtype = PC__CUDA_F32, .count = l->m, .data = (void *)(uintptr_t)head->labels};
        pc__cuda_pair_loss(l->queue, l->early, PC__LOSS_BCE, &x, &y, head->loss, head->dlogits, head->rounded, NULL);
    }
    if (head->stage == PC__HEAD_SCORE)
        pc__cuda_score_add(&head->score, l->queue, l->early);
    head->stage = PC__HEAD_NONE;
    const cudaError_t status = cudaPeekAtLastError();
    branch->refused = branch->refused == cudaSuccess ? status : branch->refused;
    return branch->refused;
}
