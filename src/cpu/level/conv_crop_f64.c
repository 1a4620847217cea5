/* conv_crop_f64.c: conv_crop.c in double. */
#define PC__DOUBLE
#include "conv_crop.c"
