/* softmax.h: softmax and its kin over a dimension of dense tensors. */
#ifndef PC__CUDA_SOFTMAX_H
#define PC__CUDA_SOFTMAX_H

#include <stdbool.h>

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_softmax_op { PC__SOFTMAX, PC__LOG_SOFTMAX, PC__SOFTMAX_BACKWARD, PC__LOG_SOFTMAX_BACKWARD };

enum { PC__COLUMNS_THREADS = 256, PC__COLUMNS_AT_ONCE = 4 /* rows of a thread under way */ };

/* Along the middle of [outer][n][inner]; a and b as below. A block has `lanes` columns, a power of 2; `blocks` have all of
 * them, and each `parts` pieces of so many rows. */
typedef struct pc__cuda_softmax_columns {
    int dtype, early; /* shared/dependent_launch.cuh */
    bool few;         /* PC__SOFTMAX_FEW elements or less: what counts is how long the slowest thread takes */
    int64_t outer, n, inner;
    int lanes;
    int64_t blocks, parts, piece; /* these as lanes: of pc__cuda_softmax_down */
    const void *a, *b;
    void *out;
    void *between; /* with several parts: [blocks][lanes][parts][2], float32 or float64 */
    cudaStream_t queue;
} pc__cuda_softmax_columns;

enum { PC__HELD_MOST = 8 /* elements of a thread */, PC__SLAB_MOST = 128, PC__SLAB_BYTES = 8192 };

/* n up to what threads of a block hold together; false, and nothing is launched, where it is more. */
bool pc__cuda_softmax_held(const pc__cuda_softmax_columns *columns, enum pc__cuda_softmax_op op);

/* n up to PC__SLAB_MOST, [n][inner] up to PC__SLAB_BYTES. */
void pc__cuda_softmax_slabs(const pc__cuda_softmax_columns *columns, enum pc__cuda_softmax_op op);

void pc__cuda_softmax_down(const pc__cuda_softmax_columns *columns, enum pc__cuda_softmax_op op);

/* Along the last dimension: out = op(a, b), where a is x going forward, and the gradient of y going backward, with b = y.
 * Long rows that are few are cut, each piece a block's: then there are `parts` > 1 of them in a row, whose maxima and sums
 * lie in `between`. The cut depends on sizes alone, so that every GPU adds in the same order. */
typedef struct pc__cuda_softmax_rows {
    int dtype, early;
    int64_t count, n;
    const void *a, *b; /* forward: b is a */
    void *out;
    bool whole; /* every row lies on 16 bytes */
    bool few;   /* so few elements that what counts is how long the slowest thread takes */
    bool alike; /* those of a, b and out begin at the same place between two boundaries of 16 bytes */
    int64_t parts, piece;
    void *between; /* [count][parts][2], float32 or float64 */
    cudaStream_t queue;
} pc__cuda_softmax_rows;

enum { PC__SOFTMAX_FEW = 65536 };

/* Up to 8192 elements; false, and nothing is launched, where the rows are longer. */
bool pc__cuda_softmax_short(const pc__cuda_softmax_rows *rows, enum pc__cuda_softmax_op op);

/* Any length and place. */
void pc__cuda_softmax_long(const pc__cuda_softmax_rows *rows, enum pc__cuda_softmax_op op);

#ifdef __cplusplus
}
#endif
#endif
