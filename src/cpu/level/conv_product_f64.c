/* conv_product_f64.c: conv_product.c in double. */
#define PC__DOUBLE
#include "conv_product.c"
