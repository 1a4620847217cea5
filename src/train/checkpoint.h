/* checkpoint.h: a training between two batches as one file, written whole or not at all. */
#ifndef PC__CHECKPOINT_H
#define PC__CHECKPOINT_H

#include "train/fit.h"

/* Settings have fewer bytes than this. */
enum { PC__SETTINGS_MOST = 1024 };

/* The key of a line of settings that is not compared where the file has none. */
#define PC__TEST_PICTURES "the set of test pictures"

/* In all ranks, of which the one that speaks writes, of a network that is cut up the one with the first part (and it alone may
 * call it where nothing is shared out or cut): write weights, optimiser state, the thread's generator, the position, the best epoch's weights where they are kept,
 * and the loss curve; waits for the batches under way. `settings`: what must be the same for going on, one "name=value"
 * a line, below 1024 bytes. */
pc_status pc__checkpoint_save(const char *path, pc__fit *fit, const char *settings);

/* Read it back into net and optimiser (which must have been made by the same settings), the thread's generator,
 * fit->at, fit->best and the curve. PC_ERR_STATE names the first setting that differs; PC_ERR_FORMAT when the file is
 * damaged; PC_ERR_STATE, with the name, where a tensor has another dtype or shape. After these nothing is changed; where reading
 * fails later net and optimiser may be changed in part. */
pc_status pc__checkpoint_load(const char *path, pc__fit *fit, const char *settings);

/* *finished: the training that it is of has left all that it was to (fit->finished). PC_ERR_FORMAT also where it does not say what
 * the network is, as one of pc_fit. */
pc_status pc__checkpoint_look(const char *path, bool *finished);

#endif
