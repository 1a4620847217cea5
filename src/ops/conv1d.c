/* conv1d.c: convolutions along one dimension: those of pictures of one row, which are views. */
#include "ops/convolve.h"
#include "ops/table.h"

pc_tensor *pc_fn_conv1d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv1d_options options)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, weight);
    if (x->ndim != 3 || weight->ndim != 3 || x->shape[1] != weight->shape[1] * PC__MAX(options.groups, 1))
        return pc__null(PC_ERR_SHAPE,
                        "conv1d: an input of shape %s ([n, c, length]) does not fit a weight of shape %s ([out, c / "
                        "groups, k])",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(weight));
    const pc_fn_conv2d_options pictures = {.stride = {1, options.stride},
                                           .padding = {0, options.padding},
                                           .dilation = {1, options.dilation},
                                           .groups = options.groups,
                                           .activation = options.activation,
                                           .same = options.same};
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *y = pc_fn_conv2d(pc_unsqueeze(x, 2), pc_unsqueeze(weight, 2), bias, pictures);
        result = pc_keep(y ? pc_squeeze(y, 2) : NULL);
    }
    return result;
}
