/* rehearse.h: a pass that is recorded, to learn of it, and dropped: nothing is computed, and nothing changes. */
#ifndef PC__REHEARSE_H
#define PC__REHEARSE_H

#include "nn/module.h"

#include <paracord/stream.h>

/* Call `work` while all that it queues on the device is recorded. What it returns, or why that cannot be recorded. The thread
 * records nothing there yet: PC_ERR_STATE, with the name of who asks. */
pc_status pc__rehearse(const char *who, pc_device device, pc_status (*work)(void *context, pc_graph *graph),
                       void *context);

/* The module's pass over one input of these, in the mode that it is in, without gradients, on the device of its parameters. */
pc_status pc__rehearse_forward(const char *who, pc_module *module, const pc__meta *input);

#endif
