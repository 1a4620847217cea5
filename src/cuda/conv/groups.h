/* groups.h: convolutions of channels-last pictures whose taps lie apart or whose channels are in groups, and what leads
 * back: kernels for any, and for those of each channel alone. */
#ifndef PC__CUDA_CONV_GROUPS_H
#define PC__CUDA_CONV_GROUPS_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x[n][h][w][c], weight[o][c / groups][kh][kw], y[n][oh][ow][o]; tap (i, j) of the window of y[r][q] is at
 * x[r * sh - ph + i * dh][q * sw - pw + j * dw]. One picture has less than 2^31 elements, and no size is
 * 0, but forward those that are summed over. `planes`: pictures in C order, [n][c][h][w], of each channel alone. */
typedef struct pc__cuda_groups {
    int dtype, early;
    long long n;
    int h, w, c, o, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw, groups;
    bool planes;
    cudaStream_t queue;
} pc__cuda_groups;

/* y, with a bias that may be NULL; x, from y; and the weight from both, with so many bytes of scratch memory. */
void pc__cuda_groups_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias, void *y);
void pc__cuda_groups_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x);
size_t pc__cuda_groups_scratch(const pc__cuda_groups *s);
void pc__cuda_groups_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch);

/* The same where each channel is a group of one output, and the kernel is not very large. */
bool pc__cuda_depthwise_fits(const pc__cuda_groups *s);
void pc__cuda_depthwise_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias, void *y);
void pc__cuda_depthwise_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x);
size_t pc__cuda_depthwise_scratch(const pc__cuda_groups *s);
void pc__cuda_depthwise_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch);

/* depthwise_tiles.cu: the same for common windows, where true; `turned`: the kernel end to end. */
bool pc__cuda_depthwise_tiles(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias,
                              void *to, bool turned);

/* depthwise_rows.cu: so for windows of 3 x 3 and much work in 16 bits, where true. */
bool pc__cuda_depthwise_rows(const pc__cuda_groups *s, const void *from, const void *weight, const void *bias, void *to,
                             bool turned);

/* depthwise_weight_tiles.cu: at most so many sums[part][channel][tap] of the weight's gradient, for common windows; how many, 0: none. */
int pc__cuda_depthwise_tiles_weight(const pc__cuda_groups *s, const void *x, const void *y, void *sums, int most);

/* depthwise_squares.cu: the gradient of the input of square windows two apart, where true. */
bool pc__cuda_depthwise_squares_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x);

/* depthwise_planes.cu, depthwise_planes_weight.cu: the same of planes. */
void pc__cuda_depthwise_planes_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias,
                                       void *y);
void pc__cuda_depthwise_planes_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x);
size_t pc__cuda_depthwise_planes_scratch(const pc__cuda_groups *s);
void pc__cuda_depthwise_planes_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight,
                                      void *scratch);

/* weight[i] = the sum of sums[part][i], by parts in order: what both weights' gradients end with. */
void pc__cuda_groups_add(const pc__cuda_groups *s, const void *sums, int parts, long long count, void *weight);

#ifdef __cplusplus
}
#endif
#endif
