/* fold.h: launchers of reductions that keep a state of the numbers so far: products, truths, norms, variances, dot products. */
#ifndef PC__CUDA_FOLD_H
#define PC__CUDA_FOLD_H

#include "cuda/reduce/reduce.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__FOLD_STATE = 24 /* bytes of a state at most */, PC__FOLD_THREADS = 256 };

/* Rows (with `anywhere`), columns or singles. In several parts their states go to `between`, [outer, parts, inner], and a second
 * kernel joins them in order. */
typedef struct pc__cuda_fold {
    pc__cuda_reduction how;
    const void *in;
    int from, to; /* dtypes */
    void *out;
    const void *other;        /* dot: the other vector; parts of a product's gradient: that of the results */
    int64_t step, other_step; /* dot: how far apart elements of `in` and of `other` are */
    void *also;               /* variances: means, as double; parts of a product's gradient: those of zeros */
    void *between;
    const pc__cuda_short *gaps; /* where the elements of an input with gaps lie; NULL: it has none */
    int kind; /* norms: as pc__norm_kind; truths: whether all are asked for; variances: whether roots are */
} pc__cuda_fold;

/* float16, bfloat16, float32, float64 or int64; to itself, or from 16 bits to float32. */
void pc__cuda_fold_prod(const pc__cuda_fold *fold);

/* Any dtype, to bytes. */
void pc__cuda_fold_truth(const pc__cuda_fold *fold);

/* Floating dtypes. Their sums go on in float64, whatever they are. */
void pc__cuda_fold_norm(const pc__cuda_fold *fold);
void pc__cuda_fold_var(const pc__cuda_fold *fold);

/* dot.cu: likewise, of one row; where elements lie apart in one of the two, it is cut for packs of PC__DOT_PACK. */
enum { PC__DOT_PACK = 2 };
void pc__cuda_fold_dot(const pc__cuda_fold *fold);

/* Of each result of a product the gradient of an element that is 0, in `also`, and that of others times them, in `out`:
 * float32 or float64. */
void pc__cuda_fold_prod_parts(const pc__cuda_fold *fold);

/* dx[i] of x[outer][reduced][inner] from these. */
typedef struct pc__cuda_prod_backward {
    int64_t count, reduced, inner;
    const void *x, *of_zero, *of_other;
    void *dx;
    int dtype, early;
    cudaStream_t queue;
} pc__cuda_prod_backward;

void pc__cuda_prod_to_elements(const pc__cuda_prod_backward *backward);

#ifdef __cplusplus
}
#endif
#endif
