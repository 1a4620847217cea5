/* gemm_columns_f64.c: gemm_columns.c in double. */
#define PC__DOUBLE
#include "gemm_columns.c"
