/* text.h: what is printed: widths, wrapping, styles, names of files, JSON. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns to write for: $COLUMNS, else those of the terminal behind `out`, else 80. */
int cli_width(FILE *out);

/* `out` is a terminal that understands more than plain lines (TERM is set and not "dumb"). */
bool cli_is_terminal(FILE *out);

/* The user's locale writes UTF-8. The first call reads the locale. */
bool cli_utf8(void);

/* Columns that a text takes on a terminal. */
int cli_columns(const char *text);

/* Bold (or dim) letters, where `out` is a terminal and NO_COLOR is not set; otherwise nothing. */
typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM } cli_style;
void cli_set_style(FILE *out, cli_style style);

/* Words filled into lines of `width` columns. The caller stands at column `at`; following lines begin at `indent`.
 * Ends without a newline and returns the column reached. */
int cli_wrap(FILE *out, const char *text, int at, int indent, int width);

/* Spaces from column `at` to column `to`; returns the larger. */
int cli_pad(FILE *out, int at, int to);

/* Text from outside (names of files): control characters become '?', as ls does on a terminal. */
void cli_print_safe(FILE *out, const char *text);

/* A word quoted so that a shell reads it as this one word. */
void cli_print_shell(FILE *out, const char *word);

/* 1234567 as "1,234,567" in `text`, and `text`. */
char *cli_thousands(int64_t number, char text[32]);

/* A JSON string with quotes; bytes that are no UTF-8 become U+FFFD. A JSON number; null for NaN and infinities. */
void cli_json_text(FILE *out, const char *text);
void cli_json_number(FILE *out, double number);

#endif
