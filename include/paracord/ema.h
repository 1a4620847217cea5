/* ema.h: a moving average of a network's weights, which often does better than the weights themselves (Polyak and
 * Juditsky 1992; torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn).
 *
 *     pc_ema *ema = pc_ema_new(net, 0.999);
 *     ...
 *     if (pc_optimizer_step(adam) != PC_OK || pc_ema_update(ema) != PC_OK)      // in the step's function
 *         return pc_error_last()->status;
 *     ...
 *     if (pc_ema_swap_in(ema) == PC_OK) {
 *         accuracy = measure(net);                                             // of the averages
 *         status = pc_ema_swap_out(ema);                                       // and training goes on
 *     }
 *
 * Threads: as its network, one at a time.
 */
#ifndef PARACORD_EMA_H
#define PARACORD_EMA_H

#include <paracord/nn.h>

PC_BEGIN

typedef struct pc_ema pc_ema;

/* Averages of all parameters that `module` has now, on their device (as an optimiser: made after pc_module_to), in their
 * dtype, and of 16-bit ones in float32. decay in [0, 1). Buffers, such as running statistics, have no average: those of
 * the network go with either. The caller owns it; pc_ema_free leaves the network as it is. Of a network that was moved since,
 * updates and swaps are PC_ERR_STATE. */
PC_API PC_MUST_USE pc_ema *pc_ema_new(pc_module *module, double decay);
PC_API void pc_ema_free(pc_ema *ema);

/* average = decay average + (1 - decay) parameter; the first time the parameter itself. It is work on the device, which
 * recorded steps (step.h) repeat. PC_ERR_STATE between swap_in and swap_out. */
PC_API PC_MUST_USE pc_status pc_ema_update(pc_ema *ema);

/* The network's parameters become the averages, and what they were before. PC_ERR_STATE the second time, and in a
 * recording. */
PC_API PC_MUST_USE pc_status pc_ema_swap_in(pc_ema *ema);
PC_API PC_MUST_USE pc_status pc_ema_swap_out(pc_ema *ema);

/* What there is to keep, by PyTorch's names: "n_averaged", an int64 that counts updates, and "module.0.weight" and so on.
 * As pc_module_state_list. And taken again, as by pc_module_load: every name once, with its shape. */
PC_API int pc_ema_state_list(const pc_ema *ema, pc_parameter *list, int room);
PC_API PC_MUST_USE pc_status pc_ema_load(pc_ema *ema, const pc_parameter *state, int count);

PC_END
#endif
