/* scaler.c: the loss scaler. The host queues the same work whether gradients are infinite or not. */
#include "nn/scaler.h"

#include "device/graph.h"

#include <math.h>
#include <paracord/autograd.h>

static pc_status fill_numbers(pc_scaler *s, pc_device device, double initial)
{
    float numbers[PC__SCALER_NUMBERS] = {[PC__SCALER_SCALE] = (float)initial};
    PC_SCOPE {
        s->numbers = pc_tensor_retain(pc_from_data(numbers, PC_SHAPE(PC__SCALER_NUMBERS), PC_F32, device));
    }
    return s->numbers ? PC_OK : pc_error_last()->status;
}

pc_scaler *pc_scaler_new(pc_device device, pc_scaler_options options)
{
    double initial = options.initial != 0 ? options.initial : 65536;
    double growth = options.growth != 0 ? options.growth : 2, backoff = options.backoff != 0 ? options.backoff : 0.5;
    int interval = options.interval ? options.interval : 2000;
    if (!(initial >= PC__SCALE_LEAST) || !isfinite((float)initial) || !(growth > 1) || !(backoff > 0 && backoff < 1) ||
        interval < 1)
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_scaler: a scale of %g that grows by %g every %d steps and backs off by %g: it must be at "
                        "least %.1g, the factors above 1 and in (0, 1), the interval at least 1",
                        initial, growth, interval, backoff, (double)PC__SCALE_LEAST);
    pc_scaler *s = pc__calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->rules = (pc__scale_attributes){(float)growth, (float)backoff, (float)interval};
    if (fill_numbers(s, device, initial) == PC_OK)
        return s;
    pc_scaler_free(s);
    return NULL;
}

void pc_scaler_free(pc_scaler *s)
{
    if (!s)
        return;
    pc__graph_lost(s);
    pc_tensor_free(s->numbers);
    pc__free(s->unscaled);
    pc__free(s);
}

pc_tensor *pc_scaler_scale(pc_scaler *scaler, pc_tensor *loss)
{
    PC__NEED_OR(NULL, scaler);
    PC__NEED_OR(NULL, loss);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *scale = pc_reshape(pc_slice(scaler->numbers, 0, PC__SCALER_SCALE, 1, 1), PC_SHAPE_SCALAR);
        result = pc_keep(pc_mul(pc__is_half((pc_dtype)loss->dtype) ? pc_cast(loss, PC_F32) : loss, scale));
    }
    return result;
}

static bool is_unscaled(const pc_scaler *s, const pc_optimizer *o)
{
    for (int i = 0; i < s->unscaled_count; i++)
        if (s->unscaled[i] == o)
            return true;
    return false;
}

/* The list never shrinks, so it has room for what it had. */
static void end_change(void *scaler, void *before, bool put_back)
{
    pc_scaler *s = scaler;
    pc_optimizer **list = before;
    if (put_back)
        for (s->unscaled_count = 0; list[s->unscaled_count]; s->unscaled_count++)
            s->unscaled[s->unscaled_count] = list[s->unscaled_count];
    pc__free(before);
}

/* In front of a change of the list, which a recording may have to put back. */
static pc_status list_changes(pc_scaler *s)
{
    pc_graph *graph = pc__graph_here(s->numbers->storage->device);
    if (!graph)
        return PC_OK;
    pc_optimizer **list = pc__calloc((size_t)s->unscaled_count + 1, sizeof(pc_optimizer *)); /* NULL behind the last */
    if (!list)
        return PC_ERR_MEMORY;
    for (int i = 0; i < s->unscaled_count; i++)
        list[i] = s->unscaled[i];
    const pc_status status = pc__graph_changes(graph, s, list, end_change);
    if (status != PC_OK)
        pc__free(list);
    return status;
}

static pc_status unscale(pc_scaler *s, pc_optimizer *o)
{
    int n = 0;
    if (o->is_part)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "pc_scaler: the gradients are shared out over the ranks by pc_zero, and this "
                        "rank's alone do not tell whether a step is left out; train in bfloat16, "
                        "which needs no scaler");
    if (o->some_apart)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "pc_scaler: the network is cut up among ranks, and this rank's gradients alone "
                        "do not tell whether a step is left out; train in bfloat16, which needs no "
                        "scaler");
    PC__TRY(pc__grow((void **)&s->unscaled, &s->unscaled_room, s->unscaled_count, sizeof(pc_optimizer *)));
    for (int i = 0; i < o->count; i++)
        if (pc_grad(o->parameters[i]))
            o->work[n++] = pc_grad(o->parameters[i]);
    PC__TRY(list_changes(s));
    PC__TRY(n ? pc__unscale(s->numbers, o->work, n) : PC_OK);
    s->unscaled[s->unscaled_count++] = o;
    return PC_OK;
}

pc_status pc_scaler_unscale(pc_scaler *scaler, pc_optimizer *optimizer)
{
    PC__NEED(scaler);
    PC__NEED(optimizer);
    if (is_unscaled(scaler, optimizer))
        return pc__fail(PC_ERR_STATE, "pc_scaler_unscale: the gradients are divided by the scale already; once before "
                                      "each pc_scaler_update is enough");
    return unscale(scaler, optimizer);
}

pc_status pc_scaler_step(pc_scaler *scaler, pc_optimizer *optimizer)
{
    PC__NEED(scaler);
    PC__NEED(optimizer);
    if (!is_unscaled(scaler, optimizer))
        PC__TRY(unscale(scaler, optimizer));
    return pc__optimizer_step(optimizer, scaler->numbers);
}

pc_status pc_scaler_update(pc_scaler *scaler)
{
    PC__NEED(scaler);
    PC__TRY(list_changes(scaler));
    scaler->unscaled_count = 0;
    return pc__scale_update(scaler->numbers, &scaler->rules);
}

double pc_scaler_value(const pc_scaler *scaler)
{
    float numbers[PC__SCALER_NUMBERS];
    PC__NEED_OR((double)NAN, scaler);
    return pc_read(scaler->numbers, numbers, sizeof numbers) == PC_OK ? (double)numbers[PC__SCALER_SCALE] : NAN;
}
