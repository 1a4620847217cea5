/* cast_many.c: conversion of a list of tensors in one kernel, and what the tape hears of a cast that is there already. */
#include "ops/cast_many.h"

#include "ops/copy.h"
#include "ops/table.h"

pc_status pc__cast_record(pc_tensor *from, pc_tensor *to)
{
    pc__cast_attributes attributes = {to->dtype, PC__ORDER_KEEP};
    pc_call call = {.op = &pc__ops[PC__OP_cast],
                    .in = &from,
                    .n_in = 1,
                    .n_out = 1,
                    .out = {to},
                    .attributes = &attributes,
                    .attribute_bytes = sizeof attributes};
    return pc__tape_wants(&call) ? pc__tape_record(&call) : PC_OK;
}

pc_status pc__cast_into(pc_tensor **into, int n)
{
    PC__TRY(pc__call_in_place(PC__OP_cast_many, into[0], into, 2 * n, NULL, 0));
    for (int i = 1; i < n; i++)
        atomic_fetch_add_explicit(&into[i]->storage->version, 1, memory_order_relaxed);
    return PC_OK;
}
