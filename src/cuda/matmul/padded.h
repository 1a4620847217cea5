/* padded.h: products of sizes that are no whole packs of 16 bytes, as larger ones that are: operands that lie askew, or
 * have nothing but others' memory behind them, are copied, and such results cut back. */
#ifndef PC__CUDA_PADDED_H
#define PC__CUDA_PADDED_H

#include "cuda/matmul/gemm.h"
#include "cuda/matmul/pad.h"

#include <stdbool.h>

/* How a product is done. */
typedef struct pc__cuda_padded {
    pc__cuda_gemm inner; /* the product of what was copied, or lies so */
    pc__cuda_gemm rest;  /* with another one behind it for rows that would make no whole pack; m 0: none */
    pc__cuda_pad pads[PC__CUDA_PADS];
    int count;
    pc__cuda_cut cut;
    int size,
        cut_size; /* bytes of an element of the operands, of the result; cut_size 0: there is nothing to cut back */
    size_t bytes; /* of scratch memory */
} pc__cuda_padded;

/* `scratch`, on 256 bytes, may be NULL where only the sizes are asked for. False: a product of nothing, of float64 or of
 * sizes beyond 31 bits, or one whose rows all begin on 16 bytes and are not known to go on behind their ends. */
bool pc__cuda_padded_plan(const pc__cuda_gemm *g, char *scratch, pc__cuda_padded *plan);

/* Whether the copies cost less than they bring, for a product that matrix units do. */
bool pc__cuda_padded_suits(const pc__cuda_gemm *g, const pc__cuda_padded *plan, int multiprocessors);

#endif
