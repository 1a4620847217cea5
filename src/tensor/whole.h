/* whole.h: fractions as integers, the same on every device and at every SIMD level. Towards zero; what the type does
 * not hold, and NaN, becomes its least number, as x86's conversions have it and so PyTorch on such CPUs. (C leaves it
 * open, and compilers and GPUs differ.) CUDA's kernels have the same in cast.cu. */
#ifndef PC__WHOLE_H
#define PC__WHOLE_H

#include <stdint.h>

/* Of a float or double, which is named twice. */
#define PC__I32_OF(v) ((v) >= -0x1p31f && (v) < 0x1p31f ? (int32_t)(v) : INT32_MIN)
#define PC__I64_OF(v) ((v) >= -0x1p63f && (v) < 0x1p63f ? (int64_t)(v) : INT64_MIN)

/* By way of int64, so that negative numbers wrap, as in PyTorch. */
#define PC__U8_OF(v) ((uint8_t)PC__I64_OF(v))

#endif
