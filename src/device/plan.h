/* plan.h: a recording's list of work, the plan. Calls are known a floor above: these functions live in src/plan/, and
 * are what the floors below give to a plan.
 *
 * Work that is recorded takes its ticket and its place between streams as any other, and goes into the plan instead of
 * a queue. When the recording ends, passes rewrite the plan, its temporaries get their memory, and the backend builds
 * what launches run. */
#ifndef PC__DEVICE_PLAN_H
#define PC__DEVICE_PLAN_H

#include "device/transfer.h"

/* Append work that was recorded on `stream`, in the thread that records. Its storages are noted by pc__graph_uses. */
pc_status pc__plan_call(pc_stream *stream, pc__kernel kernel, const struct pc_call *call, const pc__work *work);
pc_status pc__plan_copy(pc_stream *stream, pc__bytes to, pc__bytes from, size_t n, const pc__work *work);
pc_status pc__plan_function(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work);

/* What is recorded on `stream` from here on comes after what is recorded on `other` by now. */
pc_status pc__plan_wait(pc_stream *stream, pc_stream *other, const pc__work *work);

/* What is recorded by now: how many pieces of work, and number i of them where it is a call, else NULL. */
int pc__plan_count(const pc_graph *graph);
const struct pc_call *pc__plan_call_at(const pc_graph *graph, int i);

/* The recording is complete: rewrite the plan, give out memory, build. */
pc_status pc__plan_build(pc_graph *graph);

/* Whether work up to this point of the build wrote the storage: its ticket; 0: none did, so a launch finds there what
 * was there before it; UINT64_MAX: another stream's did. */
uint64_t pc__plan_wrote(const pc_stream *stream, const pc__storage *storage);

/* In front of a launch on `stream`: what the plan has a 16-bit copy of, and somebody has written since, is cast; and
 * behind it. */
pc_status pc__plan_refresh(struct pc__plan *plan, pc_stream *stream);
void pc__plan_launched(struct pc__plan *plan);

void pc__plan_free(struct pc__plan *plan);

#endif
