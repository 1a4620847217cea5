/* depthwise_backward_f64.c: depthwise_backward.c in double. */
#define PC__DOUBLE
#include "depthwise_backward.c"
