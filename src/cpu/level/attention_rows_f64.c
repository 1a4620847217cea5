/* attention_rows_f64.c: attention_rows.c in double. */
#define PC__DOUBLE
#include "attention_rows.c"
