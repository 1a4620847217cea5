/* lessons.h: ops that are there to show what a machine can do: the Mandelbrot set, and the ladders. They are not in the
 * table: the library registers them as any program registers its own (op.h), when they are first used, as
 * "paracord.mandelbrot" and so on. Backends have their kernels in a list of this order. */
#ifndef PC__OP_LESSONS_H
#define PC__OP_LESSONS_H

#include <paracord/op.h>

typedef enum pc__lesson {
    PC__LESSON_MANDELBROT,
    PC__LESSON_LADDER_ADD,
    PC__LESSON_LADDER_MATMUL,
    PC__LESSON_LADDER_FMA,
    PC__LESSONS
} pc__lesson;

/* Call it on n inputs, all of which its wrapper has checked, to write `to`. Names begin with PC__LESSON_NAMES, and
 * pc_op_find does not know them: nobody else calls them. */
pc_status pc__lesson_call(pc__lesson lesson, pc_tensor **in, int n, const void *attributes, pc_tensor *to);
#define PC__LESSON_NAMES "paracord."

#endif
