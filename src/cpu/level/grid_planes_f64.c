/* grid_planes_f64.c: grid_planes.c in double. */
#define PC__DOUBLE
#include "grid_planes.c"
