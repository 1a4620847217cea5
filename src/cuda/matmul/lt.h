/* lt.h: matrix products by cuBLASLt, which is opened when the first product comes. */
#ifndef PC__CUDA_LT_H
#define PC__CUDA_LT_H

#include "cuda/runtime/cuda.h"
#include "cuda/matmul/gemm.h"

/* The product with its bias and activation. *done says whether it was queued: it is not where the library is missing or
 * refuses the shape, which is no error. */
pc_status pc__cuda_lt_gemm(pc_stream *stream, const pc__cuda_gemm *g, bool *done);

/* c = gelu_tanh of the product with its bias, which is left in aux, in the shape of c, in 16 bits; *done as above. cuBLASLt takes
 * the product before it is rounded, and has its own approximation of tanh. */
pc_status pc__cuda_lt_gelu(pc_stream *stream, const pc__cuda_gemm *g, void *aux, bool *done);

enum { PC__CUDA_LT_ADVICES = 8 }; /* that are asked for at most: a product's advice is below */

/* Of an address, in bytes, at most `most`, a power of two. */
static inline uint32_t pc__cuda_alignment(const void *pointer, uint32_t most)
{
    const uintptr_t bit = (uintptr_t)pointer & (~(uintptr_t)pointer + 1);
    return bit == 0 || bit > most ? most : (uint32_t)bit;
}

/* 130100 for 13.1.0; 0: there is none. */
size_t pc__cuda_lt_version(void);

/* Why there is no cuBLASLt, or NULL when there is; opens it. */
const char *pc__cuda_lt_missing(void);

#endif
