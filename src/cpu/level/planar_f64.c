/* planar_f64.c: planar.c in double. */
#define PC__DOUBLE
#include "planar.c"
