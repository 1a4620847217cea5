/* norm.h: what normalisations over rows and over channels share: numbers as they are computed with. */
#ifndef PC__CPU_NORM_H
#define PC__CPU_NORM_H

#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"
#include "ops/norm.h"

enum {
    PC__NORM_LANES = 32 /* sums side by side */,
    PC__NORM_FEW = 8,
    PC__NORM_SOME = 4096, /* numbers that are added in their own type */
    PC__NORM_ROWS = 64    /* of a lot */
};

/* norm_lots.c: rows [first, first + rows), PC__NORM_ROWS at most, of a call of float or 16-bit numbers. */
typedef struct pc__norm_lot {
    const pc_call *call;
    int64_t n, first, rows;
    bool centered;
    double eps;
    const float *weight, *bias; /* [n] */
    float *room;                /* 2, or backward 4, times n PC__NORM_ROWS */
} pc__norm_lot;

/* y; `mean` and `rstd` of these rows, or NULL. */
void PC__K(norm_forward_lot)(const pc__norm_lot *l, float *mean, float *rstd);

/* dx if that is wanted, and what is added to the sums of [2][n], or NULL. */
void PC__K(norm_backward_lot)(const pc__norm_lot *l, const float *mean, const float *rstd, bool dx, double *sums);

/* norm_long.c: the same of few long rows, whose parameters may be NULL. */
enum { PC__NORM_LONG = 1 << 16, PC__NORM_LONG_ROWS = 8 };
pc_status PC__K(norm_long)(const pc_call *call, const pc_tensor *weight, const pc_tensor *bias);
pc_status PC__K(norm_long_backward)(const pc_call *call, const pc_tensor *weight);

static inline char *pc__norm_at(const pc_tensor *t, int64_t i)
{
    return (char *)pc__data(t) + (size_t)i * pc_dtype_size((pc_dtype)t->dtype);
}

/* n numbers of t: there, or of 16-bit ones in `room`. */
static inline const void *pc__norm_take(const pc_tensor *t, int64_t i, int64_t n, void *room)
{
    if (!pc__is_half((pc_dtype)t->dtype))
        return pc__norm_at(t, i);
    pc__load_halves(room, pc__norm_at(t, i), n, t->dtype == PC_F16);
    return room;
}

/* Where n numbers go: there, or into `room`, from where pc__norm_put brings them. */
static inline void *pc__norm_to(const pc_tensor *t, int64_t i, void *room)
{
    return pc__is_half((pc_dtype)t->dtype) ? room : pc__norm_at(t, i);
}

static inline void pc__norm_put(const pc_tensor *t, int64_t i, int64_t n, const void *room)
{
    if (pc__is_half((pc_dtype)t->dtype))
        pc__store_halves(pc__norm_at(t, i), room, n, t->dtype == PC_F16);
}

/* In REAL, n numbers of a contiguous vector, or so many times `fill` where there is none. */
static inline void pc__norm_vector_f32(float *to, const pc_tensor *t, int64_t n, double fill)
{
    if (t && pc__is_half((pc_dtype)t->dtype))
        pc__load_halves(to, pc__data(t), n, t->dtype == PC_F16);
    else if (t)
        memcpy(to, pc__data(t), (size_t)n * sizeof *to);
    for (int64_t i = 0; !t && i < n; i++)
        to[i] = (float)fill;
}

static inline void pc__norm_vector_f64(double *to, const pc_tensor *t, int64_t n, double fill)
{
    if (t)
        memcpy(to, pc__data(t), (size_t)n * sizeof *to);
    for (int64_t i = 0; !t && i < n; i++)
        to[i] = fill;
}

#endif
