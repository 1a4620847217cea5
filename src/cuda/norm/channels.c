/* channels.c: batch_norm and group_norm. */
#include "cuda/norm/channels.h"

#include "cuda/pointwise/each.h"
#include "ops/norm.h"

#include <limits.h>

static pc__cuda_vector vector_of(const pc_tensor *t, int dtype)
{
    return (pc__cuda_vector){pc__cuda_view(t).data, (int)t->dtype != dtype};
}

static pc__cuda_channels channels_of(pc_stream *stream, const pc_call *call, const pc_tensor *x, const pc_tensor *dy,
                                     const pc_tensor *out)
{
    const pc__channel_norm_attributes *a = call->attributes;
    pc__cuda_channels c = {.dtype = x->dtype,
                           .early = pc__cuda_early(stream),
                           .last = a->last,
                           .stored = a->stored,
                           .backward = dy,
                           .batches = a->batches,
                           .channels = a->channels,
                           .inner = a->inner,
                           .groups = a->groups,
                           .spread = a->spread,
                           .own = a->apart ? a->batches : 1,
                           .eps = a->eps,
                           .relu = a->relu,
                           .least = pc__norm_least(x->dtype),
                           .most = pc__norm_most(x->dtype, a->most),
                           .bound = a->most,
                           .x = pc__cuda_view(x).data,
                           .dy = dy ? pc__cuda_view(dy).data : NULL,
                           .out = out ? pc__cuda_view(out).data : NULL,
                           .queue = pc__cuda_queue(stream)};
    if (a->rest)
        c.rest = pc__cuda_view(call->in[call->n_in - 1]).data;
    if (a->channels && a->inner && a->batches)
        pc__cuda_channel_cut(&c);
    return c;
}

static pc_status take_room(pc_stream *stream, pc__cuda_channels *c, bool parts)
{
    const size_t number = c->dtype == PC_F64 ? sizeof(double) : sizeof(float);
    const size_t sums = parts ? (size_t)(c->batches * c->pieces * c->channels) * 2 * number : 0;
    const size_t rest = (size_t)(c->own * c->channels) * PC__NORM_COEFFICIENTS * number;
    char *room = pc__cuda_scratch(stream, pc__cuda_whole(sums) + rest);
    if (!room)
        return PC_ERR_MEMORY;
    c->parts = room;
    c->coefficients = room + pc__cuda_whole(sums);
    return PC_OK;
}

/* Whether statistics are of columns of a matrix that is not small. */
static bool is_wide(const pc__cuda_channels *c)
{
    return c->last && c->own == 1 && c->batches == 1 && c->groups == c->channels && c->spread == 1 &&
           c->channels >= 32 && c->channels * c->inner > PC__NORM_COLUMN_NUMBERS;
}

/* Whether a block's share is of planes of one channel; not where 16-bit planes are read number by number, and blocks are so many
 * that nothing waits. */
static bool is_of_planes(const pc__cuda_channels *c)
{
    enum { MANY = 1024 };
    const bool singles = pc__is_half((pc_dtype)c->dtype) && c->inner % 8 != 0;
    return !c->last && c->own == 1 && c->groups == c->channels && c->spread == 1 && !(singles && c->channels > MANY);
}

/* Channels last, a block reads sectors of memory for one number each of its own. */
static bool may_be_long(const pc__cuda_channels *c)
{
    enum { SIDE_BY_SIDE = 8 };
    return c->dtype != PC_F64 &&
           (is_of_planes(c) || (c->own * c->groups <= PC__NORM_FEW_BLOCKS && (!c->last || c->groups <= SIDE_BY_SIDE)));
}

static bool is_few(const pc__cuda_channels *c)
{
    const int64_t channels = c->channels / c->groups, own = c->own * c->groups;
    const bool each = c->own == 1 && channels == c->spread;
    const int64_t most = may_be_long(c) ? PC__NORM_FEW_LONG : PC__NORM_FEW;
    return c->batches / c->own * channels * c->inner <= most && own <= INT_MAX && c->channels * c->inner <= INT_MAX &&
           !is_wide(c) && (each || (!c->dweight.at && !c->dbias.at));
}

/* Channels with so little each that waiting for other kernels is much of what three would take: the more of them, the more each
 * may have. Few leave multiprocessors idle, and a block for each takes no longer where its accesses are whole. */
static bool is_long(const pc__cuda_channels *c)
{
    enum { FEW = 32, LITTLE = 24576, SOME = 49152, MANY = 160, MOST = 1 << 17 };
    const int64_t numbers = c->batches * c->inner;
    const bool whole = pc__cuda_channel_planes_are_whole(c, pc_dtype_size((pc_dtype)c->dtype));
    const int64_t most = c->channels >= MANY ? MOST : c->channels >= FEW ? SOME : whole ? LITTLE : 0;
    return is_of_planes(c) && numbers <= most && c->channels * c->inner <= INT_MAX;
}

/* In one launch, where one will do. */
static bool at_once(const pc__cuda_channels *c)
{
    const int64_t rows = c->backward || c->dtype == PC_F64 ? PC__NORM_COLUMN_ROWS_BOTH : PC__NORM_COLUMN_ROWS;
    if (is_few(c))
        c->backward ? pc__cuda_channel_few_backward(c) : pc__cuda_channel_few(c);
    else if (is_long(c))
        pc__cuda_channel_long(c);
    else if (is_wide(c) && c->inner <= rows && c->channels <= INT_MAX)
        pc__cuda_channel_columns(c);
    else
        return false;
    return true;
}

static void find_coefficients(const pc__cuda_channels *c)
{
    if (!c->stored && c->own == 1 && c->groups == c->channels && c->spread == 1)
        pc__cuda_channel_join(c);
    else
        pc__cuda_channel_coefficients(c);
}

static pc_status forward(pc_stream *stream, const pc_call *call)
{
    const pc__channel_norm_attributes *a = call->attributes;
    const int first = a->stored ? 3 : 1;
    pc__cuda_channels c = channels_of(stream, call, call->in[0], NULL, call->out[0]);
    if (pc__cuda_view(call->in[0]).count == 0)
        return PC_OK;
    if (a->has_weight)
        c.weight = vector_of(call->in[first], c.dtype);
    if (a->has_bias)
        c.bias = vector_of(call->in[first + a->has_weight], c.dtype);
    if (a->stored) {
        c.mean = vector_of(call->in[1], c.dtype);
        c.variance = vector_of(call->in[2], c.dtype);
    } else {
        c.found_mean = pc__cuda_view(call->out[1]).data;
        c.found_variance = pc__cuda_view(call->out[2]).data;
    }
    if (!a->stored && at_once(&c))
        return pc__cuda_launched(call);
    PC__TRY(take_room(stream, &c, !a->stored));
    if (!a->stored)
        pc__cuda_channel_sums(&c);
    find_coefficients(&c);
    pc__cuda_channel_apply(&c);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(batch_norm)
{
    return forward(stream, call);
}

PC__CUDA_KERNEL(group_norm)
{
    return forward(stream, call);
}

PC__CUDA_KERNEL(stored_norm)
{
    return forward(stream, call);
}

PC__CUDA_KERNEL(channel_norm_backward)
{
    const pc__channel_norm_attributes *a = call->attributes;
    pc__cuda_channels c = channels_of(stream, call, call->in[1], call->in[0], a->needs[0] ? call->out[0] : NULL);
    c.dweight = pc__cuda_gradient_of(call, 1, a->needs);
    c.dbias = pc__cuda_gradient_of(call, 2, a->needs);
    if (pc__cuda_view(call->in[1]).count == 0) { /* sums of no parts */
        c.out = NULL;
        c.batches = 0;
        pc__cuda_channel_coefficients(&c);
        return pc__cuda_launched(call);
    }
    c.mean = vector_of(call->in[2], c.dtype);
    c.variance = vector_of(call->in[3], c.dtype);
    if (a->has_weight)
        c.weight = vector_of(call->in[4], c.dtype);
    if (a->relu && a->has_bias)
        c.bias = vector_of(call->in[4 + a->has_weight], c.dtype);
    if (at_once(&c))
        return pc__cuda_launched(call);
    const bool parts = !a->stored || c.dweight.at || c.dbias.at;
    PC__TRY(take_room(stream, &c, parts));
    if (parts)
        pc__cuda_channel_sums(&c);
    find_coefficients(&c);
    if (c.out)
        pc__cuda_channel_apply(&c);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(running_step)
{
    const pc__running_step_attributes *a = call->attributes;
    const pc__view mean = pc__cuda_view(call->out[0]), variance = pc__cuda_view(call->out[1]);
    pc__cuda_running r = {.early = pc__cuda_early(stream),
                          .is_f64 = mean.dtype == PC__CUDA_F64,
                          .channels = mean.count,
                          .share = a->share,
                          .unbiased = a->unbiased,
                          .found = {pc__cuda_view(call->in[0]).data, pc__cuda_view(call->in[1]).data},
                          .running = {mean.data, variance.data},
                          .stride = {mean.strides[0], variance.strides[0]},
                          .tracked = call->n_out > 2 ? pc__cuda_view(call->out[2]).data : NULL,
                          .queue = pc__cuda_queue(stream)};
    pc__cuda_running_step(&r);
    return pc__cuda_launched(call);
}
