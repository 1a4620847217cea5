/* reduce_order.h: the order in which a reduction goes over its tensor. A mask has a bit for each dimension that is reduced. */
#ifndef PC__OP_REDUCE_ORDER_H
#define PC__OP_REDUCE_ORDER_H

#include "ops/table.h"

/* Dimensions of one element, which are in nobody's way. */
unsigned pc__reduce_ones_of(const pc_tensor *t);

/* Of the runs of dimensions in the mask the one with the most elements; dimensions of 1 part none, and go with any. */
unsigned pc__reduce_longest_run(const pc_tensor *t, unsigned mask);

/* Whether the dimensions in the mask are side by side, but for those of one element. */
bool pc__reduce_is_run(const pc_tensor *t, unsigned mask);

/* Inputs with gaps that kernels read on CUDA: of reductions to one state, of extremes, which take more of them, or of sums, which
 * take most. */
typedef enum pc__gaps { PC__GAPS_STATES, PC__GAPS_EXTREMES, PC__GAPS_SUMS } pc__gaps;

/* Of a tensor with gaps what sums off CUDA reduce first where it lies: rows without gaps, or what is in front of them, as one
 * dimension to memory. 0: they do not, or it has none. */
unsigned pc__reduce_gapped_run(const pc_tensor *t, unsigned mask);

/* t as kernels take it: without gaps in C order, its dimensions turned for that rather than copied where they can be; `order`
 * says which dimension each is, and the mask follows. */
pc_tensor *pc__reduce_in_memory_order(pc_tensor *t, unsigned *mask, pc__gaps gaps, pc_shape *order);

/* The same, and what is in the mask is one run: behind the rest, where it is none by itself. */
pc_tensor *pc__reduce_as_run(pc_tensor *t, unsigned *mask, pc__gaps gaps, pc_shape *order);

/* What is left, its dimensions (all but those in the mask, or those as 1) in the order that they had. */
pc_tensor *pc__reduce_in_own_order(pc_tensor *t, unsigned mask, bool keepdim, const pc_shape *order);

#endif
