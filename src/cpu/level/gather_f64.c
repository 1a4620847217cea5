/* gather_f64.c: gather.c in double. */
#define PC__DOUBLE
#include "gather.c"
