/* checkpoint_measured.h: what pc_fit measures at the end of an epoch, by its names: by what the better epoch is known, and the
 * metrics in their order. A checkpoint of pc_fit has them where others say what the network is; older ones have not. */
#ifndef PC__CHECKPOINT_MEASURED_H
#define PC__CHECKPOINT_MEASURED_H

#include "train/checkpoint_form.h"

/* Nothing where fit->best.watch is NULL. */
void pc__checkpoint_put_measured(pc__text *out, const pc__fit *fit);

/* Whether the file has them: then it says nothing else of its network. */
bool pc__checkpoint_has_measured(const pc__checkpoint_file *file);

/* PC_ERR_STATE where the file's best epoch is the best by something else than this run's will be. */
pc_status pc__checkpoint_check_measured(const char *path, const pc__checkpoint_file *file, const pc__fit *fit);

/* The metrics of an epoch of the file, in this run's order; NaN what it lacks. In files without names they stay as they are. */
void pc__checkpoint_order_measured(const pc__checkpoint_file *file, const pc__fit *fit, pc_epoch_result *result);

#endif
