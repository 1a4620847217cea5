/* add_input.h: the arrays that a user gives to paracord add. */
#ifndef CLI_ADD_INPUT_H
#define CLI_ADD_INPUT_H

#include "program.h"

/* What "1,2,3" and "4,5,6" become, of which either may be the path of a .npy file that says it itself: the narrowest of int32,
 * int64, float32 and float64 that has the numbers, in float32 up to its 24 bits, and that sums do not overflow. */
const char *cli_add_dtype(const char *const text[2]);

/* "1,2,3", which become `dtype`, or the path of a .npy file as an array of the host: int32, int64, float32 or float64.
 * NULL: an error, told. */
pc_tensor *cli_add_input(const cli_command *command, const char *text, const char *dtype);

#endif
