/* gemm_dots_f64.c: gemm_dots.c in double. */
#define PC__DOUBLE
#include "gemm_dots.c"
