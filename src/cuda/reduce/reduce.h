/* reduce.h: launchers of sums, maxima and minima over [outer, reduced, inner], and how they are cut. */
#ifndef PC__CUDA_REDUCE_H
#define PC__CUDA_REDUCE_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_reduce_layout {
    PC__REDUCE_ROWS,     /* inner is 1: `lanes` threads of a block for each piece of a row */
    PC__REDUCE_ANYWHERE, /* the same where rows do not begin at whole accesses */
    PC__REDUCE_LONG,     /* sums where inner is 1: a large block for each piece of a row */
    PC__REDUCE_COLUMNS,  /* blocks of `lanes` accesses side by side, 32 at most, and as many rows as fill `threads` */
    PC__REDUCE_SINGLES   /* a thread for each result: many short columns */
};

/* The reduced dimension is cut into `parts` of `piece` each (the last may be shorter); results are [outer, parts,
 * inner]. The cut depends on sizes alone, so that every GPU adds in the same order. */
typedef struct pc__cuda_reduction {
    int64_t outer, reduced, inner;
    int64_t parts, piece;
    int layout, lanes; /* lanes: a power of 2 */
    int threads;       /* of a block that has columns or singles: a power of 2 */
    int pack;          /* elements in one access: 16 bytes of them, or 1 */
    double divisor;    /* of sums that are results; 1: none */
    int least;         /* minima instead of maxima */
    int early;         /* see shared/dependent_launch.cuh */
    cudaStream_t queue;
} pc__cuda_reduction;

/* Of a block at most, where `lanes` are more than 256, or that has columns; 512 where these are read 8 elements an access. */
enum { PC__WIDE_THREADS = 1024, PC__WIDE_PACK_THREADS = 512 };

/* Of PC__REDUCE_LONG: threads of a block, and packs of each in one turn. */
enum { PC__LONG_THREADS = 512, PC__LONG_AT_ONCE = 8 };

/* Sums of float16, bfloat16 and float32 go on in float64, whose partial sums are the input of the second pass: from and
 * to are equal, or one of them is float64 or float32; int64 only to itself. */
void pc__cuda_sum(const pc__cuda_reduction *reduction, const void *in, int from, void *out, int to);

/* The first of equals; NaN beats everything. `places` are the positions of the inputs of a second pass, NULL
 * in the first; `out` NULL: places alone. */
void pc__cuda_max(const pc__cuda_reduction *reduction, const void *in, int dtype, const int64_t *places, void *out,
                  int64_t *out_places);

/* Rows alone, without places. */
void pc__cuda_most(const pc__cuda_reduction *reduction, const void *in, int dtype, void *out);

/* Threads that one result of a short reduction has at most. */
enum { PC__SHORT_LANES = 512 };

enum { PC__SHORT_FOLDS = 2 };

/* Results of few elements each, or of an input that has gaps: `lanes` threads find one, a power of 2: of a warp, or all of
 * a block. With `across`, a power of 2, a block has so many results side by side instead, whose elements are neighbours in
 * memory.
 * Result i's first element is at the sum of its coordinates in `size` (dimension 0 outermost) times `stride`. Its others
 * are `step` apart; with `folds`, element e is at the sum of e's coordinates in `fold` (0 innermost, the last one open) times
 * `step` and `above`.
 * Results in `parts` have n elements in each of them, and what is left of `whole` in the last; a result's parts lie side by
 * side in the output, or with `across` results do, and parts one behind the other. */
typedef struct pc__cuda_short {
    unsigned results;
    int n, lanes, across; /* powers of 2: threads of a result, results side by side in a block or 0 */
    double divisor;       /* as above */
    int least;            /* as above */
    unsigned parts;
    int64_t whole;
    int64_t step;
    int folds;
    unsigned fold[PC__SHORT_FOLDS];
    int64_t above[PC__SHORT_FOLDS];
    int dims; /* 0 of one result: stride[0] is 0 */
    unsigned size[PC__VIEW_DIMS];
    int64_t stride[PC__VIEW_DIMS];
    int early;
    cudaStream_t queue;
} pc__cuda_short;

/* Sums of a type to itself, of 16-bit numbers to float32 and of float32 to 16 bits too, of pieces of floats to float64. */
void pc__cuda_short_sum(const pc__cuda_short *reduction, const void *in, int from, void *out, int to);
/* `out` may be NULL. */
void pc__cuda_short_max(const pc__cuda_short *reduction, const void *in, int dtype, void *out, int64_t *places);

#ifdef __cplusplus
}
#endif
#endif
