/* convolve.h: convolutions whose taps lie apart or whose channels are in groups, as three ops that are each other's
 * gradients: the result, the gradient of the input and that of the weight. */
#ifndef PC__OP_CONVOLVE_H
#define PC__OP_CONVOLVE_H

#include <paracord/ops.h>

/* Of all three: x [n, c, *size], weight [o, c / groups, *kernel], y [n, o, ...], pictures channels last, or with `planes` in C order. */
typedef struct pc__convolve_attributes {
    int stride[2], padding[2], dilation[2];
    int64_t groups;
    int64_t size[2], kernel[2];
    int64_t planes; /* pictures lie in C order, where pc__convolve_in_planes */
} pc__convolve_attributes;

/* Rows (0) or columns (1) of y; 0 where the kernel does not fit. */
static inline int64_t pc__convolve_out(const pc__convolve_attributes *a, int i)
{
    const int64_t room = a->size[i] + 2 * (int64_t)a->padding[i] - (int64_t)a->dilation[i] * (a->kernel[i] - 1) - 1;
    return room < 0 ? 0 : room / a->stride[i] + 1;
}

/* The CPU's kernels work with neighbouring places of y side by side where a group's c inputs and o outputs are few, and read
 * pictures in either order then; else with channels side by side. Of each channel alone these fill vectors, too, unless they
 * are few; then it is the order of the pictures, `planes`, that decides, and how much there is to turn. */
static inline bool pc__convolve_is_planar(const pc__convolve_attributes *a, int64_t c, int64_t o, bool planes)
{
    const int64_t width = pc__convolve_out(a, 1), more = o > c ? o : c, most = width < 8 ? 8 : width > 24 ? 24 : width;
    if (a->groups == 1 && a->dilation[0] == 1 && a->dilation[1] == 1)
        return false;
    if (c > 1 || a->groups < 16)
        return more <= most;
    if (o == 1 && a->stride[0] == 1 && a->stride[1] == 1)
        return planes;
    return planes && width >= (o > 1 ? 12 : 20);
}

/* convolve(x, weight) + bias; what leads back from y to x, which is a transposed convolution; and from x and y to the
 * weight. bias [o] may be NULL. Inputs in any memory order, of one floating dtype; NULL flows. */
pc_tensor *pc__convolve(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, const pc__convolve_attributes *a);
pc_tensor *pc__convolve_input(pc_tensor *y, pc_tensor *weight, const pc__convolve_attributes *a);
pc_tensor *pc__convolve_weight(pc_tensor *x, pc_tensor *y, const pc__convolve_attributes *a);

/* Whether kernels read `t`, pictures of groups of c inputs or o outputs, in its C order: on CUDA those of each channel
 * alone, with windows that are not large. */
bool pc__convolve_in_planes(const pc_tensor *t, const pc__convolve_attributes *a, int64_t c, int64_t o);

/* pc_fn_conv2d with such options, checked and with their defaults; `planes`: the result in C order. */
pc_tensor *pc__convolve_spec(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, const pc_fn_conv2d_options *spec,
                             bool planes);

/* Dilation and groups filled in where they are 0, and checked, with what follows from them for the channels in each
 * group; `name` is the op's in errors. */
pc_status pc__convolve_check(const char *name, int64_t in, int64_t out, int dilation[2], int *groups);

#endif
