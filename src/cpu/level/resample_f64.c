/* resample_f64.c: resample.c in double. */
#define PC__DOUBLE
#include "resample.c"
