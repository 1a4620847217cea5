/* dump.h: the journal as a file of this process in the folder that PARACORD_DIST_DUMP names, for `paracord trace calls`; nothing
 * where it names none. calls.rank3.json, and calls.start1.rank3.json of a job that was started again. Any thread; no errors:
 * what cannot be written is logged. */
#ifndef PC__DIST_DUMP_H
#define PC__DIST_DUMP_H

#include "base/base.h"

/* The folder, or NULL. */
const char *pc__dump_folder(void);

/* A wait of this rank has ended badly: write it, and have all ranks that live write theirs. */
void pc__dump_all(const char *why);

/* Write it now. Those that come within a second of each other are one. */
void pc__dump_write(const char *why);

/* Write it in a thread of its own: somebody else asks. `settle` waits for those. */
void pc__dump_begin(const char *why);
void pc__dump_settle(void);

#endif
