/* narrow.h: gradients of float32 that cross the links in 16 bits. */
#ifndef PC__NARROW_H
#define PC__NARROW_H

#include "parallel/reducer.h"

/* Whether a reducer can reduce in `dtype`: in 16 bits, or, by 0 or float32, in each bucket's own. PC_ERR_ARGUMENT. */
pc_status pc__narrow_check(const char *who, pc_dtype dtype);

/* `flat` becomes the mean of all ranks'. */
pc_status pc__narrow_all_reduce(const pc__reducer *reducer, pc_tensor *flat);

/* `part` becomes this rank's part of that. */
pc_status pc__narrow_reduce_scatter(const pc__reducer *reducer, pc_tensor *part, pc_tensor *flat);

#endif
