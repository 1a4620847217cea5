/* init.h: weight and bias of a layer. */
#ifndef PC__INIT_H
#define PC__INIT_H

#include "nn/module.h"

/* Register "weight" of a shape [out, in, ...] and, unless no_bias, "bias" [out], initialised. */
pc_status pc__add_weights(pc_module *module, pc_shape shape, bool no_bias, pc_init_kind kind);

/* The same with so many biases; 0: none. */
pc_status pc__add_weights_and(pc_module *module, pc_shape shape, int64_t biases, pc_init_kind kind);

#endif
