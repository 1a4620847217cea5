/* screen.h: the terminal as a page that is drawn again and again. By ncurses, which is opened when it is used: a
 * machine without it has everything but this. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

typedef enum cli_ink { /* without colours (NO_COLOR, or the terminal has none) all are plain but HEADING and FAINT */
                       CLI_INK_PLAIN,
                       CLI_INK_HEADING,
                       CLI_INK_FAINT,
                       CLI_INK_GREEN,
                       CLI_INK_CYAN,
                       CLI_INK_YELLOW,
                       CLI_INK_RED,
                       CLI_INKS
} cli_ink;

/* What cli_screen_key gives beside letters. */
enum { CLI_KEY_NONE, CLI_KEY_STOP = -1, CLI_KEY_RESIZED = -2, CLI_KEY_UP = -3, CLI_KEY_DOWN = -4 };

/* Take the terminal, or say in one line why not. It is given back as it was by cli_screen_end; while the program is
 * suspended; and when a second signal ends it at once. */
bool cli_screen_begin(char *why, int n);
void cli_screen_end(void);

/* Begin a page, and show it. Lines and columns count from 0. */
void cli_screen_clear(int *lines, int *columns);
void cli_screen_show(void);

/* Text on the page, cut at its edge and at column `end` (0: the edge); what cannot be printed becomes '?'. Returns the
 * column behind it. */
int cli_screen_put(int line, int column, int end, cli_ink ink, const char *text);

/* The next key, or what else happened, within so many milliseconds. CLI_KEY_STOP: a signal asks to leave. */
int cli_screen_key(int64_t milliseconds);

#endif
