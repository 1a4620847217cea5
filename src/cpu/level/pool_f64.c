/* pool_f64.c: pool.c in double. */
#define PC__DOUBLE
#include "pool.c"
