/* keras_order.c: weights between Keras's order and ours. */
#include "io/keras_order.h"

#include <paracord/no_grad.h>

static void move(float *own, float *keras, bool in)
{
    if (in)
        *own = *keras;
    else
        *keras = *own;
}

/* shape: (kh, kw, in, out) */
void pc__order_conv_array(float *own, float *keras, const int64_t shape[4], bool in)
{
    int64_t kh = shape[0], kw = shape[1], c = shape[2], o = shape[3];
    for (int64_t y = 0; y < kh; y++)
        for (int64_t x = 0; x < kw; x++)
            for (int64_t i = 0; i < c; i++)
                for (int64_t k = 0; k < o; k++)
                    move(&own[((k * c + i) * kh + y) * kw + x], &keras[((y * kw + x) * c + i) * o + k], in);
}

/* shape: (in, out) */
void pc__order_dense_array(float *own, float *keras, const int64_t shape[2], const int64_t before[3], bool in)
{
    int64_t n = shape[0], out = shape[1], c = before[2], pixels = before[0] * before[1];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i;
        if (pixels) {
            int64_t channel = i % c, pixel = i / c;
            row = channel * pixels + pixel;
        }
        for (int64_t k = 0; k < out; k++)
            move(&own[k * n + row], &keras[i * out + k], in);
    }
}

void pc__order_array(float *own, float *keras, const pc__keras_weight *weight, const int64_t before[3], bool turn,
                     bool in)
{
    if (turn && weight->rank == 4)
        pc__order_conv_array(own, keras, weight->shape, in);
    else if (turn && weight->rank == 2)
        pc__order_dense_array(own, keras, weight->shape, before, in);
    else
        memcpy(in ? own : keras, in ? keras : own, (size_t)pc__keras_weight_size(weight) * sizeof *own);
}

static void scale(const pc__keras_weight *weight, double factor)
{
    int64_t count = weight->slot[0] ? pc__keras_weight_size(weight) : 0;
    for (int64_t i = 0; i < count; i++)
        weight->slot[0][i] = (float)(factor * weight->slot[0][i]);
}

static bool has_slots(const pc__keras_model *model)
{
    for (int l = 0; l < model->layer_count; l++)
        for (int i = 0; i < model->layers[l].weight_count; i++)
            if (model->layers[l].weights[i].slot[0])
                return true;
    return false;
}

pc_status pc__order_momentum(pc__keras_model *model, const char *who, bool in)
{
    const double rate = model->training.learning_rate;
    if (model->training.optimizer != PC__KERAS_SGD || !has_slots(model))
        return PC_OK;
    if (!(rate > 0))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: Keras keeps SGD's momentum times the learning rate, which is %g here: set a rate above 0 "
                        "before it is saved, or leave the optimiser's state out",
                        who, rate);
    for (int l = 0; l < model->layer_count; l++)
        for (int i = 0; i < model->layers[l].weight_count; i++)
            scale(&model->layers[l].weights[i], in ? -1 / rate : -rate);
    return PC_OK;
}

pc_status pc__read_floats(pc_tensor *t, float *values)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *floats = pc_cast(t, PC_F32);
            status = pc_read(floats, values, (size_t)pc_tensor_count(t) * sizeof(float));
        }
    }
    return status;
}

/* The bias has the same order on both sides. */
static pc_status order_bias(pc_module *module, const pc__keras_layer *layer, bool in)
{
    pc_tensor *bias = pc__module_own(module, "bias");
    if (!bias || layer->weight_count < 2)
        return PC_OK;
    size_t bytes = (size_t)pc_tensor_count(bias) * sizeof(float);
    if (!in)
        return pc__read_floats(bias, layer->weights[1].value);
    memcpy(pc__data(bias), layer->weights[1].value, bytes);
    return PC_OK;
}

/* Our weight as a host array: its own memory when it comes in (a new module is on the CPU), a copy on the way out. */
static float *own_array(pc_tensor *weight, bool in)
{
    if (in)
        return pc__data(weight);
    size_t bytes = (size_t)pc_tensor_count(weight) * sizeof(float);
    float *copy = pc__alloc(bytes);
    if (copy && pc__read_floats(weight, copy) == PC_OK)
        return copy;
    pc__free(copy);
    return NULL;
}

pc_status pc__order_conv(pc_module *module, const pc__keras_layer *layer, bool in)
{
    float *own = module ? own_array(pc__module_own(module, "weight"), in) : NULL;
    if (!own)
        return pc_error_last()->status;
    pc__order_conv_array(own, layer->weights[0].value, layer->weights[0].shape, in);
    if (!in)
        pc__free(own);
    return order_bias(module, layer, in);
}

pc_status pc__order_dense(pc_module *module, const pc__keras_layer *layer, const int64_t before[3], bool in)
{
    float *own = module ? own_array(pc__module_own(module, "weight"), in) : NULL;
    if (!own)
        return pc_error_last()->status;
    pc__order_dense_array(own, layer->weights[0].value, layer->weights[0].shape, before, in);
    if (!in)
        pc__free(own);
    return order_bias(module, layer, in);
}
