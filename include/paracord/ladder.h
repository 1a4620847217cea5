/* ladder.h: an addition and a product by kernels from the simplest to nearly the library's: lessons that run.
 *
 *     const pc_rung *rungs;
 *     int n = pc_ladder_rungs(PC_LADDER_MATMUL, device, &rungs);
 *     for (int i = 0; i < n; i++)
 *         if (pc_ladder_climb(PC_LADDER_MATMUL, i, a, b, c) == PC_OK)
 *             printf("%s: %s\n", rungs[i].name, rungs[i].why);                // and time it
 *
 * The rung above the last one is pc_add or pc_matmul. `paracord add --ladder` and `paracord matmul --ladder` print
 * them.
 */
#ifndef PARACORD_LADDER_H
#define PARACORD_LADDER_H

#include <paracord/tensor.h>

PC_BEGIN

typedef enum pc_ladder { PC_LADDER_ADD, PC_LADDER_MATMUL } pc_ladder;

typedef struct pc_rung {
    const char *name; /* "shared memory" */
    const char *why;  /* what it does about what the rung below waited for: one line */
    int64_t most;     /* so slow that more elements (the sum), or a longer side (the product), make no sense; 0: any */
} pc_rung;

/* How many rungs a ladder has on such a device, and where they are described (static storage). */
PC_API int pc_ladder_rungs(pc_ladder ladder, pc_device device, const pc_rung **rungs);

/* c = a + b, or c = a b, by that rung's kernel. float32, contiguous, on one device; for the sum of one shape; for the
 * product [n, n] with n a multiple of 128. PC_ERR_ARGUMENT, PC_ERR_SHAPE, PC_ERR_DTYPE otherwise. */
PC_API PC_MUST_USE pc_status pc_ladder_climb(pc_ladder ladder, int rung, pc_tensor *a, pc_tensor *b, pc_tensor *c);

/* Multiply-adds and nothing else, the limit of a product: every element of `x` (float32, contiguous, a multiple of 768)
 * becomes x * 0.5 + 0.5, `rounds` times, in registers: 2 * rounds operations an element. */
PC_API PC_MUST_USE pc_status pc_ladder_fma(pc_tensor *x, int64_t rounds);

PC_END
#endif
