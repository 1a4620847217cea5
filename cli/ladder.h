/* ladder.h: from the simplest kernel to the library's, rung by rung. */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include "program.h"

/* Run all rungs of the program's device and print them; the exit status. size 0: what fits the device. */
int cli_ladder_add(cli_program *p, int64_t size);
int cli_ladder_matmul(cli_program *p, int64_t size);

#endif
