/* gemm_half.h: what the ways of a product of 16-bit numbers share. */
#ifndef PC__GEMM_HALF_H
#define PC__GEMM_HALF_H

#include "cpu/level/compute.h"
#include "cpu/level/real.h"
#include "tensor/half.h"

typedef struct half_product {
    const pc__gemm *g;
    bool is_f16, wide, pairs;
} half_product;

/* Element i of memory of either kind: both have two bytes. */
static inline const pc_bf16 *half_at(const void *from, int64_t i)
{
    return (const pc_bf16 *)from + i;
}

/* A block of C from float32, row by row: rounded, or as it is, or added, where C is wide. */
#define give_block PC__K(give_block)
void give_block(const half_product *p, const float *from, int64_t row, int64_t rows, int64_t column, int64_t columns);

enum { FINISHED = 1024 }; /* columns of a block that is finished, at most */

/* The same of sums that bias and activation are still to follow. */
#define finish_block PC__K(finish_block)
void finish_block(const half_product *p, float *values, int64_t row, int64_t rows, int64_t column, int64_t columns);

/* gemm_pairs.c: products of bfloat16 where there is the tile of pairs.h. */
pc_status PC__K(gemm_pairs)(const half_product *p);

/* gemm_pairs_across.c: those of some rows by columns along k, where the processor has matrix registers. */
#define pairs_are_across PC__K(pairs_are_across)
bool pairs_are_across(const pc__gemm *g);
#define gemm_pairs_across PC__K(gemm_pairs_across)
pc_status gemm_pairs_across(const half_product *p);

#endif
