/* choice.h: who does a convolution, our kernels or cuDNN: the rule, and what measuring found, kept in a file.
 * Plain C without CUDA's headers: tests without a GPU link it. */
#ifndef PC__CUDA_CONV_CHOICE_H
#define PC__CUDA_CONV_CHOICE_H

#include "cuda/runtime/choices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pc__conv_direction { PC__CONV_FORWARD, PC__CONV_INPUT, PC__CONV_WEIGHTS, PC__CONV_DIRECTIONS };

/* How cuDNN is given the operands. Ours are channels last; other formats are made in scratch memory.
 * PC__CONV_PADDED: channels last, the numbers of channels rounded up to what 16 bytes hold, zeros behind; matrix units
 * take no other. PC__CONV_PLANES: [n][c][h][w], for which cuDNN has Winograd's method in float32. PC__CONV_FOLDED: padded, the
 * sh x sw places of a stride side by side as channels, with the border around, so that stride 1 without padding is left:
 * three channels fill matrix units so. Not for the gradient of the input. */
typedef enum pc__conv_format {
    PC__CONV_AS_IS,
    PC__CONV_PADDED,
    PC__CONV_PLANES,
    PC__CONV_FOLDED,
    PC__CONV_FORMATS
} pc__conv_format;

/* One of the three products of a convolution of channels-last pictures, x[n][h][w][c], weight[o][kh][kw][c]: the
 * result, the gradient of x, or that of the weights. Compared as bytes: made from zeros. */
typedef struct pc__conv_shape {
    int64_t n;
    int32_t h, w, c, o, kh, kw, sh, sw, ph, pw, oh, ow;
    int32_t direction, dtype; /* as pc_dtype */
    int32_t tf32, relu;
    int32_t bias;           /* forward: is added; weights: its gradient is wanted */
    int32_t format;         /* pc__conv_format */
    int32_t dh, dw, groups; /* distances of taps, and groups of channels; 0 means 1 */
    int32_t planes;         /* x and the result lie in C order, which is PC__CONV_PLANES without a copy */
} pc__conv_shape;

/* Where cuDNN does it without being measured, its format; -1 where our kernels do. From the shape alone. `native`: ours
 * take its dtype, else they need it converted to float32 and back. */
int pc__conv_rule(const pc__conv_shape *s, bool native);

/* The rule gives cuDNN a convolution forward, and by so much that pooling and other activations than ReLU, which ours do
 * on the way, may be calls of their own. */
bool pc__conv_is_worth_more_calls(const pc__conv_shape *s, bool native);

/* In 16 bits the rule gives cuDNN this gradient of weights, and it is so much work that the pooling in front of it may be a call of
 * its own, which leaves the gradient behind it to our kernels. */
bool pc__conv_is_much_of_cudnns(const pc__conv_shape *s, bool native);

/* Sums so short that cuDNN's kernels for planes take less than ours and what turns the result from channels last. From the
 * shape alone, in float32; forward, pictures and result in C order, without what follows a sum. */
bool pc__conv_keeps_planes(const pc__conv_shape *s);

/* Large windows of pictures in C order in float32, of which cuDNN's methods by Fourier's transform, which are taken where they
 * are measured, need a fraction of the products. From the shape alone, forward. */
bool pc__conv_is_for_transforms(const pc__conv_shape *s);

/* So few channels that our direct kernels are the fastest. From the shape alone. */
bool pc__conv_is_few(const pc__conv_shape *s);

/* The gradient of pictures of one channel: a product of one column. From the shape alone. */
bool pc__conv_is_single(const pc__conv_shape *s);

/* So little work forward or for the gradient of the input that all other ways wait longer than they work, and our
 * kernel that cuts its sums does not. From the shape alone. */
bool pc__conv_is_little(const pc__conv_shape *s);

/* 16 bits and few channels of pictures that have tiles enough: brought into shared memory as they are (shallow.h), where
 * nothing stands against it, before sums are cut. From the shape alone. */
bool pc__conv_is_shallow(const pc__conv_shape *s);

/* So little that to set up tiles takes longer than the work; `asked`: 16 times as much, too. From the shape alone. */
bool pc__conv_is_least(const pc__conv_shape *s, bool asked);

/* The same where there are groups, or taps apart: cuDNN's ways are several launches then. From the shape alone. */
bool pc__conv_is_least_of_groups(const pc__conv_shape *s);

/* Whether our tiles are faster than cuDNN and products of windows, where they take it. */
bool pc__conv_is_for_tiles(const pc__conv_shape *s);

/* The same of 16-bit numbers, which are turned into floats for it and back. */
bool pc__conv_is_for_tiles_of_halves(const pc__conv_shape *s);

/* Sums so long that a kernel that pools on the way, and does not cut them, waits longer than a call of its own takes. */
bool pc__conv_is_deep(const pc__conv_shape *s);

/* The format in which cuDNN's matrix units, or its kernels for float32, take a shape. */
pc__conv_format pc__conv_usual_format(const pc__conv_shape *s);

/* The same of a shape with taps apart or groups, whose channels cannot be padded. */
pc__conv_format pc__conv_grouped_format(const pc__conv_shape *s);

/* Whether the shape can be folded: few channels, a stride, and windows that leave nothing out. */
bool pc__conv_can_fold(const pc__conv_shape *s);

/* The shape that cuDNN sees in its format: more channels where they are padded, a smaller window where it is folded. */
pc__conv_shape pc__conv_in_format(const pc__conv_shape *s);

/* What a measurement holds for: this shape on this GPU with this cuDNN (91900 for 9.19.0). */
void pc__conv_text(char text[PC__CHOICE_TEXT], const char *gpu, int multiprocessors, size_t cudnn,
                   const pc__conv_shape *s);

/* How a choice is kept: 0: the row of ours that the rule picks; format * PC__CONV_PLANS + k: the k-th of cuDNN's plans in
 * that format, in its own order, k from 1 on; PC__CONV_WAYS + k: the k-th row of the direction's table, from 1 on. */
enum { PC__CONV_PLANS = 16, PC__CONV_WAYS = PC__CONV_PLANS * PC__CONV_FORMATS, PC__CONV_ROWS = 12 };

#endif
