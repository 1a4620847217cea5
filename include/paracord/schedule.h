/* schedule.h: learning rates that change from step to step.
 *
 *     pc_schedule cosine = {PC_SCHEDULE_COSINE, .lr = 6e-4, .least = 6e-5, .warmup = 200, .steps = 5000};
 *     for (int64_t step = 0; step < cosine.steps; step++) {
 *         pc_optimizer_set_lr(optimizer, pc_schedule_lr(&cosine, step));
 *         if (pc_step_run(training) != PC_OK)
 *             return pc_report(stderr);
 *     }
 *
 * A schedule is plain numbers and a rate follows from the step's number alone: there is nothing to save for a resume. Any
 * thread may ask. */
#ifndef PARACORD_SCHEDULE_H
#define PARACORD_SCHEDULE_H

#include <paracord/api.h>

PC_BEGIN

typedef enum pc_schedule_kind {
    PC_SCHEDULE_CONSTANT,
    PC_SCHEDULE_STEP,     /* times gamma after every so many steps */
    PC_SCHEDULE_LINEAR,   /* down to `least` along a line */
    PC_SCHEDULE_COSINE,   /* down to `least` along half a cosine (Loshchilov and Hutter 2017) */
    PC_SCHEDULE_ONE_CYCLE /* from lr / 25 up to lr in `warmup` steps (0: 30% of all) and down to lr / 250,000, both along
                             half a cosine (Smith and Topin 2018), as torch.optim.lr_scheduler.OneCycleLR */
} pc_schedule_kind;

typedef struct pc_schedule {
    pc_schedule_kind kind;
    double lr;      /* the highest */
    double least;   /* where it ends, and stays; 0 unless given */
    int64_t warmup; /* so many steps in front rise along a line: lr (step + 1) / (warmup + 1) */
    int64_t steps;  /* of the whole, warm-up included */
    int64_t every;  /* PC_SCHEDULE_STEP */
    double gamma;   /* PC_SCHEDULE_STEP; 0 means 0.1 */
} pc_schedule;

/* The rate of a step, the first of which is 0; from `steps` on that of the last. NaN and PC_ERR_ARGUMENT recorded for NULL, a
 * negative step, and numbers that make no schedule: lr not above 0, warmup outside [0, steps], or steps or `every` that are
 * needed and not above 0. */
PC_API double pc_schedule_lr(const pc_schedule *schedule, int64_t step);

PC_END
#endif
