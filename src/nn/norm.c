/* norm.c: the layers LayerNorm, RMSNorm and GroupNorm. */
#include "nn/norm.h"

#include <math.h>

typedef struct norm_layer {
    pc_shape shape; /* GroupNorm: unused */
    int64_t groups, channels;
    double eps; /* 0: the dtype's */
} norm_layer;

pc_status pc__norm_parameters(pc_module *module, pc_shape shape, bool weight, bool bias)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *ones = weight ? pc_ones(shape, PC_F32, PC_DEVICE_CPU) : NULL;
        pc_tensor *zeros = bias ? pc_zeros(shape, PC_F32, PC_DEVICE_CPU) : NULL;
        if (weight)
            status = ones ? pc_module_add_parameter(module, "weight", ones) : pc_error_last()->status;
        if (bias && status == PC_OK)
            status = zeros ? pc_module_add_parameter(module, "bias", zeros) : pc_error_last()->status;
    }
    return status;
}

static pc_tensor *layer_norm(pc_module *module, pc_tensor *x)
{
    const norm_layer *layer = pc_module_data(module);
    return pc_fn_layer_norm(x, layer->shape, pc__module_own(module, "weight"), pc__module_own(module, "bias"),
                            layer->eps);
}

static pc_tensor *rms_norm(pc_module *module, pc_tensor *x)
{
    const norm_layer *layer = pc_module_data(module);
    const double least = x->dtype == PC_F64 ? 0x1p-52 : 0x1p-23;
    return pc_fn_rms_norm(x, layer->shape, pc__module_own(module, "weight"), layer->eps > 0 ? layer->eps : least);
}

static pc_tensor *group_norm(pc_module *module, pc_tensor *x)
{
    const norm_layer *layer = pc_module_data(module);
    if (x->ndim > 1 && x->shape[1] != layer->channels)
        return pc__null(PC_ERR_SHAPE, "group_norm: the input has shape %s; it must be [n, %lld, ...]", PC__SHAPE_OF(x),
                        (long long)layer->channels);
    return pc_fn_group_norm(x, layer->groups, pc__module_own(module, "weight"), pc__module_own(module, "bias"),
                            layer->eps);
}

/* As Python prints a tuple. */
static void add_shape(pc_shape shape, char *text, size_t n)
{
    size_t used = 0;
    for (int i = 0; i < shape.ndim && used < n; i++)
        used += (size_t)snprintf(text + used, n - used, "%s%lld%s", i ? ", " : "(", (long long)shape.dim[i],
                                 i + 1 < shape.ndim ? ""
                                 : i                ? ")"
                                                    : ",)");
}

static const char *truth(const void *part)
{
    return part ? "True" : "False";
}

static void describe_layer_norm(const pc_module *module, char *text, size_t n)
{
    const norm_layer *layer = pc_module_data(module);
    char shape[160] = "";
    add_shape(layer->shape, shape, sizeof shape);
    snprintf(text, n, "%s, eps=%g, elementwise_affine=%s, bias=%s", shape, layer->eps,
             truth(pc__module_own(module, "weight")), truth(pc__module_own(module, "bias")));
}

static void describe_rms_norm(const pc_module *module, char *text, size_t n)
{
    const norm_layer *layer = pc_module_data(module);
    char shape[160] = "", eps[32] = "None";
    add_shape(layer->shape, shape, sizeof shape);
    if (layer->eps > 0)
        snprintf(eps, sizeof eps, "%g", layer->eps);
    snprintf(text, n, "%s, eps=%s, elementwise_affine=%s", shape, eps, truth(pc__module_own(module, "weight")));
}

static void describe_group_norm(const pc_module *module, char *text, size_t n)
{
    const norm_layer *layer = pc_module_data(module);
    snprintf(text, n, "%lld, %lld, eps=%g, affine=%s, bias=%s", (long long)layer->groups, (long long)layer->channels,
             layer->eps, truth(pc__module_own(module, "weight")), truth(pc__module_own(module, "bias")));
}

static const pc_module_class layer_norm_class = {.name = "LayerNorm",
                                                 .forward = layer_norm,
                                                 .describe = describe_layer_norm},
                             rms_norm_class = {.name = "RMSNorm", .forward = rms_norm, .describe = describe_rms_norm},
                             group_norm_class = {
                                 .name = "GroupNorm", .forward = group_norm, .describe = describe_group_norm};

bool pc__norm_eps_fits(double eps)
{
    return eps >= 0 && isfinite(eps);
}

static pc_module *make(const pc_module_class *type, norm_layer layer, pc_shape parameters,
                       const pc_layer_norm_options *o, bool bias)
{
    pc_module *module = pc_module_new(type, sizeof layer);
    if (!module)
        return NULL;
    *(norm_layer *)pc_module_data(module) = layer;
    if (pc__norm_parameters(module, parameters, !o->no_affine, bias && !o->no_affine && !o->no_bias) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static pc_status check_rows(const char *who, pc_shape shape, double eps)
{
    bool fits = shape.ndim > 0 && shape.ndim <= PC_MAX_DIMS && pc__norm_eps_fits(eps);
    for (int i = 0; fits && i < shape.ndim; i++)
        fits = shape.dim[i] >= 1 && shape.dim[i] <= INT32_MAX;
    return fits ? PC_OK
                : pc__fail(
                      PC_ERR_ARGUMENT,
                      "%s: epsilon %g and a normalized shape of %d dimensions make no layer: epsilon must be finite "
                      "and at least 0, dimensions 1 to %d, and their sizes at least 1",
                      who, eps, shape.ndim, PC_MAX_DIMS);
}

pc_module *pc_layer_norm_new(pc_shape normalized, pc_layer_norm_options options)
{
    if (check_rows("layer_norm", normalized, options.eps) != PC_OK)
        return NULL;
    const norm_layer layer = {.shape = normalized, .eps = options.eps > 0 ? options.eps : 1e-5};
    return make(&layer_norm_class, layer, normalized, &options, true);
}

pc_module *pc_rms_norm_new(pc_shape normalized, pc_layer_norm_options options)
{
    if (check_rows("rms_norm", normalized, options.eps) != PC_OK)
        return NULL;
    return make(&rms_norm_class, (norm_layer){.shape = normalized, .eps = options.eps}, normalized, &options, false);
}

pc_module *pc_group_norm_new(int64_t groups, int64_t channels, pc_layer_norm_options options)
{
    if (groups < 1 || channels < 1 || channels > INT32_MAX || channels % groups || !pc__norm_eps_fits(options.eps))
        return pc__null(PC_ERR_ARGUMENT,
                        "group_norm: %lld groups of %lld channels with epsilon %g make no layer: channels must be a "
                        "multiple of groups, and epsilon finite and at least 0",
                        (long long)groups, (long long)channels, options.eps);
    const norm_layer layer = {.groups = groups, .channels = channels, .eps = options.eps > 0 ? options.eps : 1e-5};
    return make(&group_norm_class, layer, PC_SHAPE(channels), &options, true);
}
