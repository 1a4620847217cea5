/* region.h: several element-by-element calls as one, which passes make of plans and nobody else (plan/regions.c). Every
 * value in it is a float32 that was rounded to the dtype of the call that it stands for, so that results are those of the
 * single calls. Kernels include it too.
 *
 * Tensors are seen in the order in which the outputs lie in memory, all alike and without gaps: element i of an input is
 * its element i, or where it is broadcast (i / inner) % n. */
#ifndef PC__OP_REGION_H
#define PC__OP_REGION_H

#include <stdint.h>

#include "ops/pointwise.h"

enum {
    PC__REGION_IN = 6,
    PC__REGION_OUT = 3,
    PC__REGION_STEPS = 12,
    PC__REGION_VALUES = PC__REGION_IN + PC__REGION_STEPS
};

/* A step whose function is only its rounding. */
enum { PC__REGION_CAST = PC__POINTWISE_COUNT };

/* In the place of a value: the step's number. */
enum { PC__REGION_NUMBER = 255 };

typedef struct pc__region_step {
    uint8_t function;
    uint8_t a,
        b; /* values: inputs first, then those of steps; one may be PC__REGION_NUMBER; b as a where the function has
                   * one argument */
    uint8_t dtype; /* of the result: float32, float16 or bfloat16 */
} pc__region_step;

typedef struct pc__region_in {
    int64_t inner, n; /* n 0: element i itself */
} pc__region_in;

typedef struct pc__region {
    int work_bytes; /* of this struct, up to the numbers: other numbers are the same work (PC__BY_ATTRIBUTES) */
    int ins, steps, outs;
    int64_t count;
    pc__region_in in[PC__REGION_IN];
    pc__region_step step[PC__REGION_STEPS];
    uint8_t out[PC__REGION_OUT];    /* values of steps */
    float number[PC__REGION_STEPS]; /* of each step: in the place of a value, or its function's parameter */
} pc__region;

#endif
