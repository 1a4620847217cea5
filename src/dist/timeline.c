/* timeline.c: what a timeline holds of ranks, and the rank in its file's name. */
#include "dist/timeline.h"

#include "device/trace.h"
#include "store/clock.h"
#include "store/env.h"
#include "dist/journal.h"
#include "ops/table.h"

#include <paracord/dist.h>
#include <stdlib.h>

static pc__trace_collective seen(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    const pc_tensor *t = call->n_in ? call->in[0] : call->out[0];
    return (pc__trace_collective){.name = call->op->name,
                                  .group = comm->group,
                                  .dtype = pc_dtype_name((pc_dtype)t->dtype),
                                  .number = number,
                                  .member = comm->members[comm->rank],
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .bytes = pc__count(t->ndim, t->shape) * (int64_t)pc_dtype_size((pc_dtype)t->dtype),
                                  .device = comm->device,
                                  .pair = call->op->index == PC__OP_send || call->op->index == PC__OP_receive};
}

void pc__timeline_call(const pc__comm *comm, const pc_call *call, uint64_t number, int64_t entered, int64_t finished)
{
    pc__trace_collective c = seen(comm, call, number);
    c.started = entered;
    c.ended = finished;
    pc__trace_collective_done(&c);
}

void pc__timeline_queued(const pc__comm *comm, const pc_call *call, uint64_t number, uint32_t stream, uint64_t ticket)
{
    pc__trace_collective c = seen(comm, call, number);
    c.stream = stream;
    c.ticket = ticket;
    pc__trace_collective_done(&c);
}

void pc__timeline_rank(void)
{
    const pc__clock clock = pc__clock_get();
    if (clock.known)
        pc__trace_rank_set(&(pc__trace_rank){.rank = pc_dist_rank(),
                                             .size = pc_dist_size(),
                                             .start = pc_dist_generation(),
                                             .job = clock.job,
                                             .at = clock.at,
                                             .offset = clock.offset,
                                             .error = clock.error});
}

void pc__trace_rank_name(char name[PC__TRACE_RANK_NAME])
{
    pc__world world;
    name[0] = 0;
    const bool rank = pc__world_read(getenv, &world) == PC_OK && world.size > 1;
    pc_error_clear(); /* pc_dist_init tells it */
    if (rank && world.generation)
        snprintf(name, PC__TRACE_RANK_NAME, ".start%d.rank%d", world.generation, world.rank);
    else if (rank)
        snprintf(name, PC__TRACE_RANK_NAME, ".rank%d", world.rank);
}
