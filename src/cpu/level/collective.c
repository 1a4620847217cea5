/* collective.c: collectives are done by their group's engine, which reads and writes the memory itself. */
#include "cpu/level/kernels.h"
#include "ops/collective.h"

#define NAME(op, in_place, peer)                                                                                       \
    PC__KERNEL(op)                                                                                                     \
    {                                                                                                                  \
        return pc__collective_run(stream, call);                                                                       \
    }
PC__COLLECTIVES(NAME)
