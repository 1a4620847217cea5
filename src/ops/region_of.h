/* region_of.h: which calls can be steps of a region. */
#ifndef PC__OP_REGION_OF_H
#define PC__OP_REGION_OF_H

#include "ops/region.h"
#include "tensor/call.h"

/* The number of the op's function in a region, or -1. */
int pc__region_function(const pc__op *op);

/* What a region does, in words: " = mul 0.5, gelu"; nothing for other calls. */
void pc__region_add_steps(pc__text *text, const pc_call *call);

#endif
