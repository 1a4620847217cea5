/* activate_f64.c: activate.c in double. */
#define PC__DOUBLE
#include "activate.c"
