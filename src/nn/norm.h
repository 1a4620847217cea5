/* norm.h: what the layers that normalise share. */
#ifndef PC__NN_NORM_H
#define PC__NN_NORM_H

#include "nn/module.h"
#include "ops/norm.h"

/* Parameters of that shape: a weight of ones, a bias of zeros. */
pc_status pc__norm_parameters(pc_module *module, pc_shape shape, bool weight, bool bias);

/* batch_norm.c: batches that such a layer is trained with are those of all peers. */
bool pc__is_batch_norm(const pc_module *module);
void pc__batch_norm_share(pc_module *module, const pc__norm_peers *peers);

bool pc__norm_eps_fits(double eps);

#endif
