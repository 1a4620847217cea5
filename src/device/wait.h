/* wait.h: where the host waits for a device. Every such place goes through here: the policy against hidden waits, the
 * timeline and the stream checker see it. */
#ifndef PC__WAIT_H
#define PC__WAIT_H

#include "device/backend.h"

/* True when work `ticket` of the stream is done. */
bool pc__ticket_done(pc_stream *stream, uint64_t ticket);

/* The host waits for work `ticket` because `who` (a call's name) needs it. `why` is for the timeline; NULL where the
 * program asked for a wait by name. Returns the failure of work up to it. */
pc_status pc__host_wait(pc_stream *stream, uint64_t ticket, const char *who, const char *why);

/* The policy's word about a wait that `who` may need though it is not asked for, before anything is queued for it. */
pc_status pc__wait_allowed(pc_device device, const char *who);

/* Everything queued on the stream. */
pc_status pc__stream_finish(pc_stream *stream, const char *who);

#endif
