/* linear_backward.c: the gradients of small linear layers. A problem is a pc__cuda_linear. */
#include "cuda/loss/head.h"
#include "cuda/matmul/layer.h"
#include "cuda/matmul/linear_few.h"
#include "cuda/matmul/rows.h"
#include "cuda/pointwise/each.h"
#include "ops/linear.h"

static bool head_supports(const pc_stream *stream, const void *of)
{
    return stream->recording && !((const pc__cuda_linear *)of)->narrow;
}

static bool few_supports(const pc_stream *stream, const void *of)
{
    (void)stream;
    return pc__cuda_linear_few_suits_backward(of);
}

static bool columns_supports(const pc_stream *stream, const void *of)
{
    (void)stream;
    return !((const pc__cuda_linear *)of)->narrow && pc__cuda_linear_has_columns(of);
}

static pc_status head_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    pc__cuda_linear l = *(const pc__cuda_linear *)of;
    (void)call, (void)workspace;
    *done = pc__cuda_head_behind(stream, &l);
    return PC_OK;
}

static pc_status few_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, of, workspace);
    (void)call, (void)done;
    (void)pc__cuda_linear_few_backward(&l);
    return PC_OK;
}

static pc_status columns_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, of, workspace);
    (void)call, (void)done;
    (void)pc__cuda_linear_columns(&l, NULL);
    return PC_OK;
}

static size_t small_workspace(const void *of)
{
    return pc__cuda_linear_small_backward_scratch(of);
}

static pc_status small_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, of, workspace);
    (void)call, (void)done;
    (void)pc__cuda_linear_small_backward(&l);
    return PC_OK;
}

static bool any(const pc_stream *stream, const void *of)
{
    (void)stream, (void)of;
    return true;
}

static const pc__row rows[] = {
    {"head", "by head", head_supports, NULL, head_run},
    {"few", "by few", few_supports, NULL, few_run},
    {"columns", "by columns", columns_supports, NULL, columns_run},
    {"small", "by small", any, small_workspace, small_run},
};

pc__rows pc__linear_backward_rows = {"linear_backward", rows, PC__COUNT(rows), NULL, 0};

PC__CUDA_KERNEL(linear_backward)
{
    const pc__linear_backward_attributes *a = call->attributes;
    const pc__row *head = &rows[0], *only = pc__linear_backward_rows.only;
    if ((!only || only == head) && pc__cuda_head_backward(stream, call)) { /* of the layer that is held itself */
        pc__rows_say(stream, head->note);
        return PC_OK;
    }
    pc__cuda_linear l = pc__layer_of(stream, call->in[2], call->in[0]);
    l.activation = (int)a->activation;
    l.dy = pc__data(call->in[0]);
    l.y = pc__data(call->in[1]);
    l.weight = call->n_in > 3 ? pc__data(call->in[3]) : NULL;
    l.ready_weight = l.weight && pc__cuda_ready(stream, call->in[3]);
    l.dx = l.weight ? pc__data(call->out[0]) : NULL;
    l.dweight = pc__data(call->out[1]);
    l.db = pc__data(call->out[2]);
    l.narrow = call->out[1]->dtype != PC_F32;
    return pc__rows_run(&pc__linear_backward_rows, stream, call, &l);
}
