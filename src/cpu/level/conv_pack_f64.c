/* conv_pack_f64.c: conv_pack.c in double. */
#define PC__DOUBLE
#include "conv_pack.c"
