/* pipeline.h: the inside of pipelines. */
#ifndef PC__PIPELINE_H
#define PC__PIPELINE_H

#include "dist/group.h"

#include <paracord/nn.h>
#include <paracord/pipeline.h>

/* What an activation is, as ranks tell each other. */
typedef struct pc__form {
    int64_t batch; /* samples of all microbatches */
    int64_t dtype, ndim, shape[PC_MAX_DIMS];
} pc__form;

/* A microbatch in this stage. in and out are there from its forward to its backward pass, a reference each. */
typedef struct pc__microbatch {
    pc_tensor *in, *out;   /* out: in the last stage its loss */
    pc__form takes, makes; /* what comes from the stage before, and goes to the next one */
} pc__microbatch;

/* A parameter that other stages have, too. */
typedef struct pc__tied {
    pc_tensor *parameter; /* a reference; NULL: not here */
    pc_group *group;      /* of those that have it */

    /* --- of the update under way --- */
    pc_tensor *number; /* a reference, [1]: above 0 where a copy has a gradient */
    bool given;        /* this one */
} pc__tied;

struct pc_pipeline {
    pc_module *module;
    pc_group *group;
    pc_pipeline_loss_fn loss;
    void *context;
    pc_pipeline_options options; /* microbatches is what it is */
    pc_device device;
    int stage, stages;
    bool knows_forms;
    int64_t batch; /* samples of a step, where forms are known */
    pc__microbatch *microbatch;
    pc__tied *tied;
    int tied_count, tied_room;

    /* --- of the step under way --- */
    pc_tensor *x, *target; /* borrowed */
    pc_tensor *mean;       /* the losses so far, in the last stage */
};

/* --- pipeline_link.c: from stage to stage --- */
pc_status pc__pipeline_receive_input(pc_pipeline *p, int m);
pc_status pc__pipeline_send_output(pc_pipeline *p, int m);
pc_status pc__pipeline_send_gradient(pc_pipeline *p, pc_tensor *gradient);
/* Of what microbatch m made: a new reference. NULL: an error. */
pc_tensor *pc__pipeline_receive_gradient(pc_pipeline *p, int m);

/* --- pipeline_stage.c: what a stage does --- */

/* Samples of microbatch m begin and end where. */
void pc__pipeline_samples(const pc_pipeline *p, int m, int64_t *from, int64_t *to);

pc_status pc__pipeline_forward(pc_pipeline *p, int m);

/* *gradient: of what came from the stage before, a new reference; NULL in the first stage. */
pc_status pc__pipeline_backward(pc_pipeline *p, int m, pc_tensor **gradient);

/* Put stage, microbatch and what it was about in front of the error. */
pc_status pc__pipeline_tell(const pc_pipeline *p, int m, const char *what);

/* --- pipeline_schedule.c: all passes and messages of a step --- */
bool pc__pipeline_has_schedule(pc_pipeline_schedule schedule);
pc_status pc__pipeline_run(pc_pipeline *p);

/* --- pipeline_update.c --- */
void pc__pipeline_untie(pc_pipeline *p);

/* pipeline.c: this rank has failed: the others are not to wait for it. status, the rank's own. */
pc_status pc__pipeline_end(pc_pipeline *p, pc_status status);

/* ddp.c: the group in which it reduces; and whether backward passes wait with that for a later one, whatever
 * pc_ddp_set_sync says. */
pc_group *pc__ddp_group(pc_ddp *ddp);
void pc__ddp_hold(pc_ddp *ddp, bool on);

#endif
