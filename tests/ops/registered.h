/* registered.h: ops as a program registers them, for tests of that: their rules, and their kernels on the CPU. Those on CUDA are
 * in plugins/own.cu, in a library of its own, or in the emulated GPU's. */
#ifndef PC_TEST_REGISTERED_H
#define PC_TEST_REGISTERED_H

#include "device.h"

#include <dlfcn.h>
#include <math.h>
#include <paracord/autograd.h>
#include <paracord/op.h>
#include <paracord/ops.h>

/* sin(i * turn) in element i. */
static inline pc_tensor *wave(pc_shape shape, double turn, pc_dtype dtype)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = sin((double)i * turn);
    pc_tensor *t = NULL;
    PC_SCOPE {
        pc_tensor *wide = pc_from_data(values, shape, PC_F64, PC_DEVICE_CPU);
        t = pc_keep(pc_to(wide, test_device(), dtype, false));
    }
    free(values);
    return t;
}

static inline pc_op_kernel_fn on_cuda(const char *name)
{
    if (test_device().type != PC_CUDA)
        return NULL;
    char path[512];
    if (emulated())
        snprintf(path, sizeof path, "%s/libparacord-cuda.so", getenv("PARACORD_PLUGIN_PATH"));
    else
        snprintf(path, sizeof path, "%s/libown.so", PC_TEST_PLUGINS);
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    union {
        void *data;
        pc_op_kernel_fn function;
    } symbol = {.data = dlsym(library, name)};
    assert_non_null(symbol.data);
    return symbol.function;
}

/* --- blend: y = a x + b x z --- */

typedef struct blend_attributes {
    double a, b;
} blend_attributes;

static pc_status blend_shape(const pc_op_meta *in, const void *attributes, pc_op_meta *out)
{
    (void)attributes;
    bool same = in[0].dtype == in[1].dtype && in[0].shape.ndim == in[1].shape.ndim;
    for (int i = 0; same && i < in[0].shape.ndim; i++)
        same = in[0].shape.dim[i] == in[1].shape.dim[i];
    if (!same)
        return pc_fail(PC_ERR_SHAPE, "both inputs must be alike");
    if (in[0].dtype != PC_F32 && in[0].dtype != PC_F64)
        return pc_fail(PC_ERR_DTYPE, "%s; it has float32 and float64", pc_dtype_name(in[0].dtype));
    out[0] = in[0];
    return PC_OK;
}

static void blend_part(void *context, int64_t part)
{
    const pc_op_run *run = context;
    const blend_attributes *s = run->attributes;
    const int64_t from = part * 1000, to = from + 1000 < run->out[0].count ? from + 1000 : run->out[0].count;
    for (int64_t i = from; i < to; i++)
        if (run->out[0].dtype == PC_F32)
            ((float *)run->out[0].data)[i] =
                (float)(s->a * ((const float *)run->in[0].data)[i] +
                        s->b * ((const float *)run->in[0].data)[i] * ((const float *)run->in[1].data)[i]);
        else
            ((double *)run->out[0].data)[i] =
                s->a * ((const double *)run->in[0].data)[i] +
                s->b * ((const double *)run->in[0].data)[i] * ((const double *)run->in[1].data)[i];
}

static pc_status blend_kernel(const pc_op_run *run)
{
    union {
        const pc_op_run *run;
        void *context;
    } given = {.run = run};
    pc_op_parallel((run->out[0].count + 999) / 1000, run->out[0].count * 4, blend_part, given.context);
    return PC_OK;
}

static pc_status blend_gradient(const pc_op_gradient *g)
{
    const blend_attributes *s = g->attributes;
    pc_tensor *dy = g->out_grad[0], *x = g->in[0], *z = g->in[1];
    if (g->needs[0])
        g->in_grad[0] = pc_mul(dy, pc_add_scalar(pc_mul_scalar(z, s->b), s->a));
    if (g->needs[1])
        g->in_grad[1] = pc_mul(dy, pc_mul_scalar(x, s->b));
    return PC_OK;
}

static inline const pc_op *blend_op(void)
{
    const pc_op *op = pc_op_find("test.blend");
    if (op)
        return op;
    return pc_op_register(&(pc_op_spec){.name = "test.blend",
                                        .inputs = 2,
                                        .outputs = 1,
                                        .attribute_bytes = sizeof(blend_attributes),
                                        .saves = PC_OP_SAVE_INPUT(0) | PC_OP_SAVE_INPUT(1),
                                        .shape = blend_shape,
                                        .gradient = blend_gradient,
                                        .cpu = blend_kernel,
                                        .cuda = on_cuda("own_blend")});
}

static inline pc_tensor *blend(pc_tensor *x, pc_tensor *z, double a, double b)
{
    pc_tensor *y = NULL;
    const pc_status status = pc_op_call(blend_op(), (pc_tensor *[]){x, z}, 2, &(blend_attributes){a, b}, &y);
    return status == PC_OK ? y : NULL;
}

/* --- ends: of an input of any strides [n, m], float64: its first column times 2, and its last one times 3 --- */

static pc_status ends_shape(const pc_op_meta *in, const void *attributes, pc_op_meta *out)
{
    (void)attributes;
    if (in[0].shape.ndim != 2 || in[0].shape.dim[1] < 1 || in[0].dtype != PC_F64)
        return pc_fail(PC_ERR_SHAPE, "it takes [n, m] of float64, m at least 1");
    out[0].shape = out[1].shape = PC_SHAPE(in[0].shape.dim[0]);
    return PC_OK;
}

static pc_status ends_kernel(const pc_op_run *run)
{
    const pc_op_view *x = &run->in[0];
    for (int64_t i = 0; i < x->shape[0]; i++) {
        const double *row = (const double *)x->data + i * x->strides[0];
        ((double *)run->out[0].data)[i] = 2 * row[0];
        ((double *)run->out[1].data)[i] = 3 * row[(x->shape[1] - 1) * x->strides[1]];
    }
    return PC_OK;
}

/* A matrix that is 0 but for the column. */
static pc_tensor *column(pc_tensor *g, double times, int64_t at, const pc_op_meta *like, pc_device device)
{
    pc_tensor *whole = pc_zeros(like->shape, like->dtype, device);
    pc_tensor *place = g ? pc_slice(whole, 1, at, at + 1, 1) : NULL;
    if (g && pc_copy(place, pc_reshape(pc_mul_scalar(g, times), PC_SHAPE(-1, 1))) != PC_OK)
        return NULL;
    return whole;
}

static pc_status ends_gradient(const pc_op_gradient *g)
{
    const pc_op_meta *in = &g->in_meta[0];
    g->in_grad[0] = pc_add(column(g->out_grad[0], 2, 0, in, g->device),
                           column(g->out_grad[1], 3, in->shape.dim[1] - 1, in, g->device));
    return PC_OK;
}

static inline const pc_op *ends_op(void)
{
    const pc_op *op = pc_op_find("test.ends");
    if (op)
        return op;
    return pc_op_register(&(pc_op_spec){.name = "test.ends",
                                        .inputs = 1,
                                        .outputs = 2,
                                        .strided = true,
                                        .shape = ends_shape,
                                        .gradient = ends_gradient,
                                        .cpu = ends_kernel,
                                        .cuda = on_cuda("own_ends")});
}

/* --- numbered: writes from + i into element i of a float32 tensor --- */

static pc_status numbered_shape(const pc_op_meta *in, const void *attributes, pc_op_meta *out)
{
    (void)in, (void)attributes;
    return out[0].dtype == PC_F32 ? PC_OK : pc_fail(PC_ERR_DTYPE, "%s; it writes float32", pc_dtype_name(out[0].dtype));
}

static pc_status numbered_kernel(const pc_op_run *run)
{
    for (int64_t i = 0; i < run->out[0].count; i++)
        ((float *)run->out[0].data)[i] = *(const float *)run->attributes + (float)i;
    return PC_OK;
}

static inline const pc_op *numbered_op(void)
{
    const pc_op *op = pc_op_find("test.numbered");
    if (op)
        return op;
    return pc_op_register(&(pc_op_spec){.name = "test.numbered",
                                        .outputs = 1,
                                        .attribute_bytes = sizeof(float),
                                        .writes = PC_OP_OVERWRITES,
                                        .shape = numbered_shape,
                                        .cpu = numbered_kernel,
                                        .cuda = on_cuda("own_numbered")});
}

static inline pc_status number(pc_tensor *t, float from)
{
    return pc_op_call(numbered_op(), NULL, 0, &from, &t);
}

#endif
