/* conv_weights_f64.c: conv_weights.c in double. */
#define PC__DOUBLE
#include "conv_weights.c"
