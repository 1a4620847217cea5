/* optimizer.h: an optimiser's inside, for checkpoints and files. */
#ifndef PC__OPTIMIZER_H
#define PC__OPTIMIZER_H

#include "nn/module.h"
#include "ops/step.h"

struct pc_optimizer {
    const char *name; /* "sgd", "adam", "adamw", "rmsprop", "lion" */
    pc_status (*step)(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
    pc__step_attributes settings; /* step counts the updates made */
    double given_lr;        /* the rate that the program gave it last, whatever a schedule of pc_fit has made of it */
    int count;              /* parameters */
    int slots;              /* values kept per parameter: see ops/step.h */
    pc_tensor **parameters; /* count, one reference each */
    pc_parameter *names;    /* count, names alone */
    uint8_t *group;         /* count: of settings.group */
    pc_tensor **state;      /* slots * count: slot 0 of every parameter, then slot 1 */
    pc_tensor **work;       /* (2 + slots) * count + PC__STEP_EXTRAS, for the call */
    double clip_norm;       /* the most; 0: gradients are taken as they are */
    pc_tensor *clip;        /* float64 [2], what pc__gradient_norm leaves; NULL: not yet */
    bool is_part;           /* of the module's parameters others have other parts */
    /* count: which part of a whole one it is, others having the other parts; without a group it is whole. Copies, since
     * parameters may outlive their modules. */
    pc__cut *cut;
    bool some_apart; /* of at least one */
    bool hosted;     /* state lies in pinned host memory (pc__storage_hosted) */
    /* Where others have parts of the gradients: makes of o->clip, which has this part's norm, what all of them give; NULL:
     * there are no others. Its context is o->whole. */
    pc_status (*whole_norm)(pc_optimizer *o);
    void *whole;
    const bool
        *elsewhere; /* count: another rank counts this one's gradient, so this part's norm does not; NULL: none */
    /* count: where this rank has zeros in the place of no gradient, [1], above 0 where others had one; NULL each: it has one.
     * NULL: what watches the parameters says that of them (tensor/leaf_watch.h). */
    pc_tensor **others;
    int *lined; /* count: the parameter in each place of `work` */

    /* For recordings, made by the first: settings.step where the device counts it, int64 [1], a 1 to raise numbers by, and
     * settings.lr, float64 [1]. */
    pc_tensor *counter, *one, *rate;
    int64_t counted; /* what the counter has when all that is queued is done; -1: nobody knows */
    double rated;    /* what the rate has then; NaN: nobody knows */
    int raises;      /* steps that the recording under way has by now */
    bool guarded;    /* steps were left out or not as the device found: only its counter knows how many there were */
};

/* For the constructors: over a module's parameters, with state of zeros. */
pc_optimizer *pc__optimizer_new(pc_module *module, const char *name, int slots, const pc__step_attributes *settings);

/* Finite in float32, in which kernels compute, and above 0; or 0 as well. */
bool pc__optimizer_is_rate(double x);
bool pc__optimizer_is_decay(double x);

/* optimizer_state.c: the state, all zeros. */
pc_status pc__optimizer_make_state(pc_optimizer *o);

/* PC_OK where the state has contents; else what failed that was to write it, with the parameter and the way out. */
pc_status pc__optimizer_sound(const pc_optimizer *o);

/* PC_OK where no parameter that waits for a gradient was left behind by its module. */
pc_status pc__optimizer_in_place(const pc_optimizer *o);

/* optimizer_lacking.c: one of the first `used` that are lined up has zeros in the place of no gradient. Then the step is that of
 * copies, and `kept`, (1 + slots) * used of NULL, gets what they are of; behind the step the device chooses. In a scope. */
bool pc__optimizer_lacks(const pc_optimizer *o, int used);
pc_status pc__optimizer_line_up_copies(pc_optimizer *o, int used, pc_tensor **kept);
pc_status pc__optimizer_choose(const pc_optimizer *o, int used, pc_tensor *const *kept);

/* *t, [1] where the parameters are, and made of that dtype when it is NULL, has `value` when all that is queued is done. */
pc_status pc__optimizer_number(const pc_optimizer *o, pc_tensor **t, double value, pc_dtype dtype);

/* It was never made, or work that failed was to write it. */
bool pc__optimizer_number_lost(const pc_tensor *t);

/* Counter and rate are there and, when all that is queued is done, have settings.step and settings.lr. */
pc_status pc__optimizer_counter(pc_optimizer *o);
pc_status pc__optimizer_rate(pc_optimizer *o);

/* pc_optimizer_step; `numbers`, where not NULL, are a loss scaler's (ops/scale.h): with something found the device does
 * nothing, and does not count the step. */
pc_status pc__optimizer_step(pc_optimizer *o, pc_tensor *numbers);

/* The updates made, as the device counted them where it decided; waits for that. And settings.step set to them. */
pc_status pc__optimizer_updates(const pc_optimizer *o, int64_t *updates);
pc_status pc__optimizer_settle(pc_optimizer *o);

/* The updates made are so many, whatever the device has counted: of an optimiser whose state comes from a file. */
void pc__optimizer_adopt(pc_optimizer *o, int64_t updates);

/* PC_OK unless a step would clip a network that is cut up among ranks by the norm of this rank's part. */
pc_status pc__optimizer_clips_whole(const pc_optimizer *o);

/* Until it is called with NULL, steps of this optimiser in this thread go into a recording of nn/step.c; those of
 * others are refused there. */
void pc__optimizer_record(pc_optimizer *o);

/* PC_OK where this thread makes no such recording; else it is refused, PC_ERR_STATE: `who` sets `what`, of whatever
 * optimiser, which launches would not do again. */
pc_status pc__optimizer_allows(const char *who, const char *what);

#endif
