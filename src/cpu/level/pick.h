/* pick.h: rows by their numbers. */
#ifndef PC__CPU_PICK_H
#define PC__CPU_PICK_H

#include "cpu/level/kernels.h"

/* Rows index[0] to index[n - 1] of `from`, one behind the other in `to`; `row` is their bytes. (index.c) */
#define pc__pick_rows PC__K(pick_rows)
void pc__pick_rows(char *to, const char *from, const int64_t *index, int64_t n, size_t row);

#endif
