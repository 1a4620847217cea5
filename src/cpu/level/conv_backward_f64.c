/* conv_backward_f64.c: conv_backward.c in double. */
#define PC__DOUBLE
#include "conv_backward.c"
