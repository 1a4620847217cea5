/* own.c: ops that the program has registered, by its kernels. */
#include "cpu/level/kernels.h"
#include "ops/own.h"

PC__KERNEL(own)
{
    (void)stream;
    return pc__own_run(call, pc__own_of(call->op)->cpu, NULL);
}
