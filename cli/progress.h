/* progress.h: how far a run is: one line that is drawn over itself on a terminal, nothing elsewhere.
 *
 * The line goes to standard error, so that results on standard output can be kept. The cursor stays visible and no
 * mode of the terminal is changed: whatever ends the process leaves the terminal as it was.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <paracord/train.h>

typedef struct cli_progress {
    bool live;    /* standard error is a terminal that can draw over a line */
    bool drawn;   /* the line is on the screen */
    int64_t last; /* when it was drawn, in nanoseconds */
} cli_progress;

#define CLI_PROGRESS_MAX 1024

void cli_progress_start(cli_progress *progress);

/* Show where the run is, at most ten times a second. */
void cli_progress_show(cli_progress *progress, const pc_progress *at);

/* Take the line away before something else is written. */
void cli_progress_clear(cli_progress *progress);

/* The line for a terminal of `width` columns, at most width - 1 of them used. Parts that do not fit are left out, the
 * least important first; numbers that are not known (NaN, time left below 0) are left out too. */
char *cli_progress_line(const pc_progress *at, int width, bool utf8, char line[CLI_PROGRESS_MAX]);

/* "0:07", "12:34", "1:02:03" */
char *cli_duration(double seconds, char text[32]);

#endif
