/* zero_state.h: for checkpoints: a pc_zero's parameters, and the state that optimisers of its parts keep, of whole
 * parameters. */
#ifndef PC__ZERO_STATE_H
#define PC__ZERO_STATE_H

#include <paracord/data_parallel.h>

/* Those that are shared out, and number i of them. */
int pc__zero_parameters(const pc_zero *zero);
pc_tensor *pc__zero_parameter(const pc_zero *zero, int i, const char **name);

/* In all ranks: whole[slot * parameters + i] becomes what the optimisers keep of parameter i, on the CPU, the caller's; NULL:
 * this rank does not want them. And the other way round. */
pc_status pc__zero_state_collect(pc_zero *zero, const pc_optimizer *of_part, pc_tensor **whole);
pc_status pc__zero_state_put(pc_zero *zero, const pc_optimizer *of_part, pc_tensor *const *whole);

#endif
