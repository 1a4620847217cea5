/* completion.h: scripts that teach a shell the command's names, options and values; made from the rows. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "command.h"

/* One script each, to standard output. */
void cli_complete_bash(void);
void cli_complete_zsh(void);
void cli_complete_fish(void);

#endif
