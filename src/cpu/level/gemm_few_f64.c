/* gemm_few_f64.c: gemm_few.c in double. */
#define PC__DOUBLE
#include "gemm_few.c"
