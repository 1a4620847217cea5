/* conv_f64.c: conv.c in double. */
#define PC__DOUBLE
#include "conv.c"
