/* checkpoint_cut.h: tensors of a checkpoint where the network is cut up among ranks (parallel/cut.h): the file has whole ones, as
 * one process would write them. */
#ifndef PC__CHECKPOINT_CUT_H
#define PC__CHECKPOINT_CUT_H

#include "parallel/cut.h"
#include "train/checkpoint_form.h"

/* Of the ranks among which parameters are cut that are trained, by the optimiser or shared out by zero (may be NULL), or else
 * those of the network, which need not have the trained ones; NULL: all are whole. */
pc_group *pc__checkpoint_network(pc_module *net, const pc_optimizer *optimizer, const pc_zero *zero);

/* Which part of a whole one a parameter is, of these; NULL: it is whole, or no parameter. */
const pc__cut *pc__checkpoint_cut_of(const pc__fit *fit, const pc_tensor *parameter);

/* What the file has of t, which is of a parameter that is cut so: a tensor of that shape without memory for it. The scope's. */
const pc_tensor *pc__checkpoint_whole(const pc__cut *cut, const pc_tensor *t);

/* What the file has of t, on `device`: in all ranks of the network. cut NULL: t. The scope's. */
pc_tensor *pc__checkpoint_join(const pc__cut *cut, pc_tensor *t, pc_device device);

/* pc__checkpoint_take of this rank's part. */
pc_status pc__checkpoint_take_part(const char *path, const pc__checkpoint_file *file, size_t *at, const pc__cut *cut,
                                   pc_tensor *t, const char *name);

#endif
