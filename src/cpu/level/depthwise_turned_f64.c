/* depthwise_turned_f64.c: depthwise_turned.c in double. */
#define PC__DOUBLE
#include "depthwise_turned.c"
