/* reduce_kinds.h: kinds of one reduction, for kernels too: plain C. */
#ifndef PC__OP_REDUCE_KINDS_H
#define PC__OP_REDUCE_KINDS_H

/* Which vector norm: of order 1, 2, 3, infinity, -infinity. */
typedef enum pc__norm_kind {
    PC__NORM_SUM,
    PC__NORM_ROOT,
    PC__NORM_CUBE_ROOT,
    PC__NORM_MOST,
    PC__NORM_LEAST,
    PC__NORM_KINDS
} pc__norm_kind;

#endif
