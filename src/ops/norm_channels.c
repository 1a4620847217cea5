/* norm_channels.c: normalisations of channels: batch_norm and group_norm. */
#include "ops/norm.h"

#include "ops/again.h"
#include "ops/autocast.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/no_grad.h>

static pc_status check_vector(const char *who, const char *what, const pc_tensor *x, const pc_tensor *t)
{
    if (t && (t->ndim != 1 || t->shape[0] != x->shape[1]))
        return pc__fail(PC_ERR_SHAPE, "%s: a %s of shape %s does not fit an input of shape %s ([n, channels, ...])",
                        who, what, PC__SHAPE_OF(t), PC__SHAPE_OF(x));
    return pc__norm_dtype_check(who, x, t);
}

static pc_status check(const char *who, const pc_tensor *x, const pc_tensor *weight, const pc_tensor *bias, double eps)
{
    if (x->ndim < 2)
        return pc__fail(PC_ERR_SHAPE, "%s: the input has shape %s; it must be [n, channels, ...]", who,
                        PC__SHAPE_OF(x));
    if (!(eps >= 0) || isinf(eps))
        return pc__fail(PC_ERR_ARGUMENT, "%s: epsilon is %g; it must be finite and at least 0", who, eps);
    PC__TRY(check_vector(who, "weight", x, weight));
    return check_vector(who, "bias", x, bias);
}

/* Dense in the order n, ..., channels. */
static bool lies_last(const pc_tensor *x)
{
    int64_t step = x->shape[1];
    for (int i = x->ndim - 1; i >= 0; i--) {
        if (i == 1)
            continue;
        if (x->shape[i] != 1 && x->strides[i] != step)
            return false;
        step *= x->shape[i];
    }
    return x->shape[1] == 1 || x->strides[1] == 1;
}

/* Where the order is either, channels are last for places of one number, else in planes. Small planes over many samples are
 * that many channels each, side by side, which share statistics and parameters: sums go down columns then, not along
 * a few numbers. */
static void describe(pc__channel_norm_attributes *a, const pc_tensor *x)
{
    enum { SMALL = 64, MANY = 8 };
    a->batches = x->shape[0];
    a->channels = x->shape[1];
    a->inner = pc__count(x->ndim - 2, x->shape + 2);
    a->last = a->inner == 1 || !pc__is_contiguous(x);
    a->spread = 1;
    if (a->apart)
        return;
    if (!a->last && a->inner <= SMALL && a->batches >= MANY) {
        a->last = true;
        a->spread = PC__MAX(a->inner, 1);
        a->channels *= a->spread;
        a->inner = a->inner ? 1 : 0;
    }
    if (a->last) {
        a->inner *= a->batches;
        a->batches = 1;
    }
}

pc_tensor *pc__channels_arranged(pc_tensor *x)
{
    return !x || pc__is_contiguous(x) || lies_last(x) ? x : pc_contiguous(x);
}

static pc_tensor *without_gradient(pc_tensor *t)
{
    pc__meta meta;
    pc__meta_of(&meta, t);
    return pc__tensor_new(&meta, t->storage->device);
}

pc_status pc__channel_norm(int op, pc_tensor *x, pc_tensor *const *stored, pc_tensor *weight, pc_tensor *bias,
                           pc__channel_norm_attributes *a, pc_tensor **out)
{
    pc_tensor *in[5] = {x}, *rest[4] = {NULL, NULL, weight, bias};
    int n_in = 1;
    for (int i = 0; stored && i < 2; i++)
        if (!(rest[i] = without_gradient(stored[i])))
            return pc_error_last()->status;
    for (int i = 0; i < 4; i++)
        if (rest[i])
            in[n_in++] = pc_contiguous(rest[i]);
    a->stored = stored;
    a->has_weight = weight;
    a->has_bias = bias;
    if (x)
        describe(a, x);
    return pc__call_all(op, in, n_in, a, sizeof *a, out);
}

pc_tensor *pc_fn_group_norm(pc_tensor *x, int64_t groups, pc_tensor *weight, pc_tensor *bias, double eps)
{
    PC__NEED_OR(NULL, x);
    if (check("group_norm", x, weight, bias, eps) != PC_OK)
        return NULL;
    if (groups < 1 || x->shape[1] % groups)
        return pc__null(PC_ERR_ARGUMENT, "group_norm: %lld groups of the %lld channels of shape %s are not whole",
                        (long long)groups, (long long)x->shape[1], PC__SHAPE_OF(x));
    if (pc_tensor_count(x) == groups)
        return pc__null(PC_ERR_SHAPE,
                        "group_norm: an input of shape %s has one number in each of %lld groups; it takes more",
                        PC__SHAPE_OF(x), (long long)groups);
    pc_tensor *out[PC__OUT_MAX] = {NULL}, *result = NULL;
    PC_SCOPE {
        pc__channel_norm_attributes a = {.groups = groups, .eps = eps, .apart = true};
        if (pc__channel_norm(PC__OP_group_norm, pc__channels_arranged(pc__autocast_up(x)), NULL,
                             weight ? pc__autocast_up(weight) : NULL, bias ? pc__autocast_up(bias) : NULL, &a,
                             out) == PC_OK)
            result = pc_keep(out[0]);
    }
    return result;
}

static pc_status check_running(const pc_tensor *x, const pc_tensor *mean, const pc_tensor *var, bool training,
                               bool shared, double momentum)
{
    if (!mean != !var)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fn_batch_norm: running_%s is NULL and running_%s is not; give both or none",
                        mean ? "var" : "mean", mean ? "mean" : "var");
    if (!training && !mean)
        return pc__fail(PC_ERR_ARGUMENT, "batch_norm: running mean and variance are NULL, and evaluation goes by them");
    if (!isfinite(momentum))
        return pc__fail(PC_ERR_ARGUMENT, "batch_norm: the momentum is %g; it must be finite", momentum);
    PC__TRY(check_vector("batch_norm", "running mean", x, mean));
    PC__TRY(check_vector("batch_norm", "running variance", x, var));
    if (training && !shared && x->shape[1] && pc_tensor_count(x) == x->shape[1])
        return pc__fail(PC_ERR_SHAPE,
                        "batch_norm: an input of shape %s has one number for each channel; training takes more",
                        PC__SHAPE_OF(x));
    return PC_OK;
}

pc_status pc__running_step(pc_tensor *const *running, pc_tensor *tracked, pc_tensor *const *found, double share,
                           double unbiased)
{
    const pc__running_step_attributes a = {share, unbiased};
    pc_call call = {.op = &pc__ops[PC__OP_running_step],
                    .in = (pc_tensor *[]){found[0], found[1]},
                    .n_in = 2,
                    .n_out = tracked ? 3 : 2,
                    .out = {running[0], running[1], tracked},
                    .attributes = &a,
                    .attribute_bytes = sizeof a};
    return pc_dispatch(&call);
}

/* Nothing comes of no numbers; batches are counted all the same. */
static pc_status run_on(pc_tensor *const *running, pc_tensor *tracked, pc_tensor *const *found, const pc_tensor *x,
                        double momentum)
{
    const int64_t n = x->shape[1] ? pc_tensor_count(x) / x->shape[1] : 0;
    if (!running[0] || n == 0)
        return tracked && x->shape[1] ? pc_copy(tracked, pc_add_scalar(tracked, 1)) : PC_OK;
    return pc__running_step(running, tracked, found, momentum, (double)n / (double)(n - 1));
}

pc_tensor *pc__batch_norm(pc_tensor *x, pc_tensor *running_mean, pc_tensor *running_var, pc_tensor *tracked,
                          pc_tensor *weight, pc_tensor *bias, bool training, double momentum, double eps,
                          const pc__norm_peers *peers)
{
    const bool shared = training && peers && peers->count > 1;
    pc_tensor *running[2] = {running_mean, running_var}, *out[PC__OUT_MAX] = {NULL}, *result = NULL;
    if (check("batch_norm", x, weight, bias, eps) != PC_OK ||
        check_running(x, running_mean, running_var, training, shared, momentum) != PC_OK)
        return NULL;
    if (shared)
        return pc__shared_norm(x, running, tracked, weight, bias, momentum, eps, peers);
    PC_SCOPE {
        pc__channel_norm_attributes a = {.groups = x->shape[1], .eps = eps};
        pc_status status = pc__channel_norm(training ? PC__OP_batch_norm : PC__OP_stored_norm, pc__channels_arranged(x),
                                            training ? NULL : running, weight, bias, &a, out);
        if (training && status == PC_OK && !pc__again_number()) /* it has counted this batch */
            PC_NO_GRAD {
                status = run_on(running, tracked, out + 1, x, momentum);
            }
        result = status == PC_OK ? pc_keep(out[0]) : NULL;
    }
    return result;
}

pc_tensor *pc_fn_batch_norm(pc_tensor *x, pc_tensor *running_mean, pc_tensor *running_var, pc_tensor *weight,
                            pc_tensor *bias, bool training, double momentum, double eps)
{
    PC__NEED_OR(NULL, x);
    if (momentum < 0)
        return pc__null(PC_ERR_ARGUMENT, "batch_norm: the momentum is %g; it must be at least 0", momentum);
    return pc__batch_norm(x, running_mean, running_var, NULL, weight, bias, training, momentum, eps, NULL);
}

pc_status pc__infer_channel_norm(pc_call *call, pc__meta *out)
{
    const pc__channel_norm_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    pc__meta_like(&out[0], x, (pc_dtype)x->dtype);
    for (int i = 1; i < call->n_out; i++)
        pc__meta_contiguous(&out[i], pc__norm_dtype(x->dtype), a->apart ? 2 : 1,
                            a->apart ? (const int64_t[]){a->batches, a->groups} : (const int64_t[]){a->groups});
    return PC_OK;
}

pc_status pc__infer_channel_norm_backward(pc_call *call, pc__meta *out)
{
    const pc__channel_norm_attributes *a = call->attributes;
    const pc_tensor *x = call->in[1];
    const int64_t none = 0, own = a->channels / a->spread;
    if (a->needs[0])
        pc__meta_like(&out[0], x, (pc_dtype)x->dtype);
    else
        pc__meta_contiguous(&out[0], (pc_dtype)x->dtype, 1, &none);
    for (int i = 1; i < 3; i++)
        pc__meta_contiguous(&out[i], (pc_dtype)a->to[i - 1], 1, a->needs[i] ? &own : &none);
    return PC_OK;
}

pc_status pc__grad_channel_norm(pc__grad *grad)
{
    pc__channel_norm_attributes a = *(const pc__channel_norm_attributes *)grad->attributes;
    const int first = a.stored ? 3 : 1;
    const int place[3] = {0, a.has_weight ? first : -1, a.has_bias ? first + a.has_weight : -1};
    pc_tensor *x = grad->in[0], *mean = a.stored ? grad->in[1] : grad->out[1];
    pc_tensor *in[5] = {pc__lying_as(grad->out_grad[0], x), x, mean, a.stored ? grad->in[2] : grad->out[2],
                        a.has_weight ? grad->in[first] : NULL};
    pc_tensor *out[PC__OUT_MAX];
    for (int i = 0; i < 3; i++)
        a.needs[i] = place[i] >= 0 && grad->needs[place[i]];
    for (int i = 0; i < 2; i++)
        a.to[i] = pc__norm_parameter_dtype(grad, place[1 + i]);
    PC__TRY(pc__call_all(PC__OP_channel_norm_backward, in, 4 + a.has_weight, &a, sizeof a, out));
    for (int i = 0; i < 3; i++)
        if (a.needs[i])
            PC__TRY(pc__set_grad(grad, place[i], out[i]));
    return PC_OK;
}
