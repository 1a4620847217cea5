/* summary.c: a network as a table. Shapes are found by sending a picture of zeros through. */
#include "train/summary.h"

#include "nn/layers.h"
#include "nn/steps.h"

#include <paracord/autograd.h>

pc__number pc__thousands(int64_t n)
{
    char digits[24];
    pc__number number = {{0}};
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0 && digits[i - 1] != '-')
            number.s[at++] = ',';
        number.s[at++] = digits[i];
    }
    return number;
}

static void add_activation(char *text, size_t n, pc_activation_kind kind)
{
    const char *name = pc__activation_name(kind);
    size_t used = strlen(text);
    if (name)
        snprintf(text + used, n - used, ", %s", name);
}

static void add_conv(char *text, size_t n, const pc_fn_conv2d_options *spec)
{
    const int *dilation = spec->dilation;
    if (dilation[0] > 1 || dilation[1] > 1) {
        const size_t used = strlen(text);
        snprintf(text + used, n - used, ", dilation %dx%d", dilation[0], dilation[1]);
    }
    if (spec->groups > 1) {
        const size_t used = strlen(text);
        snprintf(text + used, n - used, ", %d groups", spec->groups);
    }
    add_activation(text, n, spec->activation);
}

/* What tells this layer from others of its kind. */
static void describe(const pc_module *module, char *text, size_t n)
{
    const char *name = pc_module_type(module)->name;
    const pc__conv2d_layer *conv = pc__layer(module, &pc__conv2d_class);
    const pc__linear_layer *linear = pc__layer(module, &pc__linear_class);
    const pc__dropout_layer *dropout = pc__layer(module, &pc__dropout_class);
    const pc__pool2d_layer *pool = pc__layer(module, &pc__max_pool2d_class);
    pool = pool ? pool : pc__layer(module, &pc__avg_pool2d_class);
    if (conv) {
        char stride[32] = "";
        if (conv->spec.stride[0] != 1 || conv->spec.stride[1] != 1)
            snprintf(stride, sizeof stride,
                     conv->spec.stride[0] == conv->spec.stride[1] ? ", stride %d" : ", stride %dx%d",
                     conv->spec.stride[0], conv->spec.stride[1]);
        snprintf(text, n, "%s %lld, %dx%d%s", name, (long long)conv->out, conv->kernel[0], conv->kernel[1], stride);
        add_conv(text, n, &conv->spec);
    } else if (linear) {
        snprintf(text, n, "%s %lld", name, (long long)linear->out);
        add_activation(text, n, linear->activation);
    } else if (pool) {
        snprintf(text, n, "%s %dx%d", name, pool->spec.kernel[0], pool->spec.kernel[1]);
    } else if (dropout) {
        snprintf(text, n, "%s %g", name, dropout->p);
    } else {
        snprintf(text, n, "%s", name);
    }
}

typedef struct filling {
    pc__layer_row *next;
} filling;

static pc_status fill_row(void *context, pc_module *child, pc_tensor *x, pc_tensor *y)
{
    pc__layer_row *row = ((filling *)context)->next++;
    (void)x;
    describe(child, row->layer, sizeof row->layer);
    snprintf(row->kind, sizeof row->kind, "%s", pc_module_type(child)->name);
    row->parameters = pc_module_parameter_elements(child);
    row->output = pc_shape_of(y->ndim - 1, y->shape + 1);
    return PC_OK;
}

pc_status pc__summary_rows(pc_module *net, pc__frame pictures, pc__layer_row **rows, int *count)
{
    pc_parameter first;
    pc_device device = pc_module_parameter_list(net, &first, 1) > 0 ? pc_tensor_device(first.tensor) : PC_DEVICE_CPU;
    *count = pc__step_count(net);
    *rows = pc__calloc((size_t)*count + 1, sizeof **rows);
    if (!*rows)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    PC__EVALUATE
    {
        PC_NO_GRAD {
            PC_SCOPE {
                const pc_shape shape = PC_SHAPE(1, pictures.channels, pictures.height, pictures.width);
                pc_tensor *x = pc_zeros(shape, PC_F32, device);
                status = x ? pc__each_step(net, x, fill_row, &(filling){*rows}) : pc_error_last()->status;
            }
        }
    }
    if (status != PC_OK) {
        pc__free(*rows);
        *rows = NULL, *count = 0;
    }
    return status;
}

/* "32 x 21 x 21" */
static void shape_text(pc_shape shape, char *out, size_t n)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < shape.ndim && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, shape.dim[i] < 0 ? "%s?" : "%s%lld", i ? " x " : "",
                                 (long long)shape.dim[i]);
    if (!shape.ndim)
        snprintf(out, n, "?");
}

void pc__summary_text(pc__text *text, const pc__layer_row *rows, int count)
{
    int wide = 5;
    for (int i = 0; i < count; i++)
        wide = PC__MAX(wide, (int)strlen(rows[i].layer));
    pc__text_add(text, "%-*s  %-14s  %10s\n", wide, "layer", "output", "parameters");
    for (int i = 0; i < count; i++) {
        char shape[128];
        shape_text(rows[i].output, shape, sizeof shape);
        pc__text_add(text, "%-*s  %-14s  %10s\n", wide, rows[i].layer, shape,
                     rows[i].parameters < 0 ? "?" : pc__thousands(rows[i].parameters).s);
    }
}

void pc__text_add_name(pc__text *text, const char *name)
{
    for (; *name; name++)
        pc__text_append(text, (unsigned char)*name < ' ' || *name == 127 ? "?" : name, 1);
}
