/* scale.c: what a loss scaler does on the device. */
#include "ops/scale.h"

#include "ops/table.h"

pc_status pc__unscale(pc_tensor *numbers, pc_tensor **gradients, int n)
{
    return pc__call_in_place(PC__OP_unscale, numbers, gradients, n, NULL, 0);
}

pc_status pc__scale_update(pc_tensor *numbers, const pc__scale_attributes *attributes)
{
    return pc__call_in_place(PC__OP_scale_update, numbers, NULL, 0, attributes, sizeof *attributes);
}
