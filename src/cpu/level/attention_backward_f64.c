/* attention_backward_f64.c: attention_backward.c in double. */
#define PC__DOUBLE
#include "attention_backward.c"
