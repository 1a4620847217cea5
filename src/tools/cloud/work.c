/* work.c: counting what a network does. Shapes are found by sending a picture of zeros through, layer by layer. */
#include "cloud/work.h"
#include "nn/layers.h"
#include "nn/steps.h"

#include <paracord/autograd.h>

#define F32 4 /* bytes of a number */

/* Adam reads weight, gradient and two moments and writes all but the gradient; forward and back read the weight, back
 * writes the gradient. */
#define WEIGHT_PASSES (7 + 3)

/* Flops of a layer's forward pass for one picture, with the elements of what it takes and gives. */
static double flops_of(const pc_module *layer, int64_t out)
{
    const pc__conv2d_layer *conv = pc__layer(layer, &pc__conv2d_class);
    const pc__linear_layer *linear = pc__layer(layer, &pc__linear_class);
    if (conv)
        return 2.0 * (double)out * (double)conv->in / conv->spec.groups * conv->kernel[0] * conv->kernel[1];
    if (linear)
        return 2.0 * (double)out * (double)linear->in;
    const pc_tensor *heads = pc__module_own(layer, "in_proj_weight"); /* of attention: projections, and two products */
    if (heads)
        return 2.0 * (double)out * (double)(heads->shape[0] + heads->shape[1] + 2 * out / heads->shape[1]);
    return 0;
}

/* The picture itself needs no gradient: the first layer that computes goes back only half as far. */
static void add_layer(pc_cloud_work *work, const pc_module *layer, int64_t in, int64_t out)
{
    if (pc__layer(layer, &pc__flatten_class))
        return;
    bool first = work->layers == 0;
    double flops = flops_of(layer, out);
    work->infer_flops += flops;
    work->train_flops += flops * (first ? 2 : 3);
    const pc__conv2d_layer *conv = pc__layer(layer, &pc__conv2d_class);
    if (conv && conv->out < pc__cloud_model.narrow_channels) {
        work->infer_narrow += flops;
        work->train_narrow += flops * (first ? 2 : 3);
    }
    work->infer_bytes += F32 * (double)(in + out);
    work->train_bytes += F32 * (double)((first ? 2 : 3) * in + 3 * out);
    work->resident_bytes += F32 * (double)out;
    work->layers++;
}

/* Layers inside of a block: what one takes is about what the last one gave. */
typedef struct inside {
    pc_cloud_work *work;
    int64_t last;
} inside;

static void enter(void *context, const pc_module *module)
{
    (void)context, (void)module;
}

static void leave(void *context, const pc_module *module, pc_tensor *const *out, int out_count)
{
    inside *in = context;
    const int64_t count = out_count ? pc_tensor_count(out[0]) : 0;
    if (pc_module_child_count(module) && !pc__module_own(module, "in_proj_weight"))
        return;
    add_layer(in->work, module, in->last, count);
    in->last = count;
}

static pc_status count_block(pc_cloud_work *work, pc_module *block, pc_tensor *x)
{
    inside in = {work, pc_tensor_count(x)};
    const pc__observer observer = {&in, enter, leave};
    pc__forward_observe(&observer);
    const pc_tensor *y = pc_forward(block, x);
    pc__forward_observe(NULL);
    return y ? PC_OK : pc_error_last()->status;
}

static pc_status count_step(void *context, pc_module *child, pc_tensor *x, pc_tensor *y)
{
    if (pc_module_child_count(child))
        return count_block(context, child, x);
    add_layer(context, child, pc_tensor_count(x), pc_tensor_count(y));
    return PC_OK;
}

pc_status pc__cloud_count(pc_module *net, pc__frame pictures, pc_cloud_work *work)
{
    bool was_training = pc_module_is_training(net);
    pc_parameter first;
    pc_device device = pc_module_parameter_list(net, &first, 1) > 0 ? pc_tensor_device(first.tensor) : PC_DEVICE_CPU;
    pc_status status = PC_OK;
    *work = (pc_cloud_work){.parameters = pc_module_parameter_elements(net)};
    work->step_bytes = F32 * WEIGHT_PASSES * (double)work->parameters;
    work->resident_bytes = F32 * (double)pc__frame_bytes(pictures);
    pc_module_set_training(net, false);
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *x = pc_zeros(PC_SHAPE(1, pictures.channels, pictures.height, pictures.width), PC_F32, device);
            status = x ? pc__each_step(net, x, count_step, work) : pc_error_last()->status;
        }
    }
    pc_module_set_training(net, was_training);
    return status;
}
