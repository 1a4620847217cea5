/* pipeline_schedule.c: which pass and which message follows which. A schedule is how many forward passes a stage is
 * ahead of its backward passes, no more.
 *
 * That no two ranks wait for each other holds for every row in which a stage is ahead as far as the next one, or by
 * one more: then both ends of a link have its messages in one order, and all links' messages have one, too
 * (paracord/pipeline.h). */
#include "parallel/pipeline.h"

static int ahead_1f1b(const pc_pipeline *p)
{
    return PC__MIN(p->stages - p->stage - 1, p->options.microbatches);
}

static int ahead_gpipe(const pc_pipeline *p)
{
    return p->options.microbatches;
}

static int (*const ahead[PC_PIPELINE_SCHEDULES])(const pc_pipeline *p) = {
    [PC_PIPELINE_1F1B] = ahead_1f1b, [PC_PIPELINE_GPIPE] = ahead_gpipe};

bool pc__pipeline_has_schedule(pc_pipeline_schedule schedule)
{
    return (unsigned)schedule < PC_PIPELINE_SCHEDULES;
}

/* The input of the next forward pass comes before the gradient goes: the stage before sends in that order. */
static pc_status there_and_back(pc_pipeline *p, int forward, int backward)
{
    pc_tensor *gradient = NULL;
    const bool more = forward < p->options.microbatches;
    pc_status status = more ? pc__pipeline_forward(p, forward) : PC_OK;
    if (status == PC_OK && more)
        status = pc__pipeline_send_output(p, forward);
    if (status == PC_OK)
        status = pc__pipeline_backward(p, backward, &gradient);
    if (status == PC_OK && forward + 1 < p->options.microbatches)
        status = pc__pipeline_receive_input(p, forward + 1);
    if (status == PC_OK)
        status = pc__pipeline_send_gradient(p, gradient);
    pc_tensor_free(gradient);
    return status;
}

pc_status pc__pipeline_run(pc_pipeline *p)
{
    const int all = p->options.microbatches, first = ahead[p->options.schedule](p);
    for (int m = 0; m < first; m++) {
        PC__TRY(pc__pipeline_receive_input(p, m));
        PC__TRY(pc__pipeline_forward(p, m));
        PC__TRY(pc__pipeline_send_output(p, m));
    }
    if (first < all)
        PC__TRY(pc__pipeline_receive_input(p, first));
    for (int k = 0; k < all; k++)
        PC__TRY(there_and_back(p, first + k, k));
    return PC_OK;
}
