/* elementwise.h: launchers of arithmetic, functions, comparisons and choice; dtypes that the host has checked. */
#ifndef PC__CUDA_ELEMENTWISE_H
#define PC__CUDA_ELEMENTWISE_H

#include "cuda/pointwise/loop.h"
#include "ops/pointwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions are those of ops/pointwise.h, and three with a number. */
enum pc__cuda_function { PC__COPY = PC__POINTWISE_COUNT, PC__FILL, PC__SAXPY };

/* Added to a function of two inputs: one of them is a number, which travels with the launch. */
enum pc__cuda_number { PC__NUMBER_SECOND = 64, PC__NUMBER_FIRST = 128 };

/* A comparison is the set of outcomes for which it holds. */
enum pc__cuda_outcome { PC__LESS = 1, PC__EQUAL = 2, PC__GREATER = 4, PC__UNORDERED = 8 };

/* `number`: of functions that have a parameter. */
void pc__cuda_pointwise(const pc__cuda_launch *launch, int function, int dtype, double number);
/* The same for two inputs of which `turned` is dense along `along`, the output and the other along the last dimension; 0
 * where there is no kernel for that. */
int pc__cuda_pointwise_tiles(const pc__cuda_launch *launch, int function, int dtype, double number, int along,
                             int turned);
/* With PC__NUMBER_SECOND or PC__NUMBER_FIRST (elementwise_number.cu). */
void pc__cuda_pointwise_number(const pc__cuda_launch *launch, int function, int dtype, double number);
void pc__cuda_compare(const pc__cuda_launch *launch, unsigned outcomes, int dtype);
void pc__cuda_where(const pc__cuda_launch *launch, size_t element_bytes);

#ifdef __cplusplus
}
#endif
#endif
