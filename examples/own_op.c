/* own_op.c: an op that the library does not have, softsign, s x / (1 + |s x|), registered by the program: its kernel is a
 * plain loop, its gradient is written with other ops. From then on it is an op as any: here the activation of a network
 * that learns a curve, by a step that is recorded. */
#include <paracord.h>

/* --- the op --- */

typedef struct softsign_attributes {
    float s;
} softsign_attributes;

enum { PART = 4096 };

static float absolute(float x)
{
    return x < 0 ? -x : x;
}

static void softsign_part(void *context, int64_t part)
{
    const pc_op_run *run = *(const pc_op_run **)context;
    const float s = ((const softsign_attributes *)run->attributes)->s, *x = run->in[0].data;
    const int64_t from = part * PART, to = from + PART < run->in[0].count ? from + PART : run->in[0].count;
    float *y = run->out[0].data;
    for (int64_t i = from; i < to; i++)
        y[i] = s * x[i] / (1 + absolute(s * x[i]));
}

static pc_status softsign_kernel(const pc_op_run *run)
{
    const int64_t n = run->in[0].count;
    pc_op_parallel((n + PART - 1) / PART, n * 8, softsign_part, &run); /* 8 operations an element */
    return PC_OK;
}

static pc_status softsign_shape(const pc_op_meta *in, const void *attributes, pc_op_meta *out)
{
    (void)attributes;
    if (in[0].dtype != PC_F32)
        return pc_fail(PC_ERR_DTYPE, "%s; it has float32 alone", pc_dtype_name(in[0].dtype));
    out[0] = in[0];
    return PC_OK;
}

/* d softsign = s (1 - |y|)^2 dx, y being what it gave: the slope is an op of ours too, which needs no gradient. */
static pc_status slope_kernel(const pc_op_run *run)
{
    const float s = ((const softsign_attributes *)run->attributes)->s, *y = run->in[0].data;
    float *slope = run->out[0].data;
    for (int64_t i = 0; i < run->in[0].count; i++) {
        const float rest = 1 - absolute(y[i]);
        slope[i] = s * rest * rest;
    }
    return PC_OK;
}

static const pc_op *softsign_op, *slope_op;

static pc_tensor *call(const pc_op *op, pc_tensor *x, const softsign_attributes *attributes)
{
    pc_tensor *y = NULL;
    return pc_op_call(op, &x, 1, attributes, &y) == PC_OK ? y : NULL;
}

static pc_status softsign_gradient(const pc_op_gradient *g)
{
    g->in_grad[0] = pc_mul(g->out_grad[0], call(slope_op, g->out[0], g->attributes));
    return PC_OK;
}

static bool register_ops(void)
{
    pc_op_spec spec = {.name = "softsign_slope",
                       .inputs = 1,
                       .outputs = 1,
                       .attribute_bytes = sizeof(softsign_attributes),
                       .shape = softsign_shape,
                       .cpu = slope_kernel}; /* .cuda = a function that launches a kernel of yours: op.h */
    slope_op = pc_op_register(&spec);
    spec.name = "softsign";
    spec.cpu = softsign_kernel;
    spec.gradient = softsign_gradient;
    spec.saves = PC_OP_SAVE_OUTPUT(0);
    softsign_op = pc_op_register(&spec);
    return softsign_op && slope_op;
}

/* --- what uses it --- */

typedef struct job {
    pc_module *first, *second, *net;
    pc_optimizer *adam;
    pc_tensor *x, *y, *loss;
} job;

static pc_tensor *forward(const job *j)
{
    pc_tensor *h = call(softsign_op, pc_forward(j->first, j->x), &(softsign_attributes){1.5f});
    return pc_forward(j->second, h);
}

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_mse(forward(j), j->y);
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(j->adam);
        PC_NO_GRAD {
            if (status == PC_OK)
                status = pc_copy(j->loss, loss);
        }
    }
    return status;
}

static void train(job *j)
{
    pc_step *step = pc_step_new(learn, j, j->adam);
    for (int i = 0; i <= 400 && pc_step_run(step) == PC_OK; i++)
        if (i % 200 == 0)
            printf("step %d: loss %.4f\n", i, pc_item(j->loss));
    pc_step_free(step);
}

int main(void)
{
    if (!register_ops())
        return pc_report(stderr);
    pc_device dev = PC_DEVICE_CPU;
    pc_seed(1);
    PC_SCOPE {
        job j = {.first = pc_linear(1, 32), .second = pc_linear(32, 1), .loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, dev)};
        j.x = pc_reshape(pc_arange(-2, 2, 1.0 / 32, PC_F32, dev), PC_SHAPE(-1, 1));
        j.y = pc_mul(j.x, pc_sub(pc_mul(j.x, j.x), pc_ones(PC_SHAPE(1), PC_F32, dev))); /* x^3 - x */
        j.net = pc_sequential(j.first, j.second); /* holds them for the optimiser */
        j.adam = j.net ? pc_adam(j.net, .lr = 0.01) : NULL;
        if (j.adam)
            train(&j);
        pc_tensor *words = pc_ones(PC_SHAPE(2), PC_I64, dev);
        if (!pc_failed() && !call(softsign_op, words, &(softsign_attributes){1})) {
            printf("refused: %s\n", pc_error_last()->message);
            pc_error_clear();
        }
        pc_optimizer_free(j.adam);
        pc_module_free(j.net);
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
