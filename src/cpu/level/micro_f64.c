/* micro_f64.c: micro.c in double. */
#define PC__DOUBLE
#include "micro.c"
