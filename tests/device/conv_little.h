/* conv_little.h: kernels for little work, which take nothing where a small shape stands for any (conv_play.h). */
#ifndef PC_TEST_CONV_LITTLE_H
#define PC_TEST_CONV_LITTLE_H

#include "support.h"

#include "cuda/conv/plain.h"
#include "cuda/conv/single.h"
#include "cuda/conv/split.h"

bool pc__cuda_conv_split_fits(const pc__cuda_conv *s)
{
    (void)s;
    return false;
}

size_t pc__cuda_conv_split_scratch(const pc__cuda_conv *s, bool input)
{
    (void)s, (void)input;
    return 0;
}

void pc__cuda_conv_split_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y, void *scratch, unsigned *counters)
{
    (void)queue, (void)s, (void)x, (void)weight, (void)bias, (void)y, (void)scratch, (void)counters;
    fail();
}

void pc__cuda_conv_split_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx, void *scratch, unsigned *counters)
{
    (void)queue, (void)s, (void)weight, (void)y, (void)dy, (void)dx, (void)scratch, (void)counters;
    fail();
}

bool pc__cuda_conv_plain_fits(const pc__cuda_conv *s)
{
    (void)s;
    return false;
}

void pc__cuda_conv_plain_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y)
{
    (void)queue, (void)s, (void)x, (void)weight, (void)bias, (void)y;
    fail();
}

void pc__cuda_conv_plain_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx)
{
    (void)queue, (void)s, (void)weight, (void)y, (void)dy, (void)dx;
    fail();
}

void pc__cuda_conv_plain_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                 const void *dy, void *dweight, void *dbias)
{
    (void)queue, (void)s, (void)x, (void)y, (void)dy, (void)dweight, (void)dbias;
    fail();
}

bool pc__cuda_conv_single_fits(const pc__cuda_conv *s)
{
    (void)s;
    return false;
}

void pc__cuda_conv_single_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const void *dy, void *dx)
{
    (void)queue, (void)s, (void)weight, (void)y, (void)dy, (void)dx;
    fail();
}

#endif
