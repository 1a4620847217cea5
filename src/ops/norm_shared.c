/* norm_shared.c: batch_norm of a batch whose samples others have parts of. Forward all parts' means and squares off them are
 * gathered, and joined as Chan, Golub and LeVeque (1979) do it, never as a difference of large sums; backward two sums for
 * each channel are added up. */
#include "ops/again.h"
#include "ops/norm.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/no_grad.h>

typedef struct shared {
    pc__channel_norm_attributes norm; /* of the forward pass */
    pc__norm_peers peers;
    bool stands_in; /* for no samples */
} shared;

enum { Y, X, MEAN, VARIANCE, NUMBERS, FIRST, INPUTS = 7 }; /* inputs of the record; weight and bias from FIRST on */

static _Thread_local bool stands_in;

void pc__shared_norm_stand_in(bool on)
{
    stands_in = on;
}

/* Of the channels of this part [1, 2 channels + 1]: mean, sum of squares off it; and how many numbers each has. */
static pc_tensor *own_statistics(pc_tensor *x)
{
    const int64_t c = x->shape[1], n = c ? pc_tensor_count(x) / c : 0;
    const pc_dtype dtype = pc__norm_dtype(x->dtype);
    const pc_device device = pc_tensor_device(x);
    pc_tensor *out[PC__OUT_MAX] = {NULL};
    if (!n || stands_in)
        return pc_zeros(PC_SHAPE(1, 2 * c + 1), dtype, device);
    pc__channel_norm_attributes a = {.groups = c};
    if (pc__channel_norm(PC__OP_batch_norm, x, NULL, NULL, NULL, &a, out) != PC_OK)
        return NULL;
    pc_tensor *count = pc_full(PC_SHAPE(1), (double)n, dtype, device);
    pc_tensor *parts[3] = {out[1], pc_mul_scalar(out[2], (double)n), count};
    return pc_reshape(pc_cat(parts, 3, 0), PC_SHAPE(1, 2 * c + 1));
}

/* Of all parts: mean and variance [channels], and how many numbers a channel has, [1]. */
static pc_status all_statistics(pc_tensor *x, const pc__norm_peers *peers, pc_tensor **found, pc_tensor **numbers)
{
    const int64_t c = x->shape[1], row = 2 * c + 1;
    pc_tensor *own = own_statistics(x);
    pc_tensor *all = pc_empty(PC_SHAPE(peers->count, row), pc__norm_dtype(x->dtype), pc_tensor_device(x));
    if (!own || !all)
        return pc_error_last()->status;
    PC__TRY(peers->gather(peers->context, all, own));
    pc_tensor *means = pc_slice(all, 1, 0, c, 1), *squares = pc_slice(all, 1, c, 2 * c, 1);
    pc_tensor *counts = pc_slice(all, 1, 2 * c, row, 1);
    *numbers = pc_clamp(pc_sum_dims(counts, PC_SHAPE(0), false), 1, INFINITY);
    found[0] = pc_sum_dims(pc_mul(means, pc_div(counts, *numbers)), PC_SHAPE(0), false);
    pc_tensor *apart = pc_mul(pc_square(pc_sub(means, found[0])), counts);
    found[1] = pc_div(pc_sum_dims(pc_add(squares, apart), PC_SHAPE(0), false), *numbers);
    return found[1] ? PC_OK : pc_error_last()->status;
}

/* The variance with its divisor less 1; of a single number as it is. */
static pc_status run_on(pc_tensor *const *running, pc_tensor *tracked, pc_tensor *const *found, pc_tensor *numbers,
                        double momentum)
{
    if (!running[0])
        return PC_OK;
    pc_tensor *unbiased = pc_mul(found[1], pc_div(numbers, pc_clamp(pc_add_scalar(numbers, -1), 1, INFINITY)));
    return unbiased ? pc__running_step(running, tracked, (pc_tensor *[]){found[0], unbiased}, momentum, 1)
                    : pc_error_last()->status;
}

static pc_status infer(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[Y]);
    return PC_OK;
}

/* t [channels], to go with x. */
static pc_tensor *along(pc_tensor *t, int ndim)
{
    pc_shape shape = {.ndim = ndim};
    for (int i = 0; i < ndim; i++)
        shape.dim[i] = i == 1 ? -1 : 1;
    return pc_reshape(t, shape);
}

/* w rstd (dy - sum of dy / n - xhat (sum of dy xhat) / n), of which `plain` is w rstd dy. */
static pc_tensor *centered(const pc__grad *grad, pc_tensor *plain, pc_tensor *sums, pc_tensor *weight)
{
    const shared *s = grad->attributes;
    pc_tensor *x = grad->in[X], *mean = grad->in[MEAN];
    if (s->stands_in) /* the statistics do not depend on it */
        return pc__as_dtype(plain, (pc_dtype)x->dtype);
    const int64_t c = pc_tensor_count(mean);
    pc_tensor *rstd = pc_rsqrt(pc_add_scalar(grad->in[VARIANCE], s->norm.eps));
    pc_tensor *scale = weight ? pc_mul(rstd, pc__as_dtype(weight, pc_tensor_dtype(mean))) : rstd;
    scale = pc_div(scale, grad->in[NUMBERS]);
    pc_tensor *shift = pc_mul(scale, pc_slice(sums, 0, c, 2 * c, 1));
    pc_tensor *slope = pc_mul(pc_mul(scale, rstd), pc_slice(sums, 0, 0, c, 1));
    pc_tensor *off = pc_mul(pc_sub(x, along(mean, x->ndim)), along(slope, x->ndim));
    return pc__as_dtype(pc_sub(plain, pc_add(off, along(shift, x->ndim))), (pc_dtype)x->dtype);
}

static pc_status gradient(pc__grad *grad)
{
    const shared *s = grad->attributes;
    pc__channel_norm_attributes a = s->norm;
    pc_tensor *weight = a.has_weight ? grad->in[FIRST] : NULL, *out[PC__OUT_MAX];
    pc_tensor *in[5] = {pc__lying_as(grad->out_grad[0], grad->in[X]), grad->in[X], grad->in[MEAN], grad->in[VARIANCE],
                        weight};
    a.needs[0] = grad->needs[X];
    a.needs[1] = a.needs[2] = true;
    a.to[0] = a.to[1] = (uint8_t)pc__norm_dtype(grad->in[X]->dtype);
    PC__TRY(pc__call_all(PC__OP_channel_norm_backward, in, 4 + a.has_weight, &a, sizeof a, out));
    if (a.has_weight && grad->needs[FIRST])
        PC__TRY(pc__set_grad(grad, FIRST, out[1]));
    if (a.has_bias && grad->needs[FIRST + a.has_weight])
        PC__TRY(pc__set_grad(grad, FIRST + a.has_weight, out[2]));
    pc_tensor *sums = pc_cat((pc_tensor *[]){out[1], out[2]}, 2, 0);
    if (!sums)
        return pc_error_last()->status;
    PC__TRY(s->peers.sum(s->peers.context, sums)); /* x may need none here, and need one elsewhere */
    return grad->needs[X] ? pc__set_grad(grad, X, centered(grad, out[0], sums, weight)) : PC_OK;
}

static const pc__op shared_op = {"shared_norm",
                                 PC__OP_view,
                                 1,
                                 PC__VIEW | PC__SAVE_IN1 | PC__SAVE_IN2 | PC__SAVE_IN3 | PC__SAVE_IN4 |
                                     PC__SAVE_IN0 << FIRST,
                                 infer,
                                 gradient};

/* y as what x, weight and bias have a gradient by. */
static pc_tensor *record(pc_tensor **in, pc_tensor *weight, pc_tensor *bias, const shared *s)
{
    int n = FIRST;
    if (weight)
        in[n++] = weight;
    if (bias)
        in[n++] = bias;
    pc_call call = {.op = &shared_op, .in = in, .n_in = n, .n_out = 1, .attributes = s, .attribute_bytes = sizeof *s};
    return pc_dispatch(&call) == PC_OK ? call.out[0] : NULL;
}

pc_tensor *pc__shared_norm(pc_tensor *x, pc_tensor *const *running, pc_tensor *tracked, pc_tensor *weight,
                           pc_tensor *bias, double momentum, double eps, const pc__norm_peers *peers)
{
    shared s = {.norm = {.groups = x->shape[1], .eps = eps}, .peers = *peers, .stands_in = stands_in};
    pc_tensor *in[INPUTS] = {NULL}, *out[PC__OUT_MAX] = {NULL}, *result = NULL;
    PC_SCOPE {
        in[X] = pc__channels_arranged(x);
        pc_status status = in[X] ? PC_OK : pc_error_last()->status;
        PC_NO_GRAD {
            status = status == PC_OK ? all_statistics(in[X], peers, &in[MEAN], &in[NUMBERS]) : status;
            if (status == PC_OK && !pc__again_number()) /* it has counted this batch */
                status = run_on(running, tracked, &in[MEAN], in[NUMBERS], momentum);
            if (status == PC_OK)
                status = pc__channel_norm(PC__OP_stored_norm, in[X], &in[MEAN], weight, bias, &s.norm, out);
        }
        in[Y] = out[0];
        result = status == PC_OK ? pc_keep(record(in, weight, bias, &s)) : NULL;
    }
    return result;
}
