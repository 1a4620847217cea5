/* norm.h: what the layers that normalise share. */
#ifndef PC__NN_NORM_H
#define PC__NN_NORM_H

#include "nn/module.h"

/* Parameters of that shape: a weight of ones, a bias of zeros. */
pc_status pc__norm_parameters(pc_module *module, pc_shape shape, bool weight, bool bias);

bool pc__norm_eps_fits(double eps);

#endif
