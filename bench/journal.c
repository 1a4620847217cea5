/* What the journal of collective calls costs a call (src/dist/journal.c): the host's part, where a device does the call later,
 * and both ends, where it is done at once.
 *
 *     bench.journal [CALLS] */
#include "device/backend.h"
#include "device/trace.h"
#include "dist/group.h"
#include "dist/journal.h"
#include "dist/ticks.h"
#include "ops/table.h"

#include <paracord.h>
#include <stdlib.h>

enum { ROUNDS = 201 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static pc_status nothing(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    (void)comm, (void)stream, (void)call;
    return PC_OK;
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 20000;
    static const pc__engine engine = {.name = "nothing", .on_host = true, .run = nothing};
    static const int members[] = {0, 1};
    static const char name[48] = "world";
    double ends[ROUNDS], clock[ROUNDS];
    pc_tensor *t = pc_ones(PC_SHAPE(1024), PC_F32, PC_DEVICE_CPU);
    pc_stream *stream = pc_stream_current(PC_DEVICE_CPU);
    pc__comm comm = {.engine = &engine, .size = 2, .group = name, .members = members, .log = &pc__group_log};
    const pc__collective attributes = {.comm = &comm};
    const pc_call call = {.op = &pc__ops[PC__OP_all_reduce], .n_out = 1, .out = {t}, .attributes = &attributes};
    pc__ticks_begin();
    if (!t || !stream)
        return pc_report(stderr);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = pc__now();
        for (int i = 0; i < calls; i++)
            if (pc__collective_run(stream, &call) != PC_OK)
                return pc_report(stderr);
        ends[round] = (double)(pc__now() - start) / calls;
        start = pc__now();
        for (int i = 0; i < calls; i++)
            (void)pc__ticks();
        clock[round] = (double)(pc__now() - start) / calls;
    }
    qsort(ends, ROUNDS, sizeof *ends, by_size);
    qsort(clock, ROUNDS, sizeof *clock, by_size);
    printf("a call that is done at once  %6.1f ns, of which two looks at the clock  %6.1f ns (medians of %d rounds of "
           "%d calls; least %.1f and %.1f)\n",
           ends[ROUNDS / 2], 2 * clock[ROUNDS / 2], ROUNDS, calls, ends[0], 2 * clock[0]);
    pc_tensor_free(t);
    return 0;
}
