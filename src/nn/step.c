/* step.c: a training step as one recording. Attributes of recorded calls never change, so the number of the
 * optimiser's step is counted on the device; the host's own count follows the launches. */
#include "nn/optimizer.h"

#include "device/graph.h"

#include <paracord/autograd.h>
#include <paracord/random.h>
#include <paracord/step.h>

struct pc_step {
    pc_step_fn function;
    void *user;
    pc_optimizer *optimizer;
    bool warm; /* the function was called once: what the first use of anything makes is there */
    pc_graph *graph;
    int raises; /* optimiser's steps in it */
    double lr;  /* of it */
    char why[PC_MESSAGE_MAX];
};

pc_step *pc_step_new(pc_step_fn function, void *user, pc_optimizer *optimizer)
{
    if (!function || !optimizer)
        return pc_failed() ? NULL : pc__null(PC_ERR_ARGUMENT, "pc_step_new: the function or the optimiser is NULL");
    if (!optimizer->count)
        return pc__null(PC_ERR_ARGUMENT, "pc_step_new: the optimiser has no parameters");
    pc_step *s = pc__calloc(1, sizeof *s);
    if (s)
        *s = (pc_step){.function = function, .user = user, .optimizer = optimizer};
    return s;
}

void pc_step_free(pc_step *step)
{
    if (!step)
        return;
    pc_graph_free(step->graph);
    pc__free(step);
}

const char *pc_step_why(const pc_step *step)
{
    return step && step->why[0] ? step->why : NULL;
}

static bool has_gradients(const pc_optimizer *o)
{
    for (int i = 0; i < o->count; i++)
        if (pc_grad(o->parameters[i]))
            return true;
    return false;
}

/* What the function queues on the stream; NULL and the error. */
static pc_graph *record(pc_step *s, pc_stream *stream)
{
    pc_optimizer *o = s->optimizer;
    pc_generator before = pc_generator_get();
    if (pc_graph_begin(stream) != PC_OK)
        return NULL;
    o->recording = true;
    o->raises = 0;
    pc_status status = s->function(s->user);
    o->recording = false;
    pc_generator after = pc_generator_get();
    if (status == PC_OK && (before.seed != after.seed || before.step != after.step))
        status = pc__fail(PC_ERR_STATE, "pc_step: the step draws random numbers (dropout, pc_rand), and a recording "
                                        "would repeat them");
    pc_graph *graph = pc_graph_end(stream);
    if (status == PC_OK && graph)
        return graph;
    pc_graph_free(graph);
    pc_generator_set(before);
    for (int i = 0; i < o->count; i++)
        pc_zero_grad(o->parameters[i]); /* there were none, and these will never be computed */
    return NULL;
}

static void give_up(pc_step *s)
{
    const char *message = pc_error_last()->message;
    snprintf(s->why, sizeof s->why, "%s", message[0] ? message : "the function failed without an error");
    pc_error_clear();
}

/* Failures of work that was queued before are told by waiting, so that what fails in recording is about recording. */
static pc_status make_graph(pc_step *s)
{
    pc_optimizer *o = s->optimizer;
    pc_stream *stream = pc_stream_current(pc_tensor_device(o->parameters[0]));
    PC__TRY(stream ? pc_stream_synchronize(stream) : PC_ERR_DEVICE);
    pc_error before = pc__error_take();
    s->graph = pc__optimizer_counter(o) == PC_OK ? record(s, stream) : NULL;
    s->raises = o->raises;
    s->lr = o->settings.lr;
    if (!s->graph)
        give_up(s);
    if (before.status != PC_OK)
        (void)pc__error_put(&before);
    return PC_OK;
}

static pc_status launch(pc_step *s)
{
    pc_optimizer *o = s->optimizer;
    PC__TRY(pc__optimizer_counter(o));
    pc_status status = pc_graph_launch(s->graph, NULL);
    if (status != PC_OK) {
        o->counted = -1;
        return status;
    }
    o->settings.step += s->raises;
    o->counted += s->raises;
    for (int i = 0; i < o->count; i++)
        atomic_fetch_add_explicit(&o->parameters[i]->storage->version, 1, memory_order_relaxed);
    return PC_OK;
}

pc_status pc_step_run(pc_step *step)
{
    if (!step)
        return pc_failed() ? pc_error_last()->status : pc__fail(PC_ERR_ARGUMENT, "pc_step_run: the step is NULL");
    if (!step->warm || step->why[0] || has_gradients(step->optimizer)) {
        step->warm = true;
        return step->function(step->user);
    }
    if (step->graph && step->lr != step->optimizer->settings.lr) {
        pc_graph_free(step->graph);
        step->graph = NULL;
    }
    if (!step->graph)
        PC__TRY(make_graph(step));
    return step->graph ? launch(step) : step->function(step->user);
}
