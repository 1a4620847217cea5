/* step.c: optimiser updates: all parameters in a launch, as many of a dtype as its arguments hold. */
#include "cuda/optim/step.h"

#include "cuda/runtime/cuda.h"
#include "ops/scale.h"
#include "ops/step.h"

typedef void (*launcher)(cudaStream_t queue, const pc__cuda_step *step);

static void *data_of(const pc_call *call, pc__step_extra extra)
{
    const pc_tensor *t = pc__step_extra_of(call, extra);
    return t ? pc__data(t) : NULL;
}

static bool is_ready(const pc_stream *stream, const pc_call *call, pc__step_extra extra)
{
    const pc_tensor *t = pc__step_extra_of(call, extra);
    return !t || pc__cuda_ready(stream, t);
}

static const pc_tensor *slot(const pc_call *call, int count, int i, int k)
{
    const int end = pc__step_lists(call) - (pc__step_has_copies(call) ? count : 0);
    return (k + 1) * count <= end ? call->in[k * count + i] : NULL;
}

static void add(const pc_stream *stream, pc__cuda_step *step, int group, const pc_tensor *const of[4],
                const pc_tensor *narrow)
{
    const int at = step->count++;
    step->group[at] = (uint8_t)group;
    bool ready[4];
    void *data[4];
    for (int k = 0; k < 4; k++) {
        ready[k] = !of[k] || pc__cuda_ready(stream, of[k]);
        data[k] = of[k] ? pc__data(of[k]) : NULL;
    }
    step->of[at] = (pc__cuda_parameter){
        data[0], data[1], data[2], data[3], narrow ? pc__data(narrow) : NULL, pc__count(of[0]->ndim, of[0]->shape)};
    step->ready[at / 32] |= (uint32_t)(ready[0] && ready[2] && ready[3]) << at % 32;
    step->ready_g[at / 32] |= (uint32_t)ready[1] << at % 32;
    if (narrow)
        step->copies = narrow->dtype;
}

static pc_status start(pc_stream *stream, const pc_call *call, pc__cuda_step *step, launcher launch)
{
    launch(pc__cuda_queue(stream), step);
    step->count = 0;
    memset(step->ready, 0, sizeof step->ready);
    memset(step->ready_g, 0, sizeof step->ready_g);
    return pc__cuda_launched(call);
}

/* The last launch raises the counter. */
static pc_status over_all(pc_stream *stream, const pc_call *call, pc__cuda_step *step, launcher launch)
{
    const int count = step->a->count;
    for (int i = 0; i < count; i++) {
        const pc_tensor *const of[] = {call->in[i], slot(call, count, i, 1), slot(call, count, i, 2),
                                       slot(call, count, i, 3)};
        if (pc__count(of[0]->ndim, of[0]->shape) == 0)
            continue;
        if (step->count == PC__STEP_MOST || (step->count > 0 && of[0]->dtype != step->dtype))
            PC__TRY(start(stream, call, step, launch));
        step->dtype = of[0]->dtype;
        add(stream, step, pc__step_group(step->a, i), of, pc__step_copy(call, i));
    }
    step->readers = step->counter ? pc__cuda_counters(stream) : NULL;
    return step->count > 0 || step->counter ? start(stream, call, step, launch) : PC_OK;
}

static pc_status update(pc_stream *stream, const pc_call *call, launcher launch)
{
    const pc__step_attributes *a = call->attributes;
    const float *scaler = data_of(call, PC__STEP_SCALER);
    const double *clip = data_of(call, PC__STEP_CLIP);
    pc__cuda_step step = {.dtype = call->in[0]->dtype,
                          .early = pc__cuda_early(stream),
                          .number = a->step,
                          .counter = data_of(call, PC__STEP_COUNTER),
                          .rate = data_of(call, PC__STEP_RATE),
                          .ready_numbers =
                              is_ready(stream, call, PC__STEP_COUNTER) && is_ready(stream, call, PC__STEP_RATE),
                          .guard = scaler ? scaler + PC__SCALER_FOUND : NULL,
                          .factor = clip ? clip + 1 : NULL,
                          .a = a};
    return over_all(stream, call, &step, launch);
}

pc_status pc__cuda_op_sgd_step(pc_stream *stream, const pc_call *call)
{
    return update(stream, call, pc__cuda_sgd);
}

pc_status pc__cuda_op_adam_step(pc_stream *stream, const pc_call *call)
{
    return update(stream, call, pc__cuda_adam);
}

pc_status pc__cuda_op_rmsprop_step(pc_stream *stream, const pc_call *call)
{
    return update(stream, call, pc__cuda_rmsprop);
}

pc_status pc__cuda_op_lion_step(pc_stream *stream, const pc_call *call)
{
    return update(stream, call, pc__cuda_lion);
}
