/* step.c: a training step as one recording. Attributes of recorded calls never change, so the number of the
 * optimiser's step is counted on the device; the host's own count follows the launches. */
#include "nn/step.h"

#include "device/graph.h"
#include "device/wait.h"
#include "nn/step_leaves.h"
#include "nn/watch.h"
#include "ops/random.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/random.h>

typedef struct recording {
    pc_graph *graph; /* NULL: not yet */
    int raises;      /* optimiser's steps in it */
    bool guarded;    /* of which the device may leave some out */
    pc__watch watch; /* what its work depends on */
    pc__step_leaves leaves;
    uint64_t seed; /* of its draws */
    int64_t draws; /* so many */
    int launches;
} recording;

struct pc_step {
    pc_step_fn function;
    void *user;
    pc_optimizer *optimizer;
    pc_stream *stream; /* that recordings are made on, so that other threads may use the current one meanwhile */
    bool warm;         /* the function was called once: what its first call makes is there */
    recording turn[PC__STEP_TURNS];
    pc_tensor *base; /* int64 [1]: the generator's step where the next launch begins */
    int64_t drawn;   /* what it has when all that is queued is done; -1: nobody knows */
    int lost;        /* recordings one after another whose tensors the program let go of behind the first launch */
    char why[PC_MESSAGE_MAX];
};

pc_step *pc_step_new(pc_step_fn function, void *user, pc_optimizer *optimizer)
{
    PC__NEED_OR(NULL, function);
    PC__NEED_OR(NULL, optimizer);
    if (!optimizer->count)
        return pc__null(PC_ERR_ARGUMENT, "pc_step_new: the optimiser has no parameters");
    pc_step *s = pc__calloc(1, sizeof *s);
    if (s)
        *s = (pc_step){.function = function, .user = user, .optimizer = optimizer};
    return s;
}

static void forget(recording *r)
{
    pc_graph_free(r->graph);
    pc__watch_clear(&r->watch);
    pc__step_leaves_clear(&r->leaves);
    r->graph = NULL;
}

void pc_step_free(pc_step *step)
{
    if (!step)
        return;
    for (int i = 0; i < PC__STEP_TURNS; i++)
        forget(&step->turn[i]);
    pc_stream_free(step->stream);
    pc_tensor_free(step->base);
    pc__free(step);
}

const char *pc_step_why(const pc_step *step)
{
    PC__NEED_OR(NULL, step);
    return step->why[0] ? step->why : NULL;
}

static bool has_gradients(const pc_optimizer *o)
{
    for (int i = 0; i < o->count; i++)
        if (pc_grad(o->parameters[i]))
            return true;
    return false;
}

/* The device knows where the optimiser and the generator stand, and the rate. */
static pc_status set_numbers(pc_step *s)
{
    int64_t at = (int64_t)pc_generator_get().step;
    if (pc__optimizer_number_lost(s->base) || s->drawn != at)
        PC__TRY(pc__optimizer_number(s->optimizer, &s->base, (double)at, PC_I64));
    s->drawn = at;
    PC__TRY(pc__optimizer_rate(s->optimizer));
    return pc__optimizer_counter(s->optimizer);
}

/* The function's work, with the numbers raised that change from launch to launch. */
static pc_status record_all(pc_step *s, recording *r)
{
    pc_generator before = pc_generator_get();
    pc__optimizer_record(s->optimizer);
    (void)pc__draws_record(s->base, before.step);
    pc__watch_begin(&r->watch, s->optimizer);
    pc_status status = s->function(s->user);
    const pc_status watched = pc__watch_end(&r->watch);
    uint64_t known = pc__draws_record(NULL, 0);
    pc__optimizer_record(NULL);
    PC__TRY(status);
    PC__TRY(watched);
    pc_generator after = pc_generator_get();
    if (after.seed != before.seed || after.step - before.step != known || before.step >> 52)
        return pc__fail(PC_ERR_STATE, "pc_step: the step draws random numbers other than for dropout, and a recording "
                                      "would repeat them");
    r->seed = before.seed;
    r->draws = (int64_t)known;
    return known ? pc_saxpy(s->base, (double)known, s->optimizer->one) : PC_OK;
}

/* A recording of another turn: what one launch leaves for nobody, the other may use. */
static const pc_graph *other_graph(const pc_step *s, const recording *r)
{
    for (int i = 0; i < PC__STEP_TURNS; i++)
        if (&s->turn[i] != r && s->turn[i].graph)
            return s->turn[i].graph;
    return NULL;
}

static pc_graph *record_on(pc_step *s, recording *r, pc_stream *stream)
{
    pc__step_leaves_clear(&r->leaves);
    if (pc_graph_begin(stream) != PC_OK)
        return NULL;
    pc_status status = pc__graph_take_all(stream);
    pc__graph_borrow(stream, other_graph(s, r));
    if (status == PC_OK)
        status = record_all(s, r);
    if (status == PC_OK)
        status = pc__step_leaves_note(&r->leaves, pc__graph_of(stream), s->optimizer);
    if (status == PC_OK && !r->leaves.waited)
        return pc_graph_end(stream);
    if (status == PC_OK)
        pc__step_leaves_drop_grads(&r->leaves);
    else
        pc__step_leaves_clear(&r->leaves);
    pc__graph_abandon(stream);
    return NULL;
}

/* The step's own, as urgent as the one that launches will be on. */
static pc_stream *private_stream(pc_step *s, const pc_stream *current)
{
    if (s->stream && pc_stream_priority(s->stream) == pc_stream_priority(current))
        return s->stream;
    pc_stream_free(s->stream);
    s->stream = pc_stream(current->device, .priority = current->priority);
    return s->stream;
}

/* What the function queues; NULL and the error. Nothing is drawn yet. */
static pc_graph *record(pc_step *s, recording *r, const pc_stream *current)
{
    pc_generator before = pc_generator_get();
    pc_stream *stream = private_stream(s, current);
    if (!stream)
        return NULL;
    pc_graph *graph = NULL;
    PC_WITH_STREAM(stream) {
        graph = record_on(s, r, stream);
    }
    pc_generator_set(before);
    return graph;
}

/* Called now, the function would work with other tensors than those, which are no more. Where that happens again and
 * again, recording is of no use. */
static void give_up_lost(pc_step *s, recording *r)
{
    enum { LOST_MOST = 3 };
    if (!r->graph || !pc__graph_lacks(r->graph))
        return;
    forget(r);
    s->lost = r->launches > 1 ? 0 : s->lost + 1;
    if (s->lost == LOST_MOST)
        snprintf(s->why, sizeof s->why,
                 "pc_step: the step works with new tensors each time, which no recording can hold; "
                 "pc_copy what is new into tensors that were made before");
}

/* What a function makes in its first call alone may be what no recording can hold: it is asked once more behind that. */
static void give_up(pc_step *s)
{
    const char *message = pc_error_last()->message;
    if (s->warm)
        snprintf(s->why, sizeof s->why, "%s", message[0] ? message : "the function failed without an error");
    pc_error_clear();
}

/* Failures of work that was queued before are told by waiting, so that what fails in recording is about recording. */
static pc_status make_graph(pc_step *s, recording *r)
{
    pc_optimizer *o = s->optimizer;
    pc_stream *stream = pc_stream_current(pc_tensor_device(o->parameters[0]));
    PC__TRY(set_numbers(s));
    PC__TRY(stream ? pc_stream_synchronize(stream) : PC_ERR_DEVICE);
    pc_error before = pc__error_take();
    r->graph = record(s, r, stream);
    r->launches = 0;
    r->raises = o->raises;
    r->guarded = o->guarded;
    if (!r->graph && !r->leaves.waited) /* else it can be recorded when they are gone */
        give_up(s);
    if (before.status != PC_OK)
        (void)pc__error_put(&before);
    return s->stream ? pc__stream_finish(s->stream, "pc_step_run") : PC_OK; /* nothing but places in its queue */
}

static pc_status launch(pc_step *s, recording *r)
{
    pc_optimizer *o = s->optimizer;
    PC__TRY(pc__optimizer_sound(o));
    PC__TRY(set_numbers(s));
    pc_status status = pc_graph_launch(r->graph, NULL);
    if (status != PC_OK) {
        o->counted = s->drawn = -1;
        o->rated = (double)NAN;
        return status;
    }
    o->settings.step += r->raises;
    o->counted += r->raises;
    o->guarded |= r->guarded;
    r->launches++;
    s->drawn += r->draws;
    pc__step_leaves_give(&r->leaves);
    pc_generator_set((pc_generator){r->seed, (uint64_t)s->drawn});
    return PC_OK;
}

pc_status pc_step_run(pc_step *step)
{
    PC__NEED(step);
    return pc__step_run(step, 0);
}

pc_status pc__step_run(pc_step *step, int turn)
{
    recording *r = &step->turn[turn];
    if (r->graph && !pc__watch_holds(&r->watch, step->optimizer)) {
        forget(r);
        step->warm = false; /* what it queues now it may never have done */
    }
    bool numbers = pc__watch_same_optimizer(&r->watch, step->optimizer) && r->seed == pc_generator_get().seed;
    if (r->graph && !numbers)
        forget(r);
    give_up_lost(step, r);
    const bool plain = step->why[0] || has_gradients(step->optimizer) || pc__step_leaves_wait(&r->leaves);
    if (!r->graph && !plain)
        PC__TRY(make_graph(step, r));
    if (r->graph && !plain)
        return launch(step, r);
    step->warm = true;
    return step->function(step->user);
}
