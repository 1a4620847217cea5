/* depthwise_planes_f64.c: depthwise_planes.c in double. */
#define PC__DOUBLE
#include "depthwise_planes.c"
