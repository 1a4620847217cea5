/* trace_write.h: the file of the running trace, its rows and its arrows; for src/device/trace*.c alone.
 *
 *     const char *place;
 *     if (!pc__trace_enter(site, &place)) return;
 *     pc__trace_event("X", name, "op", pc__trace_host_row(), started);
 *     pc__trace_micros("dur", ended - started);
 *     pc__trace_args();
 *     pc__trace_integer("bytes", bytes);
 *     pc__trace_finish();
 *     pc__trace_leave();
 *
 * Nothing here takes memory: buffer and tables have fixed sizes. What finds no room is left out and counted. */
#ifndef PC__TRACE_WRITE_H
#define PC__TRACE_WRITE_H

#include "base/base.h"
#include "device/trace.h"

#define PC__TRACE_CLIP PC__SITE_TEXT /* bytes of a text that are written */

typedef struct pc__row {
    int process;
    uint32_t thread;
} pc__row;

/* trace_file.c. Take the trace's lock, with the words for `site` in *place ("" for 0), valid until pc__trace_leave.
 * False, and nothing to leave, when no trace is being written or the calling thread is writing an event already (in a
 * signal handler). Everything below is called in between. Any thread. */
bool pc__trace_enter(pc__site site, const char **place);
void pc__trace_leave(void);
void pc__trace_put(const char *bytes, size_t n);
void pc__trace_wrote(void);       /* a line is complete that is an event */
void pc__trace_drop(void);        /* an event is left out */
int64_t pc__trace_origin(void);   /* pc__now() at the start of the trace */
unsigned pc__trace_number(void);  /* of the trace, from 1: tells a new one from the last */
void pc__trace_abandon(void);     /* end it without a file */
void pc__trace_finish_file(void); /* at exit: pc_trace_stop where there is a trace; what fails is said */

/* trace_write.c. One event: head, members, args with members, finish. `cat` may be NULL; NULL and "" leave a text out.
 */
void pc__trace_event(const char *phase, const char *name, const char *cat, pc__row row, int64_t at);
void pc__trace_integer(const char *key, int64_t value);
void pc__trace_micros(const char *key, int64_t nanoseconds);
void pc__trace_text(const char *key, const char *text);
void pc__trace_args(void);
void pc__trace_finish(void);
void pc__trace_head(void);
void pc__trace_foot(int64_t events, int64_t dropped);

/* trace_rows.c. Rows; the first event in one names it. */
pc__row pc__trace_host_row(void); /* the calling thread's */
pc__row pc__trace_rank_row(int member);
pc__row pc__trace_stream_row(pc_device device, uint32_t stream);
pc__row pc__trace_engine_row(pc_device device, const char *engine, int lane);
void pc__trace_rows_reset(void);

/* trace_ranks.c. What is known of the rank, at the timeline's beginning. */
void pc__trace_rank_again(void);

/* trace_wait.c. Arrows between pieces of work of which both ends become known in any order. */
void pc__trace_arrow_wanted(pc__row row, uint64_t ticket, pc__row other, uint64_t other_ticket);
void pc__trace_arrow_work(pc__row row, uint64_t ticket, int64_t started, int64_t ended);
void pc__trace_arrows_reset(void);

/* trace_site.c. The words for a site if they are known; else resolve them without the trace's lock and note them. */
const char *pc__trace_place(pc__site site);
void pc__trace_place_resolve(pc__site site, char text[PC__SITE_TEXT]);
void pc__trace_place_note(pc__site site, const char *text);

/* trace_env.c. Tell the program, and who set PARACORD_TRACE, that the trace fails. Without the lock. */
void pc__trace_complain(const char *message, const char *cause);

#endif
