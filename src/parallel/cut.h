/* cut.h: what layers that are cut up among ranks share. */
#ifndef PC__CUT_H
#define PC__CUT_H

#include "nn/module.h"

#include <paracord/tensor_parallel.h>

/* cut.c: this rank's part of a whole tensor, into `own`; and `own`s of all ranks as one. */
pc_status pc__cut_take(const pc__cut *cut, pc_tensor *own, pc_tensor *whole);
pc_tensor *pc__cut_join(const pc__cut *cut, pc_tensor *own);

/* The same of one tensor after the other, where ranks may fail on the way: *status is how this rank has done so far, and NULL comes back
 * in all of them from where one has failed on. Each goes on to call it for all the others, so that nobody waits. */
pc_tensor *pc__cut_join_next(const pc__cut *cut, pc_tensor *own, pc_status *status);

/* The cut of what has several names in the network and is cut by one of them; NULL: it is whole. Without a network: of `part`. And
 * of a tensor. */
const pc__cut *pc__cut_find(pc_module *module, const pc_tensor *object);
const pc__cut *pc__cut_of(pc_module *module, const pc__named *part);

/* The group that tensors of a network are cut up among; NULL: none are. And whether they are by this one. */
pc_group *pc__cut_group(pc_module *module);
bool pc__is_cut(const pc__cut *cut);

/* All ranks begin to put together the same network, which this one can or cannot. */
pc_status pc__cut_agree(pc_group *group, pc_module *module, pc_status mine);

/* A parameter of the module which is that part. The cut lives as long as the module. */
pc_status pc__cut_parameter(pc_module *module, const char *name, pc_tensor *whole, const pc__cut *cut);

/* PC_ERR_ARGUMENT where the ranks cannot share `size`, of which `what` says what it is. */
pc_status pc__cut_check(const char *who, const char *what, int64_t size, int64_t blocks, const pc_group *group);

/* Of a linear layer that is whole, which they release: NULL flows. */
pc_module *pc__column_linear_of(pc_module *whole, pc_group *group, bool gather_output, int blocks);
pc_module *pc__row_linear_of(pc_module *whole, pc_group *group, bool whole_input);

/* Of a whole table, which stays the caller's. */
pc_module *pc__parallel_embedding_of(pc_tensor *table, pc_group *group, pc_fn_embedding_options options);

/* parallel_embedding.c: places 0 to all - 1 among the `part` that this rank has; *mine, bool, says which are there. Of
 * others it is 0, but what is no place at all stays, and is none of the part either. The scope's. */
pc_tensor *pc__own_index(const pc_group *group, pc_tensor *index, int64_t part, int64_t all, pc_tensor **mine);

/* conjugate.c: without a record; new tensors, but for the part, which is a view. dim is not below 0, and the ranks share it
 * equally. */
pc_tensor *pc__sum_over(pc_group *group, pc_tensor *x);
pc_tensor *pc__gather_over(pc_group *group, pc_tensor *x, int dim);
pc_tensor *pc__own_part(pc_group *group, pc_tensor *x, int dim);

/* Gradients of a network that is cut: this rank's parts of them, and those that are the same in all ranks. */
typedef struct pc__cut_gradients {
    pc_tensor **part, **same;
    int parts, sames;
} pc__cut_gradients;

/* cut_clip.c: clip, float64 [2], becomes the norm of all ranks' gradients together, and its factor; `most` is what that
 * leaves at most. In a scope, without a record. All ranks call it. */
pc_status pc__cut_norm(pc_group *group, const pc__cut_gradients *gradients, pc_tensor *clip, double most);

#endif
