/* norm_long_f64.c: norm_long.c in double. */
#define PC__DOUBLE
#include "norm_long.c"
