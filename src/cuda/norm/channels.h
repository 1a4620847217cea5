/* channels.h: batch_norm, group_norm and their gradients in three passes: sums of parts, coefficients, and x by these. */
#ifndef PC__CUDA_NORM_CHANNELS_H
#define PC__CUDA_NORM_CHANNELS_H

#include "cuda/norm/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__NORM_COEFFICIENTS = 4, PC__NORM_THREADS = 256 /* of a block */ };

/* What a block holds in registers: so many numbers, and more where so few blocks leave multiprocessors idle anyway. */
enum { PC__NORM_FEW = 2048, PC__NORM_FEW_LONG = 8192, PC__NORM_FEW_BLOCKS = 128 };

/* x is [batches][channels][inner], or [batches][inner][channels] where it is `last`. Numbers beside x are float64 where x is,
 * else float32. */
typedef struct pc__cuda_channels {
    int dtype, early;
    bool last, stored, backward;
    bool whole; /* channels last: tensors lie on 16 bytes, and `fold` rows are whole accesses */
    int fold;   /* channels last: rows beside each other that threads take for one */
    int64_t batches, channels, inner, groups, spread;
    int64_t own;            /* batches that have statistics of their own: 1 or all */
    int64_t pieces, length; /* of inner, which is cut by sizes alone; of whole folds but the last one */
    bool relu;              /* behind y; backward: behind dy, too */
    double least, most;     /* between which it has a gradient (pc__norm_least, pc__norm_most) */
    double bound;           /* the largest number that it leaves */
    int lanes;              /* channels last: threads of a block that are side by side, a power of 2 or a fold's packs;
                             * planes: threads of a piece */
    double eps;
    const void *x, *dy, *rest; /* rest: NULL, or what is added to y */
    void *out;                 /* y or dx; NULL: not wanted */
    pc__cuda_vector weight, bias;
    pc__cuda_vector mean, variance;    /* stored ones; backward all */
    void *found_mean, *found_variance; /* [own][groups] */
    pc__cuda_vector_gradient dweight, dbias;
    void *parts; /* [batches][pieces][channels][2]: mean and squares off it; sums of dy and dy (x - mean) */
    void
        *coefficients; /* [own][PC__NORM_COEFFICIENTS][channels]: y = (x - c0) c1 + c2; dx = dy c1 - c2 - (x - c0) c3 */
    cudaStream_t queue;
} pc__cuda_channels;

/* Folds rows where that makes accesses whole, and cuts x, which is not empty. */
void pc__cuda_channel_cut(pc__cuda_channels *c);

void pc__cuda_channel_sums(const pc__cuda_channels *c);
void pc__cuda_channel_coefficients(const pc__cuda_channels *c);
/* The same of channels that have statistics and parameters of their own each, found over all batches. */
void pc__cuda_channel_join(const pc__cuda_channels *c);
void pc__cuda_channel_apply(const pc__cuda_channels *c);

/* All three in one, where what has statistics of its own is at most PC__NORM_FEW numbers, or PC__NORM_FEW_LONG, of batches below 2^31 each;
 * backward, where gradients of parameters are wanted, with a parameter for each of the statistics. */
void pc__cuda_channel_few(const pc__cuda_channels *c);
void pc__cuda_channel_few_backward(const pc__cuda_channels *c);

/* The same for batch_norm of planes, a block for each channel, which reads its numbers twice. */
void pc__cuda_channel_long(const pc__cuda_channels *c);

/* The same for batch_norm, channels last, of up to PC__NORM_COLUMN_ROWS_BOTH rows, and forward but in float64 of up to
 * PC__NORM_COLUMN_ROWS, as one tensor fits into registers: what has so many columns that a block for each would read sectors of
 * memory for a number of each. */
enum {
    PC__NORM_COLUMN_TOGETHER = 16, /* rows of a block at once */
    PC__NORM_COLUMN_ROWS_BOTH = 32 * PC__NORM_COLUMN_TOGETHER,
    PC__NORM_COLUMN_ROWS = 2 * PC__NORM_COLUMN_ROWS_BOTH,
    PC__NORM_COLUMN_NUMBERS = 1 << 16
};
void pc__cuda_channel_columns(const pc__cuda_channels *c);

/* Whether planes of numbers of so many bytes are whole accesses of 16. */
static inline bool pc__cuda_channel_planes_are_whole(const pc__cuda_channels *c, size_t bytes)
{
    const uintptr_t at = (uintptr_t)c->x | (uintptr_t)c->dy | (uintptr_t)c->rest | (uintptr_t)c->out;
    return at % 16 == 0 && (size_t)c->inner * bytes % 16 == 0;
}

/* Numbers that a thread has at once in channels-last memory. */
static inline int pc__cuda_channel_width(const pc__cuda_channels *c)
{
    return !c->whole ? 1 : c->dtype == PC__CUDA_F64 ? 2 : c->dtype == PC__CUDA_F32 ? 4 : 8;
}

/* Running statistics [channels]: old + share (new - old). */
typedef struct pc__cuda_running {
    int early, is_f64;
    int64_t channels;
    double share, unbiased;
    const void *found[2]; /* mean, variance */
    void *running[2];
    int64_t stride[2];
    long long *tracked; /* or NULL */
    cudaStream_t queue;
} pc__cuda_running;

void pc__cuda_running_step(const pc__cuda_running *r);

#ifdef __cplusplus
}
#endif
#endif
