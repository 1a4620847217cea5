/* again.c: whether the calling thread repeats work. */
#include "ops/again.h"

#include "base/base.h"

static atomic_uint last;
static _Thread_local unsigned current;

pc__again pc__again_enter(pc_generator first)
{
    const pc__again before = {current, pc_generator_get()};
    pc_generator_set(first);
    do
        current = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    while (!current);
    return before;
}

void pc__again_leave(const pc__again *before)
{
    current = before->number;
    pc_generator_set(before->generator);
}

unsigned pc__again_number(void)
{
    return current;
}
