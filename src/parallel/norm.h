/* norm.h: the norm for clipping, of gradients of which every rank has a part. */
#ifndef PC__NORM_OF_ALL_H
#define PC__NORM_OF_ALL_H

#include <paracord/group.h>

/* clip, float64 [2]: of this rank's norm and factor it makes those of all ranks' parts together. most: the norm that the
 * factor leaves at most. All ranks call it. */
pc_status pc__norm_of_all(pc_group *group, pc_tensor *clip, double most);

#endif
