/* grid_rows_f64.c: grid_rows.c in double. */
#define PC__DOUBLE
#include "grid_rows.c"
