/* together.c: ranks that are threads, each with a GPU, queue collectives at the same time. */
#include "dist/place.h"

#include "ops/table.h"

/* Of a send and a receive only the two meet. */
static pc_status two(pc__comm *comm, const pc_call *call, pc__arrival *a)
{
    const int peer = ((const pc__collective *)call->attributes)->peer;
    const bool sends = call->op->index == PC__OP_send;
    int64_t *numbers = comm->pairs;
    a->first = sends ? comm->rank : peer;
    a->second = sends ? peer : comm->rank;
    a->number = numbers[2 * peer + sends]++;
    return pc__place_meet(comm->place, a, comm->seconds, NULL);
}

pc_status pc__place_together(pc__comm *comm, const pc_call *call)
{
    pc__arrival a = {.kind = comm->device.type,
                     .rank = comm->rank,
                     .first = -1,
                     .second = -1,
                     .name = call ? call->op->name : "a graph with collectives"};
    if (call && (call->op->index == PC__OP_send || call->op->index == PC__OP_receive))
        return two(comm, call, &a);
    a.number = ++comm->passed;
    return pc__place_pass(comm->place, &a, comm->seconds);
}
