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

/* While a backward pass runs: returns what pc__autocast_resume gets, and drops the casts that are kept. */
pc_dtype pc__autocast_pause(void);
void pc__autocast_resume(pc_dtype before);

#endif
