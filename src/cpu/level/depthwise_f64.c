/* depthwise_f64.c: depthwise.c in double. */
#define PC__DOUBLE
#include "depthwise.c"
