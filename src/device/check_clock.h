/* check_clock.h: happens-before for the stream checker: what is certain to be done when a piece of work starts.
 *
 * Everything here is called under the checker's lock. Functions that return bool give false when memory fails; what
 * they were to note is lost then, and the caller starts over.
 */
#ifndef PC__CHECK_CLOCK_H
#define PC__CHECK_CLOCK_H

#include "device/backend.h"

/* Per stream the last ticket known to be done, sorted by stream. Shared by reference and never changed; NULL knows
 * nothing. */
typedef struct pc__clock_mark {
    uint32_t stream;
    uint64_t ticket;
} pc__clock_mark;

typedef struct pc__clock {
    int references, count;
    pc__clock_mark marks[];
} pc__clock;

bool pc__clock_knows(const pc__clock *clock, uint32_t stream, uint64_t ticket);

/* *clock learns what `other` knows, and that `stream` (0: none) is done up to `ticket`. */
bool pc__clock_join(pc__clock **clock, const pc__clock *other, uint32_t stream, uint64_t ticket);
void pc__clock_drop(pc__clock *clock);

/* Work `ticket` is queued on `stream`; *clock, borrowed until the next call, is what it may rely on. */
bool pc__hb_work(const pc_stream *stream, uint64_t ticket, const pc__clock **clock);

/* The same for what the host does now. */
const pc__clock *pc__hb_host(void);
uint64_t pc__hb_host_version(void); /* another number whenever that has changed */

bool pc__hb_stream_waits(const pc_stream *stream, const pc_stream *other, uint64_t ticket);
bool pc__hb_host_waited(const pc_stream *other, uint64_t ticket);
bool pc__hb_event_recorded(const pc_event *event, const pc_stream *stream);
bool pc__hb_event_waits(const pc_event *event, const pc_stream *stream);
bool pc__hb_event_host_waited(const pc_event *event);
void pc__hb_event_gone(const pc_event *event);

/* Know nothing of anything. */
void pc__hb_clear(void);

/* Waits that were taken for waits for later work, because a stream's past had become too long. */
extern uint64_t pc__hb_blurred;

#endif
