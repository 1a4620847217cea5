/* small.h: small calls that travel together: one launch does a list of them, in their order. */
#ifndef PC__CUDA_SMALL_H
#define PC__CUDA_SMALL_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__SMALL_MOST 32       /* calls of a launch */
#define PC__SMALL_ELEMENTS 2048 /* of a call: what one block does in about the time of a launch */

/* Operands that are dense or a single element: `packs` of 16 bytes, and `tail` elements after them. */
typedef struct pc__cuda_small_call {
    void *out;
    const void *in[2];
    uint16_t packs, tail;
    uint8_t step[2]; /* of each input in the tail: 0 where it is a single element, and there are no packs */
    uint8_t which;   /* enum pc__cuda_function of elementwise.h, with pc__cuda_number */
    union {
        double fraction;
        uint64_t whole; /* of integers */
    } number;           /* what is filled in, saxpy's factor, or an input, or a parameter */
} pc__cuda_small_call;

typedef struct pc__cuda_small_list {
    int count;
    int dtype; /* of all operands: int32, int64, float32 or float64 */
    pc__cuda_small_call call[PC__SMALL_MOST];
} pc__cuda_small_list;

/* early: see shared/dependent_launch.cuh. */
cudaError_t pc__cuda_small_start(cudaStream_t queue, int early, const pc__cuda_small_list *list);

#ifdef __cplusplus
}
#endif
#endif
