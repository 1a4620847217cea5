/* values.h: what the parser asks about the value of an option. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "options.h"

/* Write the message and return false. */
bool cli_wrong(char *message, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Check `value` against the row and put it into the settings; false with a message that names what would be right. */
bool cli_store(const cli_option *option, const char *value, void *settings, char *message);

/* "a, b or c" */
char *cli_list_choices(const cli_choice *choices, char *text, size_t n);

/* The choice that `value` names, or NULL with a message that begins with `what`. */
const char *cli_find_choice(const char *what, const cli_choice *choices, const char *value, char *message);

#endif
