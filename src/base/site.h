/* site.h: where in the program a call came from, noted cheaply enough for every op that is queued.
 *
 * pc__site_here walks the frame pointers of the library's own functions (it is compiled with them) up to the first
 * return address outside, and gives the same number for the same place each time. Turning a number into "train.c:41
 * (step)" reads debug information and is slow: for reports only. */
#ifndef PC__SITE_H
#define PC__SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t pc__site; /* 0: unknown */

pc__site pc__site_here(void);

/* "train.c:41 (step)" where there is debug information, else "program+0x1234 (step)"; "unknown place" for 0. Returns
 * text. Allocates nothing that outlives the call but what it caches; any thread. */
#define PC__SITE_TEXT 192
char *pc__site_text(pc__site site, char text[PC__SITE_TEXT]);

/* True where the place is known and not the library's own: a plug-in's calls are. */
bool pc__site_is_outside(pc__site site);

/* The return addresses behind a number, the innermost first, and how many (0: unknown): for site_text.c. */
#define PC__SITE_MOST 32
int pc__site_addresses(pc__site site, const uintptr_t **list);

#endif
