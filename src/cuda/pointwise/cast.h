/* cast.h: launchers of conversion, copies and filling. */
#ifndef PC__CUDA_CAST_H
#define PC__CUDA_CAST_H

#include "cuda/pointwise/loop.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operand 1, of dtype `from`, into operand 0, of dtype `to`. Floats to integers truncate by way of int64, as on the
 * CPU: what int64 cannot hold, and NaN, becomes its smallest number first. */
void pc__cuda_convert(const pc__cuda_launch *launch, int from, int to);

/* The same without conversion, where operand 0 is dense along the last dimension and operand 1 along `along`; items are
 * single elements. */
void pc__cuda_transpose(const pc__cuda_launch *launch, size_t element_bytes, int along);

/* The same of rows into dense memory, where single elements are items for want of whole packs. False: it is none of these. */
bool pc__cuda_copy_rows(const pc__cuda_launch *launch, size_t element_bytes);

/* Every element of operand 0 becomes the first element_bytes bytes of `bits`. */
void pc__cuda_fill(const pc__cuda_launch *launch, size_t element_bytes, uint64_t bits);

/* Operand 0 = operand 1 + factor * operand 2; integers use the whole factor, floats the fraction. */
void pc__cuda_saxpy(const pc__cuda_launch *launch, int dtype, double factor, uint64_t whole);

/* data[i] = start + i * step for i below n, counted in float64. */
void pc__cuda_arange(void *data, int dtype, int64_t n, double start, double step, int multiprocessors,
                     cudaStream_t queue);

#ifdef __cplusplus
}
#endif
#endif
