/* zero_whole.h: a bucket's weights while parameters, or what stands for them in 16 bits, have all of them. */
#ifndef PC__ZERO_WHOLE_H
#define PC__ZERO_WHOLE_H

#include "parallel/zero.h"

#define PC__ZERO_ELSEWHERE "it is shared out over the ranks by pc_zero, stage 3; pc_zero_gather it first"

/* zero_whole.c. The tensor's numbers lie there from now on. */
void pc__zero_put(pc_tensor *t, pc__storage *storage, int64_t offset);

/* Where this rank's part of bucket b is in all of it. In a scope. */
pc_tensor *pc__zero_place(const pc_zero *zero, int b, pc_tensor *whole);

/* All of bucket b, gathered where it is not there. What was gathered in a recording is nothing outside of it, and the other
 * way round. */
pc_status pc__whole_bring(pc_zero *zero, int b, int kind);
void pc__whole_let_go(pc_zero *zero, int b, int kind);

/* Launches of recorded steps write weights and call nobody here: what was gathered before is what they were. */
void pc__zero_see_launches(pc_zero *zero);

/* zero_use.c: in front of a call; a parameter in 16 bits, for one. Of pc__leaf_set. */
pc_status pc__zero_used(pc__leaf_set *set, pc_tensor *const *tensors, int n, bool write);
pc_tensor *pc__zero_half(pc__leaf_set *set, pc_tensor *leaf, pc_dtype dtype);

#endif
