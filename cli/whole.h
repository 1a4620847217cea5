/* whole.h: files that are written whole or not at all: first beside the target, in a file that no other
 * command writes (TARGET.paracord-N.tmp), then put in its place. */
#ifndef CLI_WHOLE_H
#define CLI_WHOLE_H

#include "command.h"

/* Whether a file can be written there, so that nobody computes for minutes first. False: an error, told. */
bool cli_may_write(const cli_command *command, const char *path);

/* Write the file by `write`, which returns false for an error of the library. False: an error, told. */
bool cli_write_whole(const cli_command *command, const char *path, bool (*write)(const void *context, FILE *out),
                     const void *context);

#endif
