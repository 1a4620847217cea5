/* windows.h: convolutions of float32 and of 16 bits with taps apart or channels in groups as products of matrices: windows are
 * gathered into rows, [group][place][tap][channel], and what a group has of channels is padded to whole accesses of 16 bytes. */
#ifndef PC__CUDA_CONV_WINDOWS_H
#define PC__CUDA_CONV_WINDOWS_H

#include "cuda/conv/groups.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forward and for the weights windows are of x on places of y; for the input what lies on places of x of y's. */
typedef struct pc__cuda_windows {
    pc__cuda_groups s;
    bool back;        /* windows of y */
    int deep, wide;   /* channels of a group in what is gathered, and on the other side */
    int depth, width; /* the same, padded */
    long long places; /* of the pictures at hand, of what windows are gathered for */
} pc__cuda_windows;

/* The windows of pictures from `from` on. */
void pc__cuda_windows_gather(const pc__cuda_windows *w, const void *from, void *rows);

/* [group][wide][tap][deep] of a weight, zeros in what is padded. */
void pc__cuda_windows_weight(const pc__cuda_windows *w, const void *weight, void *to);

/* Pictures, [place][group][wide], into matrices, [group][place][wide], padded; or back from there, where they are floats,
 * with a bias that may be NULL. */
void pc__cuda_windows_split(const pc__cuda_windows *w, const void *pictures, void *matrices);
void pc__cuda_windows_merge(const pc__cuda_windows *w, const float *matrices, const void *bias, void *pictures);

/* A weight's gradient, from float sums of so many parts, [part][group][wide][tap][deep]. */
void pc__cuda_windows_finish(const pc__cuda_windows *w, const float *sums, int parts, void *weight);

#ifdef __cplusplus
}
#endif
#endif
