/* braces.h: many names in one. */
#ifndef PC__BRACES_H
#define PC__BRACES_H

#include "base/base.h"

/* Call `each`, in order, with all that a pattern with {a,b} and {000..146} stands for (other braces are letters), until it
 * fails. */
pc_status pc__braces_expand(const char *pattern, pc_status (*each)(void *context, const char *pattern), void *context);

#endif
