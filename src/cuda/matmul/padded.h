/* padded.h: products whose operands lie askew: copied to aligned memory, multiplied there, and cut back. */
#ifndef PC__CUDA_PADDED_H
#define PC__CUDA_PADDED_H

#include "cuda/matmul/gemm.h"
#include "cuda/matmul/pad.h"

#include <stdbool.h>

/* How a product is done. */
typedef struct pc__cuda_padded {
    pc__cuda_gemm inner; /* the product of what was copied */
    pc__cuda_pad pads[PC__CUDA_PADS];
    int count;
    pc__cuda_cut cut;
    int size,
        cut_size; /* bytes of an element of the operands, of the result; cut_size 0: there is nothing to cut back */
    size_t bytes; /* of scratch memory */
} pc__cuda_padded;

/* `scratch`, on 256 bytes, may be NULL where only the sizes are asked for. False: a product of nothing, of float64 or of
 * sizes beyond 31 bits, or one whose rows all begin on 16 bytes. */
bool pc__cuda_padded_plan(const pc__cuda_gemm *g, char *scratch, pc__cuda_padded *plan);

/* Whether the copies cost less than they bring, for a product that matrix units do. */
bool pc__cuda_padded_suits(const pc__cuda_gemm *g, const pc__cuda_padded *plan, int multiprocessors);

#endif
