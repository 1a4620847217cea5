/* gather.h: what the library alone asks of loaders; and batches of one whose pictures live on its device, for training steps that are recorded: each makes the
 * batch of the one behind it, on a stream of its own, and nothing is left to do on the host.
 *
 *     pc__loader_room(loader, n, &x, &y);                           two pairs of them, which steps use by turns
 *     while (pc__loader_pass(loader, &batch))
 *         where the step before has not made this batch: pc__loader_gather(loader, x, y)
 *         step: what is done with x and y, then pc__loader_gather_next(loader, next_x, next_y)
 *
 * Threads: the loader's one. */
#ifndef PC__GATHER_H
#define PC__GATHER_H

#include <paracord/loader.h>

/* The label of a sample, without its pixels; of a loader that names classes. */
int pc__loader_label(const pc_loader *loader, int64_t sample);

/* Its labels are classes, each with a name: a folder's, which are float32 [n, 1] where there are two. */
bool pc__loader_names_classes(const pc_loader *loader);

/* Samples of an epoch that are in a batch; of a batch that is not the last one. */
int64_t pc__loader_given(const pc_loader *loader);
int64_t pc__loader_batch(const pc_loader *loader);

/* The samples of epochs are put in an order, by *seed. */
bool pc__loader_shuffles(const pc_loader *loader, uint64_t *seed);

/* Whose part of each batch it gives: as pc_loader_share was told. */
void pc__loader_shared(const pc_loader *loader, int *rank, int *size);

/* Its steps may make batches themselves, as below: pictures on the device. */
bool pc__loader_gathers(const pc_loader *loader);

/* A folder's pictures in two parts, by train.validation_share (.split is not read): decoded once, kept in one cache.
 * `test` may have other augmentation, shuffling and batches. Where no class is large enough for the share *test is
 * NULL. On failure both are. */
pc_status pc__loader_new_parts(const char *folder, pc_loader_options train_options, pc_loader_options test_options,
                               pc_loader **train, pc_loader **test);

/* Where its batches are. */
pc_device pc__loader_device(const pc_loader *loader);

/* As pc_loader_next, with which it may alternate, but only n, first, whole and part are set: nothing is made yet. For loaders with
 * pc__loader_gathers. */
bool pc__loader_pass(pc_loader *loader, pc_batch *batch);

/* Room for batches of n pictures, owned by the caller whatever scopes are open. On failure *x may be there. */
pc_status pc__loader_room(const pc_loader *loader, int64_t n, pc_tensor **x, pc_tensor **y);

/* Queue the making of the batch that was passed last; not in a recording. */
pc_status pc__loader_gather(pc_loader *loader, pc_tensor *x, pc_tensor *y);

/* Whether this epoch has another whole batch, behind the one that was passed last. */
bool pc__loader_has_next(const pc_loader *loader);

/* Queue the making of that one, if there is one. In a recording it is a branch that waits for what it shares alone
 * (plan/branches.c), nothing waits for it, and launches make the batch behind the one that was made last. */
pc_status pc__loader_gather_next(pc_loader *loader, pc_tensor *x, pc_tensor *y);

#endif
