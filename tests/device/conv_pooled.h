/* conv_pooled.h: the part of conv_play.h that pools, and spreads gradients over windows. */
#ifndef PC_TEST_CONV_POOLED_H
#define PC_TEST_CONV_POOLED_H

#include "conv_play.h"

static float activated(int kind, float x)
{
    return kind == PC_ACTIVATION_RELU && x < 0 ? 0 : kind == PC_ACTIVATION_TANH ? tanhf(x) : x;
}

void pc__cuda_conv_pool(cudaStream_t queue, const pc__cuda_conv *s, const void *conv, int h, int w, const void *bias,
                        void *y, uint8_t *argmax)
{
    (void)queue;
    assert_null(bias);
    assert_true(h == s->oh && w == s->ow);
    play.pooled++;
    for (int64_t i = 0; i < s->n * s->yh * s->yw * s->o; i++) {
        const int64_t pixel = i / s->o, image = pixel / s->yw / s->yh;
        const int row = (int)(pixel / s->yw % s->yh) * s->pool, column = (int)(pixel % s->yw) * s->pool;
        int best = 0;
        float most = -INFINITY;
        for (int q = 0; q < s->pool * s->pool; q++) {
            const int64_t at = (image * h + row + q / s->pool) * w + column + q % s->pool;
            const float value = ((const float *)conv)[at * s->o + i % s->o];
            best = value > most ? q : best;
            most = value > most ? value : most;
        }
        most = activated(s->activation, most);
        ((float *)y)[i] = most;
        if (argmax)
            argmax[i] = s->activation == PC_ACTIVATION_RELU && most <= 0 ? PC__CUDA_CONV_DEAD : (uint8_t)best;
    }
}

size_t pc__cuda_conv_unpool_scratch(const pc__cuda_conv *s)
{
    return (size_t)s->o * sizeof(float);
}

void pc__cuda_conv_unpool(cudaStream_t queue, const pc__cuda_conv *s, const void *dy, const void *y,
                          const uint8_t *argmax, void *dz, void *dbias, void *scratch)
{
    float *to = zeros_of(dz, results(s));
    (void)queue;
    play.unpooled++;
    if (dbias)
        zeros_of(dbias, s->o), zeros_of(scratch, s->o);
    for (int64_t i = 0; i < s->n * s->yh * s->yw * s->o; i++) {
        const int64_t pixel = i / s->o, image = pixel / s->yw / s->yh;
        const int row = (int)(pixel / s->yw % s->yh) * s->pool, column = (int)(pixel % s->yw) * s->pool;
        const int64_t at = (image * s->oh + row + argmax[i] / s->pool) * s->ow + column + argmax[i] % s->pool;
        const float value = s->activation == PC_ACTIVATION_TANH ? ((const float *)y)[i] : 0;
        const float g = argmax[i] == PC__CUDA_CONV_DEAD ? 0 : ((const float *)dy)[i] * (1 - value * value);
        if (g != 0)
            to[at * s->o + i % s->o] = g;
        if (dbias)
            ((float *)dbias)[i % s->o] += g;
    }
}

#endif
