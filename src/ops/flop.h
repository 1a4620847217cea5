/* flop.h: how much a call computes. */
#ifndef PC__FLOP_H
#define PC__FLOP_H

#include "tensor/call.h"

/* Floating-point operations of products, convolutions and attention forward, of which a multiplication and an addition
 * are two; 0 for all else. */
double pc__call_flop(const pc_call *call);

#endif
