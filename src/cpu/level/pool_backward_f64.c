/* pool_backward_f64.c: pool_backward.c in double. */
#define PC__DOUBLE
#include "pool_backward.c"
