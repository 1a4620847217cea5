/* conv.c: the fused convolution and its gradients. */
#include "cuda/conv/c_order.h"
#include "cuda/conv/rows.h"
#include "cuda/conv/turn.h"

#include "ops/conv2d.h"
#include "ops/table.h"

static void *data_or_null(const pc_tensor *t)
{
    return pc__count(t->ndim, t->shape) ? pc__data(t) : NULL;
}

/* Both gradients by cuDNN share the way through pooling and activation, and dy in another format. `front` is their room. */
static pc_status share(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, char *front)
{
    const size_t through = pc__conv_through_scratch(&pieces[0]);
    if (through) {
        PC__TRY(pc__conv_through(stream, call, &pieces[0], front));
        pieces[1].dy = pieces[0].dy, pieces[1].s = pieces[0].s;
    }
    if (pc__conv_same_format(pieces[0].way, pieces[1].way) && pc__conv_staged_bytes(&pieces[0], pieces[0].way)) {
        PC__TRY(pc__conv_stage(stream, call, &pieces[0], pieces[0].way, front + through));
        pieces[0].staged_dy = pieces[1].staged_dy = front + through;
    }
    return PC_OK;
}

pc_status pc__conv_by_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *given, int count, bool *done)
{
    pc__conv_piece pieces[2];
    const bool shared = count == 2 && given[0].way && given[1].way;
    const size_t front =
        shared ? pc__conv_through_scratch(&given[0]) + pc__conv_staged_bytes(&given[0], given[0].way) : 0;
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        pieces[i] = given[i];
        done[i] = false;
        most = given[i].way ? PC__MAX(most, pc__conv_cudnn_scratch(&given[i], given[i].way)) : most;
    }
    char *scratch = pc__cuda_try_scratch(stream, front + most);
    if (!scratch)
        return PC_OK;
    if (shared)
        PC__TRY(share(stream, call, pieces, scratch));
    for (int i = 0; i < count; i++)
        if (pieces[i].way)
            PC__TRY(pc__conv_cudnn(stream, call, &pieces[i], pieces[i].way, scratch + front, &done[i]));
    return pc__cuda_launched(call);
}

static pc__conv_piece forward_piece(const pc_call *call, const pc__cuda_conv *s)
{
    return (pc__conv_piece){.s = *s,
                            .direction = PC__CONV_FORWARD,
                            .x = pc__data(call->in[0]),
                            .weight = pc__data(call->in[1]),
                            .bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                            .result = data_or_null(call->out[0]),
                            .places = data_or_null(call->out[1])};
}

pc_status pc__cuda_op_conv2d(pc_stream *stream, const pc_call *call)
{
    pc__cuda_conv s;
    PC__TRY(pc__conv_geometry(stream, call, &s));
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    pc__conv_piece p = forward_piece(call, &s);
    PC__TRY(pc__conv_choose(stream, call, &p));
    if (p.way && (s.weight_last || s.x_planes)) { /* which no other row may be left */
        bool done = false;
        PC__TRY(pc__conv_by_cudnn(stream, call, &p, 1, &done));
        if (done) {
            pc__rows_say(stream, pc__rows_pick(&pc__conv_rows[PC__CONV_FORWARD], stream, &p)->note);
            return PC_OK;
        }
        p.way = NULL;
    }
    if (s.x_planes && !(p.own = pc__conv_planes_row(stream, &p)))
        return pc__conv_in_channels_last(stream, call, pc__cuda_op_conv2d);
    if (s.weight_last)
        return pc__conv_in_c_order(stream, call, NULL, pc__cuda_op_conv2d);
    return pc__rows_run_by(&pc__conv_rows[PC__CONV_FORWARD], p.own, stream, call, &p);
}

/* Of the piece that takes most. */
static size_t most_workspace(const pc__conv_piece *pieces, const pc__row *const *rows, int count, bool turned)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        pc__conv_piece last = pieces[i];
        last.s.planes = turned ? 0 : last.s.planes;
        most = rows[i]->workspace ? PC__MAX(most, rows[i]->workspace(&last)) : most;
    }
    return most;
}

/* What is left to our kernels: the pieces one after the other, in the same scratch memory. Where there is no room to turn what
 * rows can read in planes, too, they do. */
static pc_status own_backward(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces,
                              const pc__row *const *rows, int count)
{
    size_t front = pc__conv_turned_bytes(pieces, rows, count), most = most_workspace(pieces, rows, count, front > 0);
    char *scratch = front ? pc__cuda_try_scratch(stream, front + most) : NULL;
    if (!scratch && front && !pc__is_half((pc_dtype)pieces[0].s.dtype))
        front = 0, most = most_workspace(pieces, rows, count, false);
    if (!scratch && front + most && !(scratch = pc__cuda_scratch(stream, front + most)))
        return PC_ERR_MEMORY;
    if (front)
        PC__TRY(pc__conv_turn(stream, call, pieces, count, scratch));
    for (int i = 0; i < count; i++) {
        bool done = true;
        PC__TRY(rows[i]->run(stream, call, &pieces[i], scratch + front, &done));
    }
    return pc__cuda_launched(call);
}

/* The gradients that are wanted, each a piece. Returns their number. */
static int pieces_of(const pc_call *call, const pc__cuda_conv *s, pc__conv_piece *pieces)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc__conv_piece all = {.s = *s,
                                .x = pc__data(call->in[0]),
                                .weight = pc__data(call->in[1]),
                                .y = pc__data(call->in[2]),
                                .argmax = data_or_null(call->in[3]),
                                .dy = pc__data(call->in[4])};
    void *const dx = a->needs[0] ? data_or_null(call->out[0]) : NULL;
    void *const dweight = a->needs[1] ? data_or_null(call->out[1]) : NULL;
    void *const dbias = a->needs[2] ? data_or_null(call->out[2]) : NULL;
    int count = 0;
    if (dweight || dbias) {
        pieces[count] = all;
        pieces[count].direction = PC__CONV_WEIGHTS;
        pieces[count].result = dweight, pieces[count++].dbias = dbias;
    }
    if (dx) {
        pieces[count] = all;
        pieces[count].direction = PC__CONV_INPUT;
        pieces[count].s.x_planes = false; /* it is not read */
        pieces[count++].result = dx;
    }
    return count;
}

/* The pieces that cuDNN has not done, by rows of ours; by[] learns which. */
static pc_status rest_backward(pc_stream *stream, const pc_call *call, const pc__conv_piece *pieces, int count,
                               const pc__row **by)
{
    pc__conv_piece rest[2];
    const pc__row *rows[2];
    int left = 0;
    for (int i = 0; i < count; i++) {
        const int direction = pieces[i].direction;
        if (by[direction])
            continue;
        rest[left] = pieces[i];
        rest[left].way = NULL;
        rows[left] = by[direction] =
            rest[left].own ? rest[left].own : pc__rows_pick(&pc__conv_rows[direction], stream, &rest[left]);
        if (pc__conv_is_detour(rows[left])) { /* it is the whole call's */
            for (int k = 0; k < count; k++)
                by[pieces[k].direction] = pc__conv_detour(pieces[k].direction);
            return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d_backward);
        }
        left++;
    }
    return left ? own_backward(stream, call, rest, rows, left) : PC_OK;
}

/* What cuDNN has not done, of weights that lie channels last. */
static pc_status rest_in_c_order(pc_stream *stream, const pc_call *call, const pc__conv_piece *pieces, int count,
                                 const bool *done)
{
    bool needs[3];
    memcpy(needs, ((const pc__conv2d_attributes *)call->attributes)->needs, sizeof needs);
    for (int i = 0; i < count; i++)
        if (done[i] && pieces[i].direction == PC__CONV_INPUT)
            needs[0] = false;
        else if (done[i])
            needs[1] = needs[2] = false;
    return pc__conv_in_c_order(stream, call, needs, pc__cuda_op_conv2d_backward);
}

pc_status pc__cuda_op_conv2d_backward(pc_stream *stream, const pc_call *call)
{
    pc__cuda_conv s;
    pc__conv_piece pieces[2];
    const pc__row *by[PC__CONV_DIRECTIONS] = {NULL};
    bool done[2] = {false, false}, any = false;
    PC__TRY(pc__conv_geometry(stream, call, &s));
    const int count = pieces_of(call, &s, pieces);
    for (int i = 0; i < count; i++) {
        PC__TRY(pc__conv_choose(stream, call, &pieces[i]));
        if (pieces[i].s.x_planes && !(pieces[i].own = pc__conv_planes_row(stream, &pieces[i])))
            return pc__conv_in_channels_last(stream, call, pc__cuda_op_conv2d_backward);
        any = any || pieces[i].way;
    }
    if (any)
        PC__TRY(pc__conv_by_cudnn(stream, call, pieces, count, done));
    for (int i = 0; i < count && s.weight_last; i++)
        if (!done[i])
            return rest_in_c_order(stream, call, pieces, count, done);
    for (int i = 0; i < count; i++)
        if (done[i])
            by[pieces[i].direction] = pc__rows_pick(&pc__conv_rows[pieces[i].direction], stream, &pieces[i]);
    PC__TRY(rest_backward(stream, call, pieces, count, by));
    pc__rows_say(stream, pc__conv_backward_note(by));
    return PC_OK;
}

pc_status pc__conv_prepare(pc_stream *stream, const pc_call *call)
{
    const bool forward = call->op->index == PC__OP_conv2d;
    pc__conv_piece pieces[2];
    pc__cuda_conv s;
    int count = 1;
    PC__TRY(pc__conv_geometry(stream, call, &s));
    if (forward)
        pieces[0] = forward_piece(call, &s);
    else
        count = pieces_of(call, &s, pieces);
    for (int i = 0; i < count; i++)
        PC__TRY(pc__conv_choose(stream, call, &pieces[i]));
    return PC_OK;
}
