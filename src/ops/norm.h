/* norm.h: attributes of normalisations. Statistics are float64 where x is, else float32. */
#ifndef PC__OP_NORM_H
#define PC__OP_NORM_H

#include "tensor/call.h"
#include "tensor/tensor.h"

#include <math.h>

/* Rows: y = (x - mean) rstd weight + bias; x is contiguous [rows][n]. Inputs: x, then weight and bias [n] as there are
 * any. Outputs: y and, where a gradient is recorded, statistics [2][rows], mean and rstd; not `centered` [1][rows], rstd
 * alone. Backward: dy, x, statistics, weight if there is one; dx, dweight, dbias.
 *
 * Calls that plans make (plan/norms_add.c) may have more, of float32 rows: forward, behind the inputs, what is added to x,
 * of y's dtype, and behind the outputs the sum, float32; backward, behind the inputs, a float32 gradient that is added to
 * dx, and behind the outputs what comes to be in dx in dy's 16 bits. */
typedef struct pc__layer_norm_attributes {
    int64_t n;
    double eps;
    int dims;      /* trailing dimensions of x that are a row */
    bool centered; /* else the mean counts as 0 */
    bool has_weight, has_bias;
    bool needs[3]; /* backward: gradients of x, weight, bias */
    uint8_t to[2]; /* backward: dtypes of those of weight and bias: of statistics, or 16 bits beside 16 bits */
    bool adds;     /* there is something that is added */
} pc__layer_norm_attributes;

/* Lengths of rows for which backends whose normalisations write 16 bits (norms_to_half) can do that, forward and
 * backward, where every row lies on 16 bytes. */
static inline bool pc__norm_adds(int64_t n, bool backward)
{
    return n > 0 && n % 8 == 0 && n <= (backward ? 1024 : 4096);
}

/* Channels: y = (x - mean) / sqrt(variance + eps) weight + bias; x is [batches][channels][inner], or [batches][inner][channels]
 * where it is `last`. Inputs: x, then weight and bias [channels / spread] as there are any. Outputs: y, mean and variance,
 * [groups] or where batches are `apart` [batches][groups]. Stored statistics [groups] are inputs behind x, and y is the only
 * output. Backward: dy, x, mean, variance, weight if there is one; dx, dweight, dbias.
 *
 * What the pass over normalisations (plan/norm_steps.c) adds: with `rest`, a last input in the memory order of x is added to y; with
 * `relu`, max(0, .) of that is y, and at most `most` (6 or infinity). Backward knows no `rest`; with `relu` dy is the gradient behind it, and where there is a bias,
 * this is the last input: whether y is above 0 is computed again. y is rounded to its dtype before each, as by single calls. */
typedef struct pc__channel_norm_attributes {
    int64_t batches, channels, inner;
    int64_t groups; /* of channels, which share statistics */
    int64_t spread; /* neighbouring channels share a weight and a bias: the places of a small plane */
    double eps;
    bool last, apart, stored;
    bool has_weight, has_bias;
    bool needs[3];
    uint8_t to[2]; /* as of rows */
    bool rest, relu;
    double most;
} pc__channel_norm_attributes;

/* Running statistics [channels] towards those of a batch, (1 - share) old + share new, with the variance times `unbiased`.
 * In place: mean, variance and, where it is there, the int64 number of batches, which goes up by 1. Inputs: mean,
 * variance. */
typedef struct pc__running_step_attributes {
    double share;    /* momentum; below 0: 1 / the number of batches */
    double unbiased; /* n / (n - 1) */
} pc__running_step_attributes;

/* Others who have parts of the same batch: ranks, each with its part of the samples. All of them make the same calls. */
typedef struct pc__norm_peers {
    void *context;
    int count; /* this one among them; 0 and 1: there are no others */
    pc_status (*gather)(void *context, pc_tensor *to, pc_tensor *from); /* `to` becomes all `from`s in order */
    pc_status (*sum)(void *context, pc_tensor *t);                      /* t becomes the sum of all */
} pc__norm_peers;

/* pc_fn_batch_norm, which counts batches in `tracked` (int64, of one element; NULL: nothing is counted). A batch that is
 * trained with is that of all peers, who are NULL where there are none. */
pc_tensor *pc__batch_norm(pc_tensor *x, pc_tensor *running_mean, pc_tensor *running_var, pc_tensor *tracked,
                          pc_tensor *weight, pc_tensor *bias, bool training, double momentum, double eps,
                          const pc__norm_peers *peers);

/* What the op makes of x, y and statistics; all go with the scope. `a` has groups, eps and apart; the rest is set. */
pc_status pc__channel_norm(int op, pc_tensor *x, pc_tensor *const *stored, pc_tensor *weight, pc_tensor *bias,
                           pc__channel_norm_attributes *a, pc_tensor **out);

/* x in a memory order that kernels know: C order, or channels last. NULL flows. */
pc_tensor *pc__channels_arranged(pc_tensor *x);

/* norm_shared.c: pc__batch_norm where statistics are those of all peers, and kept in running mean and variance unless they are NULL. */
pc_tensor *pc__shared_norm(pc_tensor *x, pc_tensor *const *running, pc_tensor *tracked, pc_tensor *weight,
                           pc_tensor *bias, double momentum, double eps, const pc__norm_peers *peers);

/* Until it is called with false: what this thread gives to such norms stands in for no samples. It goes through them as the
 * others do, and counts for nothing. */
void pc__shared_norm_stand_in(bool on);

/* Running mean and variance, and the count of batches unless it is NULL, go on by what was found. */
pc_status pc__running_step(pc_tensor *const *running, pc_tensor *tracked, pc_tensor *const *found, double share,
                           double unbiased);

/* PC_OK where weight or bias, NULL or of a dtype that goes with x's: that one, or float32 beside 16 bits. */
pc_status pc__norm_dtype_check(const char *who, const pc_tensor *x, const pc_tensor *parameter);

/* The largest number that is 0 in 16 bits, and so no more than 0 to a ReLU behind them. */
static inline double pc__norm_least(int dtype)
{
    return dtype == PC_F16 ? 0x1p-25 : dtype == PC_BF16 ? 0x1p-134 : 0;
}

/* The smallest number that is `most` in 16 bits, which halfway to the next one below is, for 6 is even. Not a number where there
 * is no such bound. */
static inline double pc__norm_most(int dtype, double most)
{
    return isinf(most) ? NAN : most - (dtype == PC_F16 ? 0x1p-9 : dtype == PC_BF16 ? 0x1p-6 : 0);
}

/* Statistics' dtype beside x's. */
static inline pc_dtype pc__norm_dtype(int x)
{
    return x == PC_F64 ? PC_F64 : PC_F32;
}

/* That of the gradient of input `place`, a weight or a bias, below 0 none: 16 bits where it would be rounded to them anyway. */
static inline uint8_t pc__norm_parameter_dtype(const pc__grad *grad, int place)
{
    const bool half = place >= 0 && pc__is_half(grad->in_meta[place].dtype) && !grad->wider[place];
    return (uint8_t)(half ? grad->in_meta[place].dtype : pc__norm_dtype(grad->in_meta[0].dtype));
}

#endif
