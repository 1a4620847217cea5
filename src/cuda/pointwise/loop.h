/* loop.h: several strided tensors walked together, as kernels see it. Plain C, read by .cu files too.
 *
 * The host (each.c) sorts and merges dimensions, cuts what 32-bit numbers cannot count, and says whether 16-byte
 * accesses are possible; loop.cuh walks. */
#ifndef PC__CUDA_LOOP_H
#define PC__CUDA_LOOP_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__CUDA_OPERANDS 4
#define PC__CUDA_SLOW 128           /* cost (ops/pointwise.def) from which on an element is a thread's work, */
#define PC__CUDA_FEW_SLOW (1 << 17) /* of up to so many */
#define PC__CUDA_PACK 8 /* elements in a pack at most: 16 bytes of the narrowest would take too many registers */

/* Operand 0 is the output. An item is one element, or a pack: as many neighbouring elements as the widest operand has
 * in 16 bytes, at most PC__CUDA_PACK. Item i has coordinates in `shape` (dimension 0 outermost); operand k's first
 * element of it is the sum of coordinate times strides[k], in elements. All sums and the count are below 2^31. */
typedef struct pc__cuda_walk {
    char *data[PC__CUDA_OPERANDS];
    uint32_t count; /* items */
    uint32_t tail;  /* single elements after the last pack, where there is one dimension */
    int ndim;       /* at least 1 */
    unsigned splat; /* bit k: operand k repeats one element all along the innermost dimension */
    unsigned askew; /* bit k: operand k's packs do not lie on their size; never the output */
    uint32_t shape[PC__VIEW_DIMS];
    uint32_t magic[PC__VIEW_DIMS]; /* of shape as a divisor (shared/divisor.h) */
    uint8_t shift[PC__VIEW_DIMS];
    uint32_t strides[PC__CUDA_OPERANDS][PC__VIEW_DIMS];
} pc__cuda_walk;

typedef struct pc__cuda_launch {
    pc__cuda_walk walk;
    int inputs; /* operands but for the output */
    int packed; /* items are packs */
    int flat;   /* packs of dense operands: item i is the i-th of each; of the walk only data, count and tail are set */
    int multiprocessors;
    int early; /* kernels may be started before the work in front of them is done: see shared/dependent_launch.cuh */
    cudaStream_t queue;
    cudaError_t *status; /* what a launch returned, unless it was success */
} pc__cuda_launch;

#ifdef __cplusplus
}
#endif
#endif
