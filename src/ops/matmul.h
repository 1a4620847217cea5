/* matmul.h: attributes of products, and products whose sums are kept as they are. */
#ifndef PC__OP_MATMUL_H
#define PC__OP_MATMUL_H

#include "tensor/tensor.h"

typedef struct pc__matmul_attributes {
    bool wide;     /* the result of 16-bit factors is float32 */
    bool zeros[2]; /* behind the last row and column of that factor there are zeros, up to whole eights: plans set it */
} pc__matmul_attributes;

/* a b, of matrices that fit: products and sums of 16-bit numbers stay in the float32 that they are added up in. */
pc_tensor *pc__matmul_wide(pc_tensor *a, pc_tensor *b);
pc_tensor *pc__sum_wide(pc_tensor *a, pc_shape dims);

/* a b, which lies as `of` does, but where that would be many products for one: the gradient of a transposed view is one, too, and
 * what was transposed takes it as it comes. */
pc_tensor *pc__matmul_as(pc_tensor *a, pc_tensor *b, const pc__meta *of);

#endif
