/* gemm_f64.c: gemm.c in double. */
#define PC__DOUBLE
#include "gemm.c"
