/* half.c: calls with 16-bit numbers by kernels that have none: inputs are converted to float32, results rounded once
 * where they are stored. */
#include "cuda/pointwise/each.h"
#include "ops/collective.h"
#include "ops/step.h"
#include "ops/table.h"
#include "tensor/floats.h"

/* Kernels that read and write 16-bit numbers themselves. */
static const bool native[PC__OP_COUNT] = {
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
    [PC__OP_where] = true,
    [PC__OP_cast] = true,
    [PC__OP_cast_many] = true,
    [PC__OP_copy] = true,
    [PC__OP_fill] = true,
    [PC__OP_saxpy] = true,
    [PC__OP_arange] = true,
    [PC__OP_uniform] = true,
    [PC__OP_normal] = true,
    [PC__OP_cat] = true,
    [PC__OP_index_select] = true,
    [PC__OP_embedding] = true,
    [PC__OP_index_select_backward] = true,
    [PC__OP_index_add] = true,
    [PC__OP_index_copy] = true,
    [PC__OP_gather] = true,
    [PC__OP_gather_backward] = true,
    [PC__OP_scatter_add] = true,
    [PC__OP_cumsum] = true,
    [PC__OP_sort] = true,
    [PC__OP_searchsorted] = true,
    [PC__OP_flip] = true,
    [PC__OP_dropout] = true,
    [PC__OP_dropout_backward] = true,
    [PC__OP_attention] = true,
    [PC__OP_attention_backward] = true,
    [PC__OP_bce_with_logits] = true,
    [PC__OP_cross_entropy] = true,
    [PC__OP_cross_entropy_backward] = true,
    [PC__OP_mse] = true,
    [PC__OP_score_step] = true,
    [PC__OP_unscale] = true,
    [PC__OP_matmul] = true,
    [PC__OP_linear] = true,
    [PC__OP_linear_backward] = true,
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
    [PC__OP_softmax_backward] = true,
    [PC__OP_log_softmax] = true,
    [PC__OP_log_softmax_backward] = true,
    [PC__OP_layer_norm] = true,
    [PC__OP_rms_norm] = true,
    [PC__OP_layer_norm_backward] = true,
    [PC__OP_batch_norm] = true,
    [PC__OP_group_norm] = true,
    [PC__OP_stored_norm] = true,
    [PC__OP_channel_norm_backward] = true,
    [PC__OP_max_pool2d] = true,
    [PC__OP_max_pool2d_backward] = true,
    [PC__OP_avg_pool2d] = true,
    [PC__OP_avg_pool2d_backward] = true,
    [PC__OP_conv2d] = true,
    [PC__OP_conv2d_backward] = true,
    [PC__OP_convolve] = true,
    [PC__OP_convolve_input] = true,
    [PC__OP_convolve_weight] = true,
#define NAME(op, in_place, peer) [PC__OP_##op] = true,
    PC__COLLECTIVES(NAME)
#undef NAME
};

bool pc__cuda_wants_floats(const pc_call *call)
{
    return !native[call->op->index] && pc__has_halves(call) && !pc__step_has_copies(call);
}

static pc_status run(pc_stream *stream, const pc_call *call, pc__floats *floats, pc__kernel kernel)
{
    size_t bytes = 1;
    for (int k = 0; k < floats->count; k++)
        bytes += pc__cuda_whole(floats->list[k].storage.bytes);
    char *memory = pc__cuda_scratch(stream, bytes);
    if (!memory)
        return PC_ERR_MEMORY;
    for (int k = 0; k < floats->count; k++) {
        pc__single *s = &floats->list[k];
        s->storage.data = memory;
        memory += pc__cuda_whole(s->storage.bytes);
        if (s->is_read)
            PC__TRY(pc__cuda_copy_tensor(stream, call, &s->tensor, s->of));
    }
    pc__cuda_deeper(stream, 1);
    pc_status status = kernel(stream, &floats->call);
    pc__cuda_deeper(stream, -1);
    for (int k = 0; k < floats->count && status == PC_OK; k++)
        if (floats->list[k].is_written)
            status = pc__cuda_copy_tensor(stream, call, floats->list[k].of, &floats->list[k].tensor);
    return status;
}

pc_status pc__cuda_in_floats(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    pc__floats floats;
    PC__TRY(pc__floats_make(&floats, call));
    pc_status status = run(stream, call, &floats, kernel);
    pc__floats_free(&floats);
    return status;
}
