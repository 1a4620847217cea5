/* ways: what each way of doing a convolution takes on a GPU. Layers come from standard input, a line each (bench/peers/ways.py
 * draws them): dtype (f32, tf32, f16, bf16) n c h w outputs kernel stride padding relu. Each of a layer's three products is
 * a line: its shape, our time, and that of cuDNN's plans in each format, in microseconds. Usage: ways [device] */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    char dtype[8];
    int n, c, h, w, o, kernel, stride, padding, relu;
} layer;

static void tell(void *context, pc_log_level level, const char *line)
{
    (void)context, (void)level;
    if (strstr(line, "microseconds: ") && strstr(line, "cuDNN's"))
        puts(line);
}

static pc_dtype dtype_of(const layer *l)
{
    return strcmp(l->dtype, "f16") == 0 ? PC_F16 : strcmp(l->dtype, "bf16") == 0 ? PC_BF16 : PC_F32;
}

static pc_tensor *drawn(const layer *l, pc_shape shape, pc_device device)
{
    return pc_cast(pc_randn(shape, PC_F32, device), dtype_of(l));
}

/* Forward and backward once: each product is measured where it is met first. */
static pc_status meet(const layer *l, pc_device device)
{
    const pc_fn_conv2d_options options = {.stride = {l->stride, l->stride},
                                          .padding = {l->padding, l->padding},
                                          .activation = l->relu ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE};
    pc_status status = PC_ERR_ARGUMENT;
    PC_SCOPE {
        pc_tensor *x = pc_permute(drawn(l, PC_SHAPE(l->n, l->h, l->w, l->c), device), PC_SHAPE(0, 3, 1, 2));
        pc_tensor *weight = drawn(l, PC_SHAPE(l->o, l->c, l->kernel, l->kernel), device);
        pc_tensor *bias = drawn(l, PC_SHAPE(l->o), device);
        pc_tensor *const leaves[] = {x, weight, bias};
        bool fine = true;
        for (int i = 0; i < 3; i++)
            fine = fine && pc_require_grad(leaves[i], true) == PC_OK;
        pc_tensor *y = fine ? pc_fn_conv2d(x, weight, bias, options) : NULL;
        status = y ? pc_backward_with(y, drawn(l, pc_tensor_shape(y), device)) : PC_ERR_ARGUMENT;
    }
    return pc_device_synchronize(device) == PC_OK ? status : PC_ERR_BACKEND;
}

int main(int argc, char **argv)
{
    const pc_device device = pc_device_pick(argc > 1 ? argv[1] : "cuda:0");
    layer l;
    pc_log_set(tell, NULL, PC_LOG_DEBUG);
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    while (!pc_failed() && scanf("%7s %d %d %d %d %d %d %d %d %d", l.dtype, &l.n, &l.c, &l.h, &l.w, &l.o, &l.kernel,
                                 &l.stride, &l.padding, &l.relu) == 10) {
        pc_matmul_precision_set(strcmp(l.dtype, "tf32") == 0 ? PC_PRECISION_TF32 : PC_PRECISION_F32);
        if (meet(&l, device) != PC_OK)
            (void)pc_report(stderr);
        (void)fflush(stdout);
    }
    return pc_report(stderr) ? 1 : 0;
}
