/* order.cuh: where the elements of a convolution's result lie, and what its argmax says. */
#ifndef PC__CUDA_CONV_ORDER_CUH
#define PC__CUDA_CONV_ORDER_CUH

#include "cuda/shared/activations.cuh"
#include "cuda/conv/conv.h"
#include "cuda/shared/sums.cuh"

namespace
{

inline bool is_half(const pc__cuda_conv *s)
{
    return s->dtype == PC__CUDA_F16 || s->dtype == PC__CUDA_BF16;
}

/* Channels of a group. */
__host__ __device__ inline int inputs_of(const pc__cuda_conv &s)
{
    return s.groups > 1 ? s.c / s.groups : s.c;
}

__host__ __device__ inline int outputs_of(const pc__cuda_conv &s)
{
    return s.groups > 1 ? s.o / s.groups : s.o;
}

/* What a block has of a product's columns, of which each group has `each`: those from `column` up to `end`. */
struct columns {
    int group, column, end;
};

/* The blocks of a grid that are `block` of so many across, `wide` each, of group behind group. */
__device__ inline columns columns_of(int groups, int each, int wide, int block)
{
    if (groups <= 1)
        return {0, block * wide, each};
    const int across = (each + wide - 1) / wide, group = block / across;
    return {group, group * each + (block - group * across) * wide, (group + 1) * each};
}

/* Blocks across for all of them. */
inline int blocks_across(const pc__cuda_conv *s, int each, int wide)
{
    return (s->groups > 1 ? s->groups : 1) * ((each + wide - 1) / wide);
}

/* Distance between channels of y, argmax and dy. */
__device__ inline int channel_step(const pc__cuda_conv &s)
{
    return s.planes ? s.yh * s.yw : 1;
}

/* Channel 0 of a pixel there; pixels are counted over [n][yh][yw]. */
__device__ inline long long pixel_at(const pc__cuda_conv &s, long long pixel)
{
    const int area = s.yh * s.yw;
    return s.planes ? pixel + quotient(pixel, area) * ((long long)area * (s.o - 1)) : pixel * s.o;
}

/* Channel 0 of a picture's first pixel there, in either order. */
__device__ inline long long picture_at(const pc__cuda_conv &s, int image)
{
    return image * ((long long)s.yh * s.yw * s.o);
}

/* True where argmax tells what a ReLU cut, so that no backward kernel needs y. */
__host__ __device__ inline bool marks_dead(const pc__cuda_conv &s)
{
    return s.activation == ACTIVATION_RELU && s.pool > 1 && s.pool < 16;
}

__host__ __device__ inline bool needs_y(const pc__cuda_conv &s)
{
    return s.activation != ACTIVATION_NONE && !marks_dead(s);
}

/* What argmax says of a window whose maximum is at `place` and becomes y. */
template <class T> __device__ inline int mark_of(const pc__cuda_conv &s, int place, T y)
{
    return marks_dead(s) && y <= 0 ? PC__CUDA_CONV_DEAD : place;
}

} // namespace

#endif
