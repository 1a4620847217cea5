/* number.h: numbers of text that is no person's: of the environment, files and drivers. They have a point, whatever the
 * program's locale. */
#ifndef PC__NUMBER_H
#define PC__NUMBER_H

#include "base/base.h"

/* As strtod in the C locale. */
PC__SHARED double pc__number_of(const char *text, char **end);

#endif
