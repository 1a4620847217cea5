/* conv_choice.h: who does a convolution, our kernels or cuDNN: the rule, and what measuring found, kept in a file.
 * Plain C without CUDA's headers: tests without a GPU link it. */
#ifndef PC__CUDA_CONV_CHOICE_H
#define PC__CUDA_CONV_CHOICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pc__conv_direction { PC__CONV_FORWARD, PC__CONV_INPUT, PC__CONV_WEIGHTS, PC__CONV_DIRECTIONS };

/* One of the three products of a convolution of channels-last pictures, x[n][h][w][c], weight[o][kh][kw][c]: the
 * result, the gradient of x, or that of the weights. Compared as bytes: made from zeros. */
typedef struct pc__conv_shape {
    int64_t n;
    int32_t h, w, c, o, kh, kw, sh, sw, ph, pw, oh, ow;
    int32_t direction, dtype; /* as pc_dtype */
    int32_t tf32, relu;
    int32_t bias; /* forward: is added; weights: its gradient is wanted */
    int32_t pad;
} pc__conv_shape;

/* True where cuDNN does it without being measured. From the shape alone. */
bool pc__conv_rule(const pc__conv_shape *s);

/* What a measurement holds for: this shape on this GPU with this cuDNN (91900 for 9.19.0). */
enum { PC__CONV_TEXT = 320 };
void pc__conv_text(char text[PC__CONV_TEXT], const char *gpu, int multiprocessors, size_t cudnn,
                   const pc__conv_shape *s);

/* 0: ours; k: the k-th of cuDNN's ways, in its own order. */
enum { PC__CONV_WAYS = 6 };

/* The file: $XDG_CACHE_HOME/paracord/convolutions, or in ~/.cache. False where there is no such place. */
bool pc__conv_file(char path[PATH_MAX]);

/* The way that the file has for `text`, -1 where it has none: then, and where it cannot be read, it is measured anew.
 * Of several rows the first is right. */
int pc__conv_recall(const char *path, const char *text);

/* Add a row. Each is written by one call at the end of the file, whoever else writes, and carries a check of itself;
 * what does not work is let be. */
void pc__conv_note(const char *path, const char *text, int way);

#endif
