/* batch_norm.c: the layers BatchNorm1d and BatchNorm2d, whose running statistics are buffers. */
#include "nn/norm.h"

#include <math.h>

typedef struct batch_norm_layer {
    int64_t channels;
    double eps, momentum; /* below 0: the mean over all batches */
    int least, most;      /* dimensions */
    pc__norm_peers peers; /* with whom it is trained */
} batch_norm_layer;

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const batch_norm_layer *layer = pc_module_data(module);
    const bool training = pc_module_is_training(module);
    pc_tensor *mean = pc__module_own(module, "running_mean"), *var = pc__module_own(module, "running_var");
    if (x->ndim < layer->least || x->ndim > layer->most || x->shape[1] != layer->channels) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, layer->most == 4 ? "[n, %lld, h, w]" : "[n, %lld] or with a length behind",
                 (long long)layer->channels);
        return pc__null(PC_ERR_SHAPE, "batch_norm: the input has shape %s; it must be %s", PC__SHAPE_OF(x), wanted);
    }
    return pc__batch_norm(x, mean, var, pc__module_own(module, "num_batches_tracked"), pc__module_own(module, "weight"),
                          pc__module_own(module, "bias"), !mean || training, layer->momentum, layer->eps,
                          training ? &layer->peers : NULL);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const batch_norm_layer *layer = pc_module_data(module);
    char momentum[32] = "None";
    if (layer->momentum >= 0)
        snprintf(momentum, sizeof momentum, "%g", layer->momentum);
    snprintf(text, n, "%lld, eps=%g, momentum=%s, affine=%s, bias=%s, track_running_stats=%s",
             (long long)layer->channels, layer->eps, momentum, pc__module_own(module, "weight") ? "True" : "False",
             pc__module_own(module, "bias") ? "True" : "False",
             pc__module_own(module, "running_mean") ? "True" : "False");
}

static const pc_module_class batch_norm1d_class = {.name = "BatchNorm1d", .forward = forward, .describe = describe},
                             batch_norm2d_class = {.name = "BatchNorm2d", .forward = forward, .describe = describe};

bool pc__is_batch_norm(const pc_module *module)
{
    return module->type == &batch_norm1d_class || module->type == &batch_norm2d_class;
}

void pc__batch_norm_share(pc_module *module, const pc__norm_peers *peers)
{
    batch_norm_layer *layer = pc_module_data(module);
    layer->peers = *peers;
    module->version++;
}

static pc_status add_buffers(pc_module *module, int64_t channels)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        const char *const names[] = {"running_mean", "running_var", "num_batches_tracked"};
        pc_tensor *buffers[] = {pc_zeros(PC_SHAPE(channels), PC_F32, PC_DEVICE_CPU),
                                pc_ones(PC_SHAPE(channels), PC_F32, PC_DEVICE_CPU),
                                pc_zeros(PC_SHAPE_SCALAR, PC_I64, PC_DEVICE_CPU)};
        for (int i = 0; i < 3 && status == PC_OK; i++)
            status = buffers[i] ? pc_module_add_buffer(module, names[i], buffers[i]) : pc_error_last()->status;
    }
    return status;
}

static pc_module *make(const pc_module_class *type, int64_t channels, const pc_batch_norm_options *o, int least,
                       int most)
{
    if (channels < 1 || channels > INT32_MAX || !pc__norm_eps_fits(o->eps) || !(o->momentum >= 0 && o->momentum <= 1))
        return pc__null(PC_ERR_ARGUMENT,
                        "batch_norm: %lld channels, epsilon %g and momentum %g make no layer: there must be a channel, "
                        "epsilon finite and at least 0, momentum 0 to 1",
                        (long long)channels, o->eps, o->momentum);
    pc_module *module = pc_module_new(type, sizeof(batch_norm_layer));
    if (!module)
        return NULL;
    *(batch_norm_layer *)pc_module_data(module) = (batch_norm_layer){.channels = channels,
                                                                     .eps = o->eps > 0 ? o->eps : 1e-5,
                                                                     .momentum = o->cumulative     ? -1
                                                                                 : o->momentum > 0 ? o->momentum
                                                                                                   : 0.1,
                                                                     .least = least,
                                                                     .most = most};
    if (pc__norm_parameters(module, PC_SHAPE(channels), !o->no_affine, !o->no_affine && !o->no_bias) == PC_OK &&
        (o->no_running || add_buffers(module, channels) == PC_OK))
        return module;
    pc_module_free(module);
    return NULL;
}

pc_module *pc_batch_norm1d_new(int64_t channels, pc_batch_norm_options options)
{
    return make(&batch_norm1d_class, channels, &options, 2, 3);
}

pc_module *pc_batch_norm2d_new(int64_t channels, pc_batch_norm_options options)
{
    return make(&batch_norm2d_class, channels, &options, 4, 4);
}
