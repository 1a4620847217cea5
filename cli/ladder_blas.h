/* ladder_blas.h: OpenBLAS beside our own products, where it is installed: opened at run time, never needed. */
#ifndef CLI_LADDER_BLAS_H
#define CLI_LADDER_BLAS_H

#include <stdbool.h>

typedef struct cli_blas {
    void (*multiply)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int a_row,
                     const float *b, int b_row, float beta, float *c, int c_row);
    char name[96]; /* "OpenBLAS 0.3.21, cblas_sgemm on 2 threads" */
} cli_blas;

#define CLI_BLAS_MISSING "OpenBLAS is not installed (Debian and Ubuntu: apt install libopenblas0)"

/* Open it and give it as many threads as the library has. False: it is not there. */
bool cli_blas_open(cli_blas *blas);

/* c = a b, of n rows and columns each, row by row. */
void cli_blas_multiply(const cli_blas *blas, int n, const float *a, const float *b, float *c);

#endif
