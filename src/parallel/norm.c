/* norm.c: one norm of what several ranks have parts of. */
#include "parallel/norm.h"

#include "tensor/tensor.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

static pc_status add_up(pc_group *group, pc_tensor *clip, double most)
{
    pc_tensor *norm = pc_slice(clip, 0, 0, 1, 1), *squares = pc_mul(norm, norm);
    PC__TRY(pc_group_all_reduce(group, squares, PC_GROUP_SUM));
    pc_tensor *all = pc_sqrt(squares);
    pc_tensor *factor =
        pc_clamp(pc_div(pc_full(PC_SHAPE(1), most, PC_F64, pc_tensor_device(clip)), pc_add_scalar(all, 1e-6)), 0, 1);
    PC__TRY(pc_copy(norm, all));
    return pc_copy(pc_slice(clip, 0, 1, 2, 1), factor);
}

pc_status pc__norm_of_all(pc_group *group, pc_tensor *clip, double most)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = add_up(group, clip, most);
        }
    }
    return status;
}
