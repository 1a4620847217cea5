/* cloud_aws.h: running the user's own aws command, with what it prints kept, within a time limit. */
#ifndef CLI_CLOUD_AWS_H
#define CLI_CLOUD_AWS_H

#include <stddef.h>

#include "command.h"

#define CLI_BYTES_MOST (1 << 28) /* a region's price list has a twentieth */

typedef struct cli_bytes {
    char *data; /* with a zero behind it, or NULL; whoever made it frees it */
    size_t n, room;
    bool full; /* there was more than CLI_BYTES_MOST */
} cli_bytes;

/* Take what there is to read now; false at the end, when it is full, and on failure (errno). */
bool cli_read_some(int fd, cli_bytes *to);

/* Run it (NULL ends the words), without standard input, and keep its output. Fails, after an error that has aws's last
 * words in it, when it cannot be started, fails, or takes longer; a signal ends it too. The command's exit status. */
int cli_run_aws(const cli_call *call, const char *const *words, double limit, cli_bytes *output);

#endif
