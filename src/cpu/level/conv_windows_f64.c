/* conv_windows_f64.c: conv_windows.c in double. */
#define PC__DOUBLE
#include "conv_windows.c"
