/* attention_few_f64.c: attention_few.c in double. */
#define PC__DOUBLE
#include "attention_few.c"
