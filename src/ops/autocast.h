/* autocast.h: what ops ask before they take their inputs, and what ends the life of casts that are kept. */
#ifndef PC__AUTOCAST_H
#define PC__AUTOCAST_H

#include "tensor/tensor.h"

#include <paracord/amp.h>

static inline bool pc__autocasting(void)
{
    return pc_autocast_dtype() != PC_F32;
}

/* t as products take it, and as sums and losses do; t itself where nothing is to be done. NULL flows. */
pc_tensor *pc__autocast_down(pc_tensor *t);
pc_tensor *pc__autocast_up(pc_tensor *t);

/* Casts of many parameters in one kernel, kept until products ask for them: true for a parameter that is to be among
 * them; and of n such, all on one device. With them goes x, dense, for which pc__autocast_casts is true, or NULL: its
 * cast is for the first product that asks, until it is forgotten. */
bool pc__autocast_lacks(const pc_tensor *t);
pc_status pc__autocast_known(pc_tensor *t, pc_tensor *cast); /* of one of them: somebody else has its cast already */
bool pc__autocast_casts(const pc_tensor *x);
pc_status pc__autocast_ahead(pc_tensor *const *list, int n, pc_tensor *x);
void pc__autocast_forget_input(void);

/* While a backward pass runs: returns what pc__autocast_resume gets, and drops the casts that are kept. */
pc_dtype pc__autocast_pause(void);
void pc__autocast_resume(pc_dtype before);

#endif
