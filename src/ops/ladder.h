/* ladder.h: attributes of the ops behind the ladders (ladder_add, ladder_matmul, ladder_fma: lessons.h). */
#ifndef PC__OP_LADDER_H
#define PC__OP_LADDER_H

#include <stdint.h>

typedef struct pc__ladder_attributes {
    int rung;
    int64_t rounds; /* of ladder_fma */
} pc__ladder_attributes;

/* Rungs by name, in the order of the tables in ops/ladder.c. */
enum pc__cpu_add_rung { PC__CPU_ADD_ONE, PC__CPU_ADD_SIMD, PC__CPU_ADD_CORES, PC__CPU_ADD_STREAM };
enum pc__cuda_add_rung { PC__CUDA_ADD_THREAD, PC__CUDA_ADD_BLOCK, PC__CUDA_ADD_GRID, PC__CUDA_ADD_WIDE };
enum pc__cpu_matmul_rung {
    PC__CPU_MATMUL_LOOPS,
    PC__CPU_MATMUL_ORDER,
    PC__CPU_MATMUL_BLOCKS,
    PC__CPU_MATMUL_REGISTERS,
    PC__CPU_MATMUL_CORES
};
enum pc__cuda_matmul_rung {
    PC__CUDA_MATMUL_COLUMNS,
    PC__CUDA_MATMUL_ROWS,
    PC__CUDA_MATMUL_SHARED,
    PC__CUDA_MATMUL_EIGHT,
    PC__CUDA_MATMUL_SQUARE,
    PC__CUDA_MATMUL_WIDE
};

#define PC__LADDER_SIDE 128   /* sides of a product are multiples of it */
#define PC__LADDER_CHAINS 768 /* elements of ladder_fma are */

#endif
