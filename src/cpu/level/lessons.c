/* lessons.c: the array of this level's kernels of the lessons. */
#include "cpu/level/lessons.h"

const pc_op_kernel_fn PC__K(lessons)[PC__LESSONS] = {[PC__LESSON_MANDELBROT] = PC__K(lesson_mandelbrot),
                                                     [PC__LESSON_LADDER_ADD] = PC__K(lesson_ladder_add),
                                                     [PC__LESSON_LADDER_MATMUL] = PC__K(lesson_ladder_matmul),
                                                     [PC__LESSON_LADDER_FMA] = PC__K(lesson_ladder_fma)};
