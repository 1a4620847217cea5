/* precision.c: how exact the calling thread wants its products. */
#include "device/backend.h"

static _Thread_local pc_precision precision;

pc_precision pc_matmul_precision_set(pc_precision wanted)
{
    pc_precision before = precision;
    precision = wanted;
    return before;
}

pc_precision pc_matmul_precision(void)
{
    return precision;
}
