/* workspace.h: memory that a call's kernels need beside its tensors, out of the cache that tensors come from: counted,
 * trimmed and shared like theirs. A backend asks for it while it queues a call, so that nothing here waits for other
 * work. */
#ifndef PC__WORKSPACE_H
#define PC__WORKSPACE_H

#include "device/graph.h"

/* At least `bytes` bytes for the work that is being queued on the stream, whose lock is held; they go back to the cache
 * when it is queued, ordered behind it. A level has one block at a time: the next request of the same call may get the
 * same memory. NULL: PC_ERR_MEMORY. */
void *pc__workspace(pc_stream *stream, int level, size_t bytes) PC_MUST_USE;

/* The same for a call that is being captured: the graph's, for all launches; its lender's where that has one. */
void *pc__graph_workspace(pc_graph *graph, pc_stream *stream, size_t bytes) PC_MUST_USE;

/* Bytes of all that the graph has. */
size_t pc__graph_workspaces(const pc_graph *graph);

/* Work `ticket` of the stream, which used them last, is queued; no lock is held. */
void pc__workspaces_give(const pc__workspaces *used, const pc_stream *stream, uint64_t ticket);

#endif
