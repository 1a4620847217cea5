/* add_input.h: the arrays that a user gives to paracord add. */
#ifndef CLI_ADD_INPUT_H
#define CLI_ADD_INPUT_H

#include "program.h"

/* "1,2,3" or the path of a .npy file as an array of the host: int32, int64, float32 or float64; of numbers `dtype`, or,
 * where that is NULL, int32 where all are whole numbers that fit, else float32. NULL: an error, told. */
pc_tensor *cli_add_input(const cli_command *command, const char *text, const char *dtype);

#endif
