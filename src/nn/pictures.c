/* pictures.c: layers without parameters that give pictures a certain size: adaptive pooling, upsampling. */
#include "nn/layers.h"

#include <paracord/sample.h>

typedef struct sized_layer {
    int64_t size[2];
} sized_layer;

static pc_tensor *adaptive_avg(pc_module *module, pc_tensor *x)
{
    const sized_layer *layer = pc_module_data(module);
    return pc_fn_adaptive_avg_pool2d(x, layer->size[0], layer->size[1]);
}

static pc_tensor *adaptive_max(pc_module *module, pc_tensor *x)
{
    const sized_layer *layer = pc_module_data(module);
    return pc_fn_adaptive_max_pool2d(x, layer->size[0], layer->size[1]);
}

static void describe_sized(const pc_module *module, char *text, size_t n)
{
    const sized_layer *layer = pc_module_data(module);
    char side[2][24];
    for (int i = 0; i < 2; i++)
        snprintf(side[i], sizeof side[i], layer->size[i] ? "%lld" : "None", (long long)layer->size[i]);
    snprintf(text, n, "output_size=(%s, %s)", side[0], side[1]);
}

static const pc_module_class adaptive_avg_class = {.name = "AdaptiveAvgPool2d",
                                                   .forward = adaptive_avg,
                                                   .describe = describe_sized},
                             adaptive_max_class = {
                                 .name = "AdaptiveMaxPool2d", .forward = adaptive_max, .describe = describe_sized};

static pc_module *sized(const pc_module_class *type, int64_t rows, int64_t columns)
{
    if (rows < 0 || columns < 0)
        return pc__null(PC_ERR_ARGUMENT, "%s: a result of %lld x %lld; both must be at least 0 (as many as there are)",
                        type->name, (long long)rows, (long long)columns);
    pc_module *module = pc_module_new(type, sizeof(sized_layer));
    if (module)
        *(sized_layer *)pc_module_data(module) = (sized_layer){{rows, columns}};
    return module;
}

pc_module *pc_adaptive_avg_pool2d(int64_t rows, int64_t columns)
{
    return sized(&adaptive_avg_class, rows, columns);
}

pc_module *pc_adaptive_max_pool2d(int64_t rows, int64_t columns)
{
    return sized(&adaptive_max_class, rows, columns);
}

static pc_tensor *upsample(pc_module *module, pc_tensor *x)
{
    return pc_fn_upsample(x, *(const pc_fn_upsample_options *)pc_module_data(module));
}

/* As Python prints a float. */
static const char *number(double v, char text[32])
{
    const int at = snprintf(text, 32, "%.12g", v);
    if (strspn(text, "-0123456789") == (size_t)at)
        snprintf(text + at, 32 - (size_t)at, ".0");
    return text;
}

static void describe_upsample(const pc_module *module, char *text, size_t n)
{
    const pc_fn_upsample_options *o = pc_module_data(module);
    const char *mode = o->mode == PC_UPSAMPLE_NEAREST ? "nearest" : "bilinear";
    const long long rows = o->size[0], columns = o->size[1];
    char down[32], across[32];
    if (rows && columns)
        snprintf(text, n, "size=(%lld, %lld), mode='%s'", rows, columns, mode);
    else if (rows)
        snprintf(text, n, "size=%lld, mode='%s'", rows, mode);
    else if (o->scale[1] != 0)
        snprintf(text, n, "scale_factor=(%s, %s), mode='%s'", number(o->scale[0], down), number(o->scale[1], across),
                 mode);
    else
        snprintf(text, n, "scale_factor=%s, mode='%s'", number(o->scale[0], down), mode);
}

static const pc_module_class upsample_class = {.name = "Upsample", .forward = upsample, .describe = describe_upsample};

pc_module *pc_upsample_new(pc_fn_upsample_options options)
{
    if ((options.size[0] != 0) == (options.scale[0] != 0))
        return pc__null(PC_ERR_ARGUMENT, "Upsample: it wants a size or a scale, one of the two");
    pc_module *module = pc_module_new(&upsample_class, sizeof options);
    if (module)
        *(pc_fn_upsample_options *)pc_module_data(module) = options;
    return module;
}
