/* number.h: a number in the place of an input, for ops that take one there (PC__TAKES_NUMBER): their calls with one input
 * have it in their attributes. So have all calls of ops with a parameter (PC__HAS_PARAMETER). */
#ifndef PC__OP_NUMBER_H
#define PC__OP_NUMBER_H

#include "tensor/call.h"
#include "tensor/half.h"

typedef struct pc__number {
    double value;  /* as the op's arithmetic has it: rounded to the input's dtype, of 16 bits to float32; wrapped */
    int64_t first; /* 1: it stands before the input; 0 of a parameter; 8 bytes, so that attributes have no gaps */
} pc__number;

static inline const pc__number *pc__number_of(const pc_call *call)
{
    return call->op->flags & PC__TAKES_NUMBER && call->n_in == 1 ? call->attributes : NULL;
}

static inline const pc__number *pc__parameter_of(const pc_call *call)
{
    return call->op->flags & PC__HAS_PARAMETER ? call->attributes : NULL;
}

/* The nearest that a 16-bit dtype has; of others the number itself. */
static inline double pc__number_in(double number, pc_dtype dtype)
{
    const float f = (float)number;
    if (!pc__is_half(dtype))
        return number;
    return (double)(dtype == PC_F16 ? pc__f16_float(pc__f16_of(f)) : pc__bf16_float(pc__bf16_of(f)));
}

/* False for a number between those of a 16-bit dtype: only float32 has it. */
static inline bool pc__number_fits(double number, pc_dtype dtype)
{
    return !pc__is_half(dtype) || pc__number_in(number, dtype) == number;
}

/* op(a, number), or op(number, a). NULL flows. */
pc_tensor *pc__with_number(int op, pc_tensor *a, double number, bool first);

/* op(a, b, parameter), of an op with a parameter, of floating tensors in their common dtype: the parameter is one of its
 * arithmetic. NULL flows. */
pc_tensor *pc__with_parameter(int op, pc_tensor *a, pc_tensor *b, double parameter);

#endif
