/* planar_weight_f64.c: planar_weight.c in double. */
#define PC__DOUBLE
#include "planar_weight.c"
