/* number.h: numbers of text that is no person's: of the environment, files and drivers. They have a point, whatever the
 * program's locale. */
#ifndef PC__NUMBER_H
#define PC__NUMBER_H

#include "base/base.h"

#include <locale.h>

/* As strtod in the C locale. */
PC__SHARED double pc__number_of(const char *text, char **end);

/* Between these two the calling thread, and it alone, writes and reads numbers as the C locale does. */
typedef struct pc__plain_numbers {
    locale_t plain, before;
} pc__plain_numbers;
PC__SHARED pc__plain_numbers pc__plain_numbers_begin(void);
PC__SHARED void pc__plain_numbers_end(pc__plain_numbers scope);

#endif
