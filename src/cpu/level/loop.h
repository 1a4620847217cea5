/* loop.h: walking several strided tensors together.
 *
 * pc__loop_make sorts and merges dimensions so that the innermost run is as long as it can be; pc__loop_run hands those
 * runs to a function, or of short ones their columns, on as many cores as pay, in any order. The first operand is the output. */
#ifndef PC__LOOP_H
#define PC__LOOP_H

#include "cpu/level/level.h"
#include "base/parallel.h"
#include "tensor/call.h"

#define PC__OPERANDS 4

typedef struct pc__loop {
    int operands, ndim; /* ndim is at least 1 */
    int64_t shape[PC_MAX_DIMS];
    int64_t strides[PC__OPERANDS][PC_MAX_DIMS]; /* in bytes; 0 where an operand repeats */
    int64_t bytes[PC__OPERANDS];                /* of an element */
    char *data[PC__OPERANDS];
    const void *context; /* handed to the run function */
} pc__loop;

/* `n` elements: operand k starts at data[k] and advances by strides[k] bytes. */
typedef void (*pc__run_fn)(char *const *data, const int64_t *strides, int64_t n, const void *context);

#define pc__loop_make PC__K(loop_make)
#define pc__loop_run PC__K(loop_run)

/* operands[0] is the output; the others broadcast to its shape. */
void pc__loop_make(pc__loop *loop, int count, pc_tensor *const *operands, const void *context);

/* One more operand k: a single element of `bytes` bytes. */
#define pc__loop_repeat PC__K(loop_repeat)
void pc__loop_repeat(pc__loop *loop, int k, void *element, size_t bytes);

/* `cost` is a rough number of operations for one element. */
void pc__loop_run(const pc__loop *loop, pc__run_fn run, int cost);

#endif
