/* trace.h: the timeline of a run: what the host and every stream and engine of the devices did when, as a file that
 * https://ui.perfetto.dev and chrome://tracing open. `PARACORD_TRACE=run.json program` writes one of any program that
 * uses Paracord; the functions here write one of a part of a program.
 *
 *     pc_status status = pc_trace_start("step.json");
 *     PC_TRACE_RANGE("epoch") {                   // a bar in the calling thread's row, over what is called inside
 *         pc_trace_mark("first batch");
 *         ...
 *     }
 *     status = pc_trace_stop();
 *
 * The file is Chrome's trace event format as a JSON array, one event a line, written as the program goes: one that is
 * killed leaves a file that opens too, without at most the last tenth of a second of its events. Ranges and marks cost
 * a few nanoseconds while no trace is written, and an event less than a microsecond while one is. Any thread may call
 * anything here.
 *
 * Under a launcher (dist.h) each rank writes a file of its own: PARACORD_TRACE=run.json is run.rank3.json, and with any other
 * name, or that of a folder, FOLDER/trace.rank3.json (FOLDER/trace.start1.rank3.json in a job that was started again). Such a file
 * holds the rank and what its clock is beside the store's, and each collective with its group and number, by which
 * `paracord trace` makes one timeline of all.
 */
#ifndef PARACORD_TRACE_H
#define PARACORD_TRACE_H

#include <paracord/error.h>

PC_BEGIN

/* Write a trace to the file `path`, over what is there, until pc_trace_stop or the end of the program. PC_ERR_STATE
 * while one is being written already, by PARACORD_TRACE too; PC_ERR_FILE when it cannot be written or another process
 * is writing to it; PC_ERR_ARGUMENT without a path. A child of fork writes nothing, and may start a trace of its own.
 */
PC_API PC_MUST_USE pc_status pc_trace_start(const char *path);

/* Write out the rest and close the file. Work that devices have not done yet is missing: synchronize first.
 * PC_ERR_STATE when there is no trace; PC_ERR_FILE when not everything could be written (when that happens is also
 * logged). */
PC_API PC_MUST_USE pc_status pc_trace_stop(void);

/* A mark without length in the calling thread's row. `name` is UTF-8 and is cut after 192 bytes. */
PC_API void pc_trace_mark(const char *name);

/* A bar in the calling thread's row, from enter to leave, both in that thread; PC_TRACE_RANGE does both. `name` must
 * stay valid until then. Leave it before those that were entered earlier. Leaving twice is allowed. */
typedef struct pc_trace_range {
    const char *name;
    bool open, pushed_;
    uint32_t site_;
    int64_t started_; /* 0: no trace was being written */
} pc_trace_range;

PC_API pc_trace_range pc_trace_range_enter(const char *name);
PC_API void pc_trace_range_leave(pc_trace_range *range);

/* The block that follows, as a range; leaving it by return, break or goto ends it. `break` and `continue` inside leave
 * the range, not a loop around it. */
#define PC_TRACE_RANGE(name) PC_BLOCK_(pc_trace_range, pc_trace_range_leave, pc_trace_range_enter(name))

PC_END
#endif
