/* lessons.c: registering the lessons. Their kernels are a backend's, which may be a plug-in that nobody has asked for by
 * then: so a kernel is looked up when it runs. */
#include "ops/lessons.h"

#include "device/backend.h"
#include "ops/ladder.h"
#include "ops/mandelbrot.h"

#include <pthread.h>

#define LESSON(name, number)                                                                                           \
    static pc_status name##_on_cpu(const pc_op_run *run)                                                               \
    {                                                                                                                  \
        return pc__backend_of(PC_CPU)->lessons()[number](run);                                                         \
    }                                                                                                                  \
    static pc_status name##_on_cuda(const pc_op_run *run)                                                              \
    {                                                                                                                  \
        return pc__backend_of(PC_CUDA)->lessons()[number](run);                                                        \
    }
LESSON(mandelbrot, PC__LESSON_MANDELBROT)
LESSON(ladder_add, PC__LESSON_LADDER_ADD)
LESSON(ladder_matmul, PC__LESSON_LADDER_MATMUL)
LESSON(ladder_fma, PC__LESSON_LADDER_FMA)

#define ROW(lesson, number, in, attributes, how)                                                                       \
    [number] = {.name = PC__LESSON_NAMES #lesson,                                                                      \
                .inputs = in,                                                                                          \
                .outputs = 1,                                                                                          \
                .attribute_bytes = sizeof(attributes),                                                                 \
                .writes = how,                                                                                         \
                .cpu = lesson##_on_cpu,                                                                                \
                .cuda = lesson##_on_cuda}
static const pc_op_spec specs[PC__LESSONS] = {
    ROW(mandelbrot, PC__LESSON_MANDELBROT, 0, pc__mandelbrot_attributes, PC_OP_OVERWRITES),
    ROW(ladder_add, PC__LESSON_LADDER_ADD, 2, pc__ladder_attributes, PC_OP_OVERWRITES),
    ROW(ladder_matmul, PC__LESSON_LADDER_MATMUL, 2, pc__ladder_attributes, PC_OP_OVERWRITES),
    ROW(ladder_fma, PC__LESSON_LADDER_FMA, 0, pc__ladder_attributes, PC_OP_UPDATES),
};

static const pc_op *op_of(pc__lesson lesson)
{
    static const pc_op *ops[PC__LESSONS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!ops[lesson])
        ops[lesson] = pc_op_register(&specs[lesson]);
    const pc_op *op = ops[lesson];
    pthread_mutex_unlock(&lock);
    return op;
}

pc_status pc__lesson_call(pc__lesson lesson, pc_tensor **in, int n, const void *attributes, pc_tensor *to)
{
    const pc_op *op = op_of(lesson);
    return op ? pc_op_call(op, in, n, attributes, &to) : pc_error_last()->status;
}
