/* lessons.h: the lessons' kernels, which the library registers as programs register theirs. */
#ifndef PC__CUDA_LESSONS_H
#define PC__CUDA_LESSONS_H

#include "cuda/runtime/cuda.h"
#include "ops/lessons.h"

pc_status pc__cuda_lesson_mandelbrot(const pc_op_run *run);
pc_status pc__cuda_lesson_ladder_add(const pc_op_run *run);
pc_status pc__cuda_lesson_ladder_matmul(const pc_op_run *run);
pc_status pc__cuda_lesson_ladder_fma(const pc_op_run *run);

/* pc__cuda_early of the stream of the run at hand. */
bool pc__cuda_lesson_early(void);

const pc__lesson_kernel *pc__cuda_lessons(void);

#endif
