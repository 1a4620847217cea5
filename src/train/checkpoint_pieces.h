/* checkpoint_pieces.h: of a checkpoint the parameters and what the optimiser keeps of each, where ranks have pieces of them: the
 * bytes are those of one process. */
#ifndef PC__CHECKPOINT_PIECES_H
#define PC__CHECKPOINT_PIECES_H

#include "train/checkpoint_form.h"

/* In all ranks. `out`: of the one that writes; else NULL. */
pc_status pc__checkpoint_put_pieces(const pc__fit *fit, pc__text *out);

/* As pc__checkpoint_take, in each rank that reads. */
pc_status pc__checkpoint_take_pieces(const char *path, const pc__checkpoint_file *file, size_t *at, const pc__fit *fit);

#endif
