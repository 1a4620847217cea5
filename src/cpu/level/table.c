/* table.c: the array of this level's kernels. */
#include "cpu/level/kernels.h"
#include "ops/step.h"
#include "tensor/floats.h"

/* Kernels that read and write 16-bit numbers themselves; the others do it by way of float32. */
static const bool takes_halves[PC__OP_COUNT] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    [PC__OP_##name] = true, [PC__OP_##name##_backward] = true,
#define PC__UNARY(name, dtypes, cost, flags, f) [PC__OP_##name] = true,
#define PC__BINARY(name, dtypes, cost, flags, f) [PC__OP_##name] = true,
#define PC__PARAMETRIC(name, cost, f) [PC__OP_##name] = true,
#include "ops/pointwise.def"
    [PC__OP_region] = true,
    [PC__OP_own] = true,
    [PC__OP_eq] = true,
    [PC__OP_ne] = true,
    [PC__OP_lt] = true,
    [PC__OP_le] = true,
    [PC__OP_gt] = true,
    [PC__OP_ge] = true,
    [PC__OP_cast] = true,
    [PC__OP_cast_many] = true,
    [PC__OP_copy] = true,
    [PC__OP_fill] = true,
    [PC__OP_cat] = true,
    [PC__OP_where] = true,
    [PC__OP_index_select] = true,
    [PC__OP_embedding] = true,
    [PC__OP_index_select_backward] = true,
    [PC__OP_index_add] = true,
    [PC__OP_index_copy] = true,
    [PC__OP_gather] = true,
    [PC__OP_flip] = true,
    [PC__OP_uniform] = true,
    [PC__OP_normal] = true,
    [PC__OP_matmul] = true,
    [PC__OP_attention] = true,
    [PC__OP_attention_backward] = true,
    [PC__OP_linear] = true,
    [PC__OP_conv2d] = true,
    [PC__OP_conv2d_backward] = true,
    [PC__OP_convolve] = true,
    [PC__OP_convolve_input] = true,
    [PC__OP_convolve_weight] = true,
    [PC__OP_max_pool2d] = true,
    [PC__OP_max_pool2d_backward] = true,
    [PC__OP_avg_pool2d] = true,
    [PC__OP_avg_pool2d_backward] = true,
    [PC__OP_resample] = true,
    [PC__OP_resample_backward] = true,
    [PC__OP_sum] = true,
    [PC__OP_max] = true,
    [PC__OP_min] = true,
    [PC__OP_prod] = true,
    [PC__OP_any] = true,
    [PC__OP_all] = true,
    [PC__OP_norm] = true,
    [PC__OP_var] = true,
    [PC__OP_dot] = true,
    [PC__OP_max_backward] = true,
    [PC__OP_softmax] = true,
    [PC__OP_log_softmax] = true,
    [PC__OP_softmax_backward] = true,
    [PC__OP_log_softmax_backward] = true,
    [PC__OP_layer_norm] = true,
    [PC__OP_rms_norm] = true,
    [PC__OP_layer_norm_backward] = true,
    [PC__OP_batch_norm] = true,
    [PC__OP_group_norm] = true,
    [PC__OP_stored_norm] = true,
    [PC__OP_channel_norm_backward] = true,
    [PC__OP_bce_with_logits] = true,
    [PC__OP_cross_entropy] = true,
    [PC__OP_cross_entropy_backward] = true,
    [PC__OP_mse] = true,
};

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    static pc_status run_##name(pc_stream *stream, const pc_call *call)                                                \
    {                                                                                                                  \
        if (!takes_halves[PC__OP_##name] && pc__has_halves(call) && !pc__step_has_copies(call))                        \
            return PC__K(in_floats)(stream, call, PC__K(op_##name));                                                   \
        return PC__K(op_##name)(stream, call);                                                                         \
    }
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

const pc__kernel PC__K(kernels)[PC__OP_COUNT] = {
#define PC__OP(name, outputs, flags, infer, gradient) [PC__OP_##name] = run_##name,
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
};
