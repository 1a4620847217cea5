/* gather.h: batches of a loader whose pictures live on its device, for a training step that is recorded: the step makes
 * its batch itself, in its first kernel, and nothing is left to do on the host.
 *
 *     pc__loader_room(loader, n, &x, &y);
 *     while (pc__loader_pass(loader, &batch))
 *         step: pc__loader_gather(loader, x, y), then what is done with x and y
 *
 * Threads: the loader's one. */
#ifndef PC__GATHER_H
#define PC__GATHER_H

#include <paracord/loader.h>

/* Where its batches are. */
pc_device pc__loader_device(const pc_loader *loader);

/* As pc_loader_next, with which it may alternate, but only n and first are set: nothing is made yet. For loaders with
 * pc_loader_resident. */
bool pc__loader_pass(pc_loader *loader, pc_batch *batch);

/* Room for batches of n pictures, owned by the caller whatever scopes are open. On failure *x may be there. */
pc_status pc__loader_room(const pc_loader *loader, int64_t n, pc_tensor **x, pc_tensor **y);

/* Queue the making of the batch that was passed last. In a recording its launches make the one that was passed last
 * when they are queued. */
pc_status pc__loader_gather(pc_loader *loader, pc_tensor *x, pc_tensor *y);

#endif
