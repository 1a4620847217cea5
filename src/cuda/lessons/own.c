/* own.c: ops that the program has registered, by its functions that launch kernels; and the lessons, which are such
 * ops of the library's own. */
#include "cuda/lessons/lessons.h"
#include "cuda/pointwise/each.h"
#include "ops/own.h"

static _Thread_local const pc_stream *at_hand;

PC__CUDA_KERNEL(own)
{
    const pc_op *op = pc__own_of(call->op);
    at_hand = stream;
    const pc_status status = op->run(call, op->cuda, pc__cuda_queue(stream));
    at_hand = NULL;
    return status;
}

bool pc__cuda_lesson_early(void)
{
    return at_hand && pc__cuda_early(at_hand);
}

const pc__lesson_kernel *pc__cuda_lessons(void)
{
    static const pc__lesson_kernel kernels[PC__LESSONS] = {[PC__LESSON_MANDELBROT] = pc__cuda_lesson_mandelbrot,
                                                           [PC__LESSON_LADDER_ADD] = pc__cuda_lesson_ladder_add,
                                                           [PC__LESSON_LADDER_MATMUL] = pc__cuda_lesson_ladder_matmul,
                                                           [PC__LESSON_LADDER_FMA] = pc__cuda_lesson_ladder_fma};
    return kernels;
}
