/* add_input.h: the arrays that a user gives to paracord add. */
#ifndef CLI_ADD_INPUT_H
#define CLI_ADD_INPUT_H

#include "program.h"

/* Whether it is the path of a .npy file, and the array of the host that it holds: int32, int64, float32 or float64.
 * NULL: an error, told. */
bool cli_add_is_file(const char *text);
pc_tensor *cli_add_file(const cli_command *command, const char *path);

/* What "1,2,3" and "4,5,6" become, of which either may be a file that says it itself (`files`, NULL: it is none): the
 * narrowest of int32, int64, float32 and float64 that has the numbers, in float32 up to its 24 bits, and that sums do
 * not overflow. Numbers with a fraction beside a file of float64 are float64. NULL: an error, told: whole numbers whose
 * sums none of them has, or int64 has not beside a file of integers. */
const char *cli_add_dtype(const cli_command *command, const char *const text[2], pc_tensor *const files[2]);

/* "1,2,3", which become `dtype`. NULL: an error, told. */
pc_tensor *cli_add_text(const cli_command *command, const char *text, const char *dtype);

#endif
