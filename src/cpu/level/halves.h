/* halves.h: rows of 16-bit numbers to and from float32, for kernels that convert what they are about to work on. */
#ifndef PC__HALVES_H
#define PC__HALVES_H

#include "cpu/level/level.h"

#include <stdbool.h>
#include <stdint.h>

#define pc__load_halves PC__K(load_halves)
#define pc__store_halves PC__K(store_halves)
void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16);
void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16);

#endif
