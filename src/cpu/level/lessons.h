/* lessons.h: this level's kernels of the lessons, which the library registers as programs register theirs. */
#ifndef PC__CPU_LESSONS_H
#define PC__CPU_LESSONS_H

#include "cpu/level/level.h"
#include "base/parallel.h"
#include "ops/lessons.h"

#define PC__LESSON_KERNEL(name) pc_status PC__K(lesson_##name)(const pc_op_run *run)
PC__LESSON_KERNEL(mandelbrot);
PC__LESSON_KERNEL(ladder_add);
PC__LESSON_KERNEL(ladder_matmul);
PC__LESSON_KERNEL(ladder_fma);

extern const pc_op_kernel_fn PC__K(lessons)[PC__LESSONS];

#endif
