/* attention_f64.c: attention.c in double. */
#define PC__DOUBLE
#include "attention.c"
