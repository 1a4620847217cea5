/* ready.c: what a kernel that is started early (shared/dependent_launch.cuh) may read before it waits for the one in front of it.
 *
 * A kernel of ours lets the next one start when it has waited itself. So when a kernel runs at all, be it before its
 * wait, all that was queued in front of the last kernel of ours before it is complete: whatever foreign kernels,
 * copies or waits stand in between, they came behind that one's start. Of that one itself nothing is.
 *
 * face->started is a ticket up to which every call's kernels are launched, of the stream's newest call of which it is
 * certain that it launched one of ours, face->complete the one before: what a call up to `complete` wrote is ready for
 * every later one. Calls of nothing, and of foreign kernels or copies alone, move neither. Both move at the end of a
 * call: one that launches what was held back of earlier ones, be it in one kernel with its own, sees tickets older than
 * those, and so does the next. Where something stays held back `started` stays, too.
 *
 * A graph's tickets count on, and are larger than all before. Of what its calls write the plan knows the last one in
 * front of the call at hand; what none has written by now was there when a launch began, which waits for all before it as
 * a whole. When it is built, both are forgotten (branch.c): its calls did not run, so those before it are the newest
 * again. Behind the work of two branches early starts are off, and the wait is over at once.
 *
 * What a recording does aside has these two of its own. A run of it begins behind all of the stream's calls so far, which
 * have no later tickets than the calls of the run; and what it writes the stream reads only behind a wait for it, where
 * nothing is started early. */
#include "cuda/runtime/state.h"

bool pc__cuda_ready(const pc_stream *stream, const pc_tensor *t)
{
    const pc__users *o = &t->storage->order;
    if (stream->recording)
        return pc__plan_wrote(stream, t->storage) <= pc__cuda_state_of(stream)->face.complete;
    if (atomic_load_explicit(&o->owner, memory_order_relaxed) != stream->id ||
        atomic_load_explicit(&o->others, memory_order_relaxed))
        return false;
    uint64_t wrote = atomic_load_explicit(&o->wrote, memory_order_relaxed);
    if (wrote > atomic_load_explicit(&stream->ticket, memory_order_relaxed)) /* by the call at hand */
        wrote = o->before;
    return wrote <= pc__cuda_state_of(stream)->face.complete;
}
