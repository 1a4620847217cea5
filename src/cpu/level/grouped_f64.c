/* grouped_f64.c: grouped.c in double. */
#define PC__DOUBLE
#include "grouped.c"
