/* parts.h: asking, and reading the answer. */
#ifndef PC__RAS_PARTS_H
#define PC__RAS_PARTS_H

#include "base/base.h"

#include <paracord-tools/ras.h>

/* ask.c: the answer in `text`, and at which address ("localhost:28028"). */
pc_status pc__ras_ask(const pc_ras_options *options, char address[128], pc__text *text);

#endif
