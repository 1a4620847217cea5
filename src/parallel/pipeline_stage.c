/* pipeline_stage.c: the passes of one microbatch through this rank's stage. */
#include "parallel/pipeline.h"

#include "tensor/tensor.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/random.h>

pc_status pc__pipeline_tell(const pc_pipeline *p, int m, const char *what)
{
    char words[64];
    static const char others[] = "stage "; /* another rank's error, which the group has told */
    if (strncmp(pc_error_last()->message, others, strlen(others)) == 0)
        return pc_error_last()->status;
    snprintf(words, sizeof words, "stage %d, microbatch %d, %s: ", p->stage, m, what);
    pc__error_before(words, 0);
    return pc_error_last()->status;
}

void pc__pipeline_samples(const pc_pipeline *p, int m, int64_t *from, int64_t *to)
{
    const int64_t each = p->batch / p->options.microbatches, more = p->batch % p->options.microbatches;
    *from = m * each + PC__MIN(m, more);
    *to = *from + each + (m < more);
}

static pc_tensor *piece(const pc_pipeline *p, pc_tensor *whole, int m)
{
    int64_t from, to;
    pc__pipeline_samples(p, m, &from, &to);
    return pc_slice(whole, 0, from, to, 1);
}

static double weight(const pc_pipeline *p, int m)
{
    int64_t from, to;
    pc__pipeline_samples(p, m, &from, &to);
    return (double)(to - from) / (double)p->batch;
}

static pc_tensor *loss_of(pc_pipeline *p, int m, pc_tensor *y)
{
    const bool failed = pc_failed();
    if (p->target && (!p->target->ndim || p->target->shape[0] != p->batch))
        return pc__null(PC_ERR_SHAPE, "the target is %s, and the batch has %lld samples", PC__SHAPE_OF(p->target),
                        (long long)p->batch);
    pc_tensor *loss = p->loss(p->context, y, p->target ? piece(p, p->target, m) : NULL);
    if (!loss && (failed || !pc_failed()))
        return pc__null(PC_ERR_ARGUMENT, "the loss function returned NULL without an error");
    if (loss && (pc_tensor_count(loss) != 1 || !pc__is_float((pc_dtype)loss->dtype)))
        return pc__null(PC_ERR_SHAPE, "the loss is %s %s; it is one floating number, the mean over the samples",
                        pc_dtype_name((pc_dtype)loss->dtype), PC__SHAPE_OF(loss));
    return loss;
}

/* The batch's mean so far. */
static pc_status count_loss(pc_pipeline *p, int m, pc_tensor *loss)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        pc_tensor *part = pc_mul_scalar(pc_cast(pc_reshape(loss, PC_SHAPE_SCALAR), PC_F32), weight(p, m));
        pc_tensor *sum = p->mean ? pc_add(p->mean, part) : part;
        if (sum) {
            pc_tensor_free(p->mean);
            p->mean = pc_tensor_retain(sum);
        } else {
            status = pc_error_last()->status;
        }
    }
    return status;
}

static pc_status compute(pc_pipeline *p, int m)
{
    pc__microbatch *b = &p->microbatch[m];
    pc_tensor *out = pc_forward(p->module, p->stage ? b->in : piece(p, p->x, m));
    if (!out)
        return pc__pipeline_tell(p, m, "forward");
    if (p->stage == p->stages - 1) {
        out = loss_of(p, m, out);
        if (!out || count_loss(p, m, out) != PC_OK)
            return pc__pipeline_tell(p, m, "loss");
    }
    b->out = pc_tensor_retain(out);
    return PC_OK;
}

/* Stages draw other zeros of dropout, the first those of a training alone: ranks mostly have one seed, and stages made the same
 * draws. What a recording or an activation checkpoint notes of the generator is the stage's. */
static pc_status forward(pc_pipeline *p, int m)
{
    pc_generator drawing = pc_generator_get();
    const uint64_t seed = drawing.seed;
    drawing.seed += (uint64_t)p->stage * 0xbf58476d1ce4e5b9u;
    pc_generator_set(drawing);
    const pc_status status = compute(p, m);
    drawing = pc_generator_get();
    drawing.seed = seed;
    pc_generator_set(drawing);
    return status;
}

pc_status pc__pipeline_forward(pc_pipeline *p, int m)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = forward(p, m);
    }
    return status;
}

static pc_status differentiate(pc_pipeline *p, int m, pc_tensor *gradient)
{
    pc_tensor *out = p->microbatch[m].out;
    if (p->options.ddp)
        pc__ddp_hold(p->options.ddp, m < p->options.microbatches - 1);
    if (!pc_requires_grad(out)) /* of a stage that is frozen, the first or one that uses nothing of what it gets */
        return PC_OK;
    return gradient ? pc_backward_with(out, gradient) : pc_backward(pc_mul_scalar(out, weight(p, m)));
}

/* Of the input; what nothing depends on has one of zeros. */
static pc_status take_gradient(pc_pipeline *p, int m, pc_tensor **gradient)
{
    pc_tensor *in = p->microbatch[m].in;
    *gradient = NULL;
    if (!in)
        return PC_OK;
    *gradient =
        pc_tensor_retain(pc_grad(in) ? pc_grad(in) : pc_zeros(pc_tensor_shape(in), (pc_dtype)in->dtype, p->device));
    return *gradient ? PC_OK : pc_error_last()->status;
}

pc_status pc__pipeline_backward(pc_pipeline *p, int m, pc_tensor **gradient)
{
    const bool last = p->stage == p->stages - 1;
    pc__microbatch *b = &p->microbatch[m];
    pc_tensor *given = last ? NULL : pc__pipeline_receive_gradient(p, m);
    pc_status status = last || given ? PC_OK : pc_error_last()->status;
    PC_SCOPE {
        if (status == PC_OK) {
            status = differentiate(p, m, given);
            if (status == PC_OK)
                status = take_gradient(p, m, gradient);
            if (status != PC_OK)
                (void)pc__pipeline_tell(p, m, "backward");
        }
    }
    pc_tensor_free(given);
    pc_tensor_free(b->in);
    pc_tensor_free(b->out);
    b->in = b->out = NULL;
    return status;
}
