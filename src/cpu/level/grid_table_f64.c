/* grid_table_f64.c: grid_table.c in double. */
#define PC__DOUBLE
#include "grid_table.c"
