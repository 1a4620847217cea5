/* waits.h: which work of which other stream the work of a stream waited for, until it is known whether that failed: for
 * backends that do not skip what is built on a failure. */
#ifndef PC__WAITS_H
#define PC__WAITS_H

#include "device/backend.h"

/* Work `ticket` of the stream, whose lock is held, waits for work `for_ticket` of `other`. */
pc_status pc__waits_note(pc_stream *stream, uint64_t ticket, const pc_stream *other, uint64_t for_ticket);

/* Work of the stream up to the ticket is done: what it waited for is looked at, and where that failed, so has it. */
void pc__waits_look(pc_stream *stream, uint64_t ticket);

void pc__waits_free(pc_stream *stream);

/* Work of that ticket was not queued after all: what it was to wait for is nobody's. The stream's lock is held. */
void pc__waits_forget(pc_stream *stream, uint64_t ticket);

#endif
