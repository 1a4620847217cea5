/* conv_halves.h: what is asked of 16-bit numbers alone, for tests of who does a convolution: they have floats only. */
#ifndef PC_TEST_CONV_HALVES_H
#define PC_TEST_CONV_HALVES_H

#include "support.h"

#include "cuda/conv/few_half.h"
#include "cuda/conv/half.h"
#include "cuda/conv/patch.h"
#include "cuda/conv/shallow.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NEVER(name, ...)                                                                                               \
    bool name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        fail_msg("there are no 16-bit numbers here");                                                                  \
        return false;                                                                                                  \
    }
#define NO_BYTES(name, ...)                                                                                            \
    size_t name(__VA_ARGS__)                                                                                           \
    {                                                                                                                  \
        fail_msg("there are no 16-bit numbers here");                                                                  \
        return 0;                                                                                                      \
    }
#define NOT_RUN(name, ...)                                                                                             \
    void name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        fail_msg("there are no 16-bit numbers here");                                                                  \
    }

NEVER(pc__cuda_conv_few_half_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_half_fits, const pc__cuda_conv *s, const void *x)
NEVER(pc__cuda_conv_half_input_fits, const pc__cuda_conv *s, const void *dy)
NEVER(pc__cuda_conv_patch_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_patch_input_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_patch_weights_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_shallow_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_shallow_input_fits, const pc__cuda_conv *s)
NEVER(pc__cuda_conv_shallow_weights_fits, const pc__cuda_conv *s)
NO_BYTES(pc__cuda_conv_shallow_scratch, const pc__cuda_conv *s)
NO_BYTES(pc__cuda_conv_half_scratch, const pc__cuda_conv *s, bool patches)
NO_BYTES(pc__cuda_conv_half_input_scratch, const pc__cuda_conv *s, bool patches)
NO_BYTES(pc__cuda_conv_half_weights_scratch, const pc__cuda_conv *s, bool patches)
NO_BYTES(pc__cuda_conv_turn_scratch, const pc__cuda_conv *s, bool pack)
NOT_RUN(pc__cuda_conv_half_forward, cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
        const void *bias, void *y, uint8_t *argmax, bool patches, void *scratch, unsigned *counters)
NOT_RUN(pc__cuda_conv_half_input, cudaStream_t queue, const pc__cuda_conv *s, const void *weight, void *packed,
        const void *y, const uint8_t *argmax, const void *dy, void *dx, bool patches, void *scratch, unsigned *counters)
NOT_RUN(pc__cuda_conv_half_weights, cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
        const uint8_t *argmax, const void *dy, void *dweight, void *dbias, bool patches, void *scratch)
NOT_RUN(pc__cuda_conv_turn, cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void **y,
        const uint8_t **argmax, const void **dy, void **packed, void *scratch)
NOT_RUN(pc__cuda_conv_shallow_forward, cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
        const void *bias, void *y, uint8_t *argmax)
NOT_RUN(pc__cuda_conv_shallow_input, cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
        const uint8_t *argmax, const void *dy, void *dx)
NOT_RUN(pc__cuda_conv_shallow_weights, cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
        const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch)
#pragma GCC diagnostic pop

#endif
