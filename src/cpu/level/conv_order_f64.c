/* conv_order_f64.c: conv_order.c in double. */
#define PC__DOUBLE
#include "conv_order.c"
