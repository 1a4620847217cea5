/* kernels.h: this level's kernel of every op, named op_<op>, and its array by op. */
#ifndef PC__KERNELS_H
#define PC__KERNELS_H

#include "cpu/level/level.h"
#include "base/parallel.h"
#include "ops/table.h"

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    pc_status PC__K(op_##name)(pc_stream * stream, const pc_call *call);
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

extern const pc__kernel PC__K(kernels)[PC__OP_COUNT];

#define PC__KERNEL(name) pc_status PC__K(op_##name)(pc_stream * stream, const pc_call *call)

/* half.c: a call with 16-bit numbers by a kernel that has none. */
pc_status PC__K(in_floats)(pc_stream *stream, const pc_call *call, pc__kernel kernel);

/* exp(x) that compilers turn into vector code; within 2 units in the last place for float. */
static inline float pc__exp_f32(float x)
{
    /* x = k ln 2 + r, |r| <= ln 2 / 2; e^r by a polynomial (minimax coefficients as in Cephes expf), then 2^k by the
     * exponent bits. Beyond the range of float the result is 0 or infinity. */
    float clamped = x > -87.33654f ? (x < 88.72283f ? x : 88.72283f) : -87.33654f; /* NaN goes low */
    float k = __builtin_floorf(clamped * 1.44269504f + 0.5f);
    float r = clamped - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* 2^k in two steps: k may be 128, which one step cannot hold */
    int32_t half = (int32_t)k / 2, rest = (int32_t)k - half;
    union {
        int32_t i;
        float f;
    } a = {(half + 127) << 23}, b = {(rest + 127) << 23};
    float result = p * a.f * b.f;
    result = x < -87.33654f ? 0.0f : x > 88.72283f ? __builtin_inff() : result;
    return x != x ? x : result;
}

#endif
