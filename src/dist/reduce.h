/* reduce.h: reductions of ranks' numbers on the host, for engines that work there. */
#ifndef PC__DIST_REDUCE_H
#define PC__DIST_REDUCE_H

#include "tensor/tensor.h"

#include <paracord/group.h>

/* to[k][i] = the reduction over j of from[j][i], for i in 0..count-1, k < targets, j < sources. In the order of j; 16-bit numbers in
 * float32, rounded once. A target may be a source. No mean of integers, no bool. Any thread. */
void pc__reduce_ranks(pc_dtype dtype, pc_group_op reduction, void *const *to, int targets, const void *const *from,
                      int sources, int64_t count);

#endif
