/* collective.c: which ops are collectives. */
#include "ops/collective.h"

#include "ops/table.h"

bool pc__is_collective(const pc__op *op)
{
    static const bool is[PC__OP_COUNT] = {
#define NAME(op, in_place, peer) [PC__OP_##op] = true,
        PC__COLLECTIVES(NAME)
#undef NAME
    };
    return is[op->index];
}
