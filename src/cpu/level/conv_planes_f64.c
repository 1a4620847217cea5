/* conv_planes_f64.c: conv_planes.c in double. */
#define PC__DOUBLE
#include "conv_planes.c"
