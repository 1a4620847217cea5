/* conv_rows_f64.c: conv_rows.c in double. */
#define PC__DOUBLE
#include "conv_rows.c"
