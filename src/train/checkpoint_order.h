/* checkpoint_order.h: which tensors of a training its checkpoint has: parameters first, then what the optimiser keeps of each, then
 * the loss scaler's numbers, then buffers, then the weights of the best epoch. */
#ifndef PC__CHECKPOINT_ORDER_H
#define PC__CHECKPOINT_ORDER_H

#include "train/checkpoint_form.h"

/* Parameters and what the optimiser keeps of each; all but the weights of the best epoch. */
int pc__checkpoint_stepped(const pc__fit *fit);
int pc__checkpoint_tensors(const pc__fit *fit);

/* Number i of them; of those that are shared out, which come first, none. */
pc_tensor *pc__checkpoint_tensor_at(const pc__fit *fit, int i);

/* The tensor of the network that number i is, or is kept of; NULL: it is the loss scaler's. */
pc_tensor *pc__checkpoint_of_network(const pc__fit *fit, int i);

/* PC_OK where the first n tensors of the file have the dtypes and the shapes of these, and no others follow that its header
 * does not tell of; else the first that has not is named. */
pc_status pc__checkpoint_check_tensors(const char *path, const pc__checkpoint_file *file, const pc__fit *fit, int n);

#endif
