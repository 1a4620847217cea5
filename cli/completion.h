/* completion.h: scripts that teach a shell the command's names, options and values; made from the rows. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "command.h"

/* The words that may stand for an argument or as an option's value, each with a blank before it but the first; how many
 * there are. */
int cli_complete_argument(const cli_argument *argument);
int cli_complete_value(const cli_option *option);

/* One script each, to standard output. */
void cli_complete_bash(void);
void cli_complete_zsh(void);
void cli_complete_fish(void);

#endif
