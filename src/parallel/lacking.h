/* lacking.h: parameters of which a pass has brought this rank no gradient, and which have zeros in its place. Where no rank has
 * one a step is to leave them, and what it keeps of them, as they are, as on one device. So a number for each parameter goes
 * the way of the gradients, or with pc_zero by itself in front of a step: 1 where this rank has one; behind that it is above
 * 0 in all ranks where one of them has. The device alone looks at it, and steps of parameters that this rank lacks alone ask
 * for it. */
#ifndef PC__LACKING_H
#define PC__LACKING_H

#include "parallel/reducer.h"

/* `apart`: numbers do not lie in the buckets. */
pc_status pc__lacking_open(pc__reducer *reducer, bool apart);
void pc__lacking_close(pc__reducer *reducer);

/* The pass is over for parameter i, and zeros are its gradient here. */
pc_status pc__lacking_note(pc__reducer *reducer, int i);

/* All that will come to parameters first..last is there, and their numbers are about to go. */
pc_status pc__lacking_tell(pc__reducer *reducer, int first, int last);

/* Of parameter i, where this rank lacks it; NULL: it does not. */
pc_tensor *pc__lacking_number(const pc__reducer *reducer, int i);

#endif
