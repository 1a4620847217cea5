/* keras_rules.c: what each kind of layer gives for what it takes, and the weights that it needs. */
#include "io/keras_shape.h"

#define RULE(name)                                                                                                     \
    static pc_status name(pc__keras_layer *layer, const pc__keras_flow *in, int count, pc__keras_flow *out,            \
                          pc__keras_wants *wants)

static void want(pc__keras_wants *wants, const char *word, bool fixed, int rank, const int64_t *shape)
{
    pc__keras_weight *item = &wants->items[wants->count++];
    *item = (pc__keras_weight){.word = word, .fixed = fixed, .rank = rank};
    memcpy(item->shape, shape, (size_t)rank * sizeof *shape);
}

static pc_status one_input(pc__keras_layer *layer, int count)
{
    return count == 1 ? PC_OK : pc__keras_refuse(layer, PC_ERR_FORMAT, "takes one input and gets %d", count);
}

/* One input of `rank` dimensions; where nothing is known of it all sizes are open. */
static pc_status take(pc__keras_layer *layer, const pc__keras_flow *in, int count, int rank, pc__keras_flow *out)
{
    PC__TRY(one_input(layer, count));
    *out = in[0].rank ? in[0] : (pc__keras_flow){rank, {-1, -1, -1}};
    if (out->rank == rank)
        return PC_OK;
    return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "(%s) gets %d dimensions instead of %d", layer->class_name,
                            in[0].rank, rank);
}

static pc_status slide(pc__keras_layer *layer, pc__keras_flow *flow)
{
    for (int i = 0; i < 2; i++) {
        int64_t size = flow->shape[i], stride = layer->stride[i];
        int64_t reach = (int64_t)(layer->window[i] - 1) * PC__MAX(layer->dilation[i], 1) + 1;
        if (size < 0)
            continue;
        if (!layer->same && size < reach)
            return pc__keras_refuse(layer, PC_ERR_SHAPE, "needs at least %lld %s and gets %lld", (long long)reach,
                                    i ? "columns" : "rows", (long long)size);
        flow->shape[i] = layer->same ? (size + stride - 1) / stride : (size - reach) / stride + 1;
    }
    return PC_OK;
}

static void bias(const pc__keras_layer *layer, int64_t n, pc__keras_wants *wants)
{
    if (layer->use_bias)
        want(wants, "bias", false, 1, &n);
}

RULE(conv2d)
{
    PC__TRY(take(layer, in, count, 3, out));
    int64_t channels = out->shape[2], groups = PC__MAX(layer->groups, 1);
    if ((channels > 0 && channels % groups) || layer->units % groups)
        return pc__keras_refuse(layer, PC_ERR_FORMAT,
                                "has %lld groups, which divide not both %lld channels and %d filters",
                                (long long)groups, (long long)channels, layer->units);
    PC__TRY(slide(layer, out));
    want(wants, "kernel", false, 4,
         (int64_t[]){layer->window[0], layer->window[1], channels > 0 ? channels / groups : channels, layer->units});
    bias(layer, layer->units, wants);
    out->shape[2] = layer->units;
    return PC_OK;
}

static pc_status known_channels(pc__keras_layer *layer, int64_t channels)
{
    if (channels > 0 && channels <= ((int64_t)1 << 40) / PC__MAX(layer->multiplier, 1))
        return PC_OK;
    return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "gets a number of channels that the file leaves open");
}

RULE(depthwise)
{
    PC__TRY(take(layer, in, count, 3, out));
    PC__TRY(known_channels(layer, out->shape[2]));
    PC__TRY(slide(layer, out));
    want(wants, "depthwise_kernel", false, 4,
         (int64_t[]){layer->window[0], layer->window[1], out->shape[2], layer->multiplier});
    out->shape[2] *= layer->multiplier;
    bias(layer, out->shape[2], wants);
    return PC_OK;
}

RULE(separable)
{
    PC__TRY(take(layer, in, count, 3, out));
    PC__TRY(known_channels(layer, out->shape[2]));
    PC__TRY(slide(layer, out));
    want(wants, "depthwise_kernel", false, 4,
         (int64_t[]){layer->window[0], layer->window[1], out->shape[2], layer->multiplier});
    want(wants, "pointwise_kernel", false, 4, (int64_t[]){1, 1, out->shape[2] * layer->multiplier, layer->units});
    bias(layer, layer->units, wants);
    out->shape[2] = layer->units;
    return PC_OK;
}

RULE(dense)
{
    PC__TRY(one_input(layer, count));
    *out = in[0].rank ? in[0] : (pc__keras_flow){1, {-1, -1, -1}};
    want(wants, "kernel", false, 2, (int64_t[]){out->shape[out->rank - 1], layer->units});
    bias(layer, layer->units, wants);
    out->shape[out->rank - 1] = layer->units;
    return PC_OK;
}

RULE(pool)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    return slide(layer, out);
}

RULE(global_pool)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    int64_t channels = out->shape[2];
    *out = layer->keep ? (pc__keras_flow){3, {1, 1, channels}} : (pc__keras_flow){1, {channels}};
    return PC_OK;
}

/* Rows and columns more (sign 1) or less. */
static pc_status frame(pc__keras_layer *layer, pc__keras_flow *flow, int sign)
{
    for (int i = 0; i < 2; i++)
        if (flow->shape[i] > 0) {
            int64_t size = flow->shape[i] + sign * ((int64_t)layer->border[2 * i] + layer->border[2 * i + 1]);
            if (size < 1)
                return pc__keras_refuse(layer, PC_ERR_SHAPE, "leaves nothing of %lld %s", (long long)flow->shape[i],
                                        i ? "columns" : "rows");
            flow->shape[i] = size;
        }
    return PC_OK;
}

RULE(padding)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    return frame(layer, out, 1);
}

RULE(cropping)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    return frame(layer, out, -1);
}

RULE(up_sampling)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    for (int i = 0; i < 2; i++)
        if (out->shape[i] > 0)
            out->shape[i] *= layer->window[i];
    return PC_OK;
}

/* All elements; -1 where a size is open. */
static int64_t elements(const pc__keras_flow *flow)
{
    int64_t all = flow->rank ? 1 : -1;
    for (int i = 0; i < flow->rank; i++)
        if (all >= 0 && (flow->shape[i] < 0 || __builtin_mul_overflow(all, flow->shape[i], &all)))
            all = -1;
    return all;
}

RULE(flatten)
{
    (void)wants;
    PC__TRY(one_input(layer, count));
    *out = (pc__keras_flow){1, {elements(&in[0])}};
    return PC_OK;
}

RULE(reshape)
{
    (void)wants;
    PC__TRY(one_input(layer, count));
    int64_t all = elements(&in[0]), known = 1;
    int open = -1;
    *out = (pc__keras_flow){.rank = layer->rank};
    for (int i = 0; i < layer->rank; i++) {
        out->shape[i] = layer->target[i];
        if (layer->target[i] < 0)
            open = i;
        else if (__builtin_mul_overflow(known, layer->target[i], &known))
            known = -1;
    }
    if (all > 0 && (known < 1 || (open < 0 ? known != all : all % known != 0)))
        return pc__keras_refuse(layer, PC_ERR_SHAPE, "cannot give %lld numbers its target shape", (long long)all);
    if (open >= 0)
        out->shape[open] = all > 0 ? all / known : -1;
    return PC_OK;
}

RULE(permute)
{
    (void)wants;
    PC__TRY(take(layer, in, count, layer->rank, out));
    for (int i = 0; i < layer->rank; i++)
        out->shape[i] = in[0].rank ? in[0].shape[layer->target[i] - 1] : -1;
    return PC_OK;
}

RULE(same)
{
    (void)wants;
    PC__TRY(one_input(layer, count));
    *out = in[0];
    return PC_OK;
}

RULE(spatial)
{
    (void)wants;
    return take(layer, in, count, 3, out);
}

RULE(prelu)
{
    PC__TRY(one_input(layer, count));
    *out = in[0];
    int64_t shape[3];
    for (int i = 0; i < out->rank; i++) {
        shape[i] = i < layer->rank && layer->target[i] ? 1 : out->shape[i];
        if (shape[i] < 1)
            return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "gets sizes that the file leaves open");
    }
    if (!out->rank)
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "gets a shape that the file leaves open");
    want(wants, "alpha", false, out->rank, shape);
    return PC_OK;
}

/* The size of the last dimension, over which all normalisations go here. */
static pc_status features(pc__keras_layer *layer, const pc__keras_flow *in, int count, int64_t *n)
{
    PC__TRY(one_input(layer, count));
    *n = in[0].rank ? in[0].shape[in[0].rank - 1] : -1;
    if (in[0].rank && pc__keras_axis(layer, in[0].rank) != in[0].rank - 1)
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "has the axis %d, which is not supported; the last is",
                                layer->axis);
    return PC_OK;
}

/* Numbers of the config, one for all channels or one for each. */
static pc_status want_given(pc__keras_layer *layer, int64_t channels, pc__keras_wants *wants)
{
    for (int i = 0; i < layer->weight_count; i++) {
        const int64_t n = layer->weights[i].shape[0];
        if (channels > 0 && n != 1 && n != channels)
            return pc__keras_refuse(layer, PC_ERR_SHAPE, "has %lld numbers as %s for %lld channels", (long long)n,
                                    layer->weights[i].word, (long long)channels);
        want(wants, layer->weights[i].word, true, 1, layer->weights[i].shape);
    }
    return PC_OK;
}

RULE(rescaling)
{
    PC__TRY(one_input(layer, count));
    *out = in[0];
    return want_given(layer, in[0].rank ? in[0].shape[in[0].rank - 1] : -1, wants);
}

RULE(normalization)
{
    int64_t n;
    PC__TRY(features(layer, in, count, &n));
    *out = in[0];
    if (layer->given)
        return want_given(layer, n, wants);
    want(wants, "mean", true, 1, &n);
    want(wants, "variance", true, 1, &n);
    return PC_OK;
}

static void gain_and_center(const pc__keras_layer *layer, int64_t n, pc__keras_wants *wants)
{
    if (layer->gain)
        want(wants, "gamma", false, 1, &n);
    if (layer->center)
        want(wants, "beta", false, 1, &n);
}

RULE(batch_norm)
{
    int64_t n;
    PC__TRY(features(layer, in, count, &n));
    *out = in[0];
    gain_and_center(layer, n, wants);
    want(wants, "moving_mean", true, 1, &n);
    want(wants, "moving_variance", true, 1, &n);
    return PC_OK;
}

RULE(layer_norm)
{
    int64_t n;
    PC__TRY(features(layer, in, count, &n));
    *out = in[0];
    gain_and_center(layer, n, wants);
    return PC_OK;
}

/* Shapes that meet from the right: equal, or 1. */
static pc_status meet(pc__keras_layer *layer, pc__keras_flow *out, const pc__keras_flow *in)
{
    pc__keras_flow wide = out->rank >= in->rank ? *out : *in, other = out->rank >= in->rank ? *in : *out;
    for (int i = 0; i < other.rank; i++) {
        int64_t *a = &wide.shape[wide.rank - other.rank + i], b = other.shape[i];
        if (*a > 1 && b > 1 && *a != b)
            return pc__keras_refuse(layer, PC_ERR_SHAPE, "joins sizes %lld and %lld", (long long)*a, (long long)b);
        *a = *a == 1 ? b : b == 1 ? *a : PC__MAX(*a, b);
    }
    *out = wide;
    return PC_OK;
}

static pc_status known_inputs(pc__keras_layer *layer, const pc__keras_flow *in, int count)
{
    if (count < 2)
        return pc__keras_refuse(layer, PC_ERR_FORMAT, "joins at least two inputs and gets %d", count);
    for (int i = 0; i < count; i++)
        if (!in[i].rank)
            return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "joins shapes that the file leaves open");
    return PC_OK;
}

RULE(join)
{
    (void)wants;
    PC__TRY(known_inputs(layer, in, count));
    if (layer->kind == PC__KERAS_SUBTRACT && count != 2)
        return pc__keras_refuse(layer, PC_ERR_FORMAT, "takes two inputs and gets %d", count);
    *out = in[0];
    for (int i = 1; i < count; i++)
        PC__TRY(meet(layer, out, &in[i]));
    return PC_OK;
}

RULE(concatenate)
{
    (void)wants;
    PC__TRY(known_inputs(layer, in, count));
    *out = in[0];
    int axis = pc__keras_axis(layer, out->rank);
    for (int i = 1; i < count; i++) {
        bool fits = axis >= 0 && in[i].rank == out->rank;
        for (int d = 0; d < out->rank && fits; d++)
            fits = d == axis || in[i].shape[d] < 0 || out->shape[d] < 0 || in[i].shape[d] == out->shape[d];
        if (!fits)
            return pc__keras_refuse(layer, PC_ERR_SHAPE, "joins shapes that differ beside axis %d", layer->axis);
        bool open = in[i].shape[axis] < 0 || out->shape[axis] < 0;
        out->shape[axis] = open ? -1 : out->shape[axis] + in[i].shape[axis];
    }
    return PC_OK;
}

RULE(channels)
{
    (void)wants;
    PC__TRY(take(layer, in, count, 3, out));
    if (layer->invert)
        return out->shape[2] > 0 ? PC_OK
                                 : pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "gets sizes that the file leaves open");
    if (out->shape[2] < 0 || layer->target[0] < -out->shape[2] || layer->target[0] >= out->shape[2])
        return pc__keras_refuse(layer, PC_ERR_SHAPE, "takes channel %lld of %lld", (long long)layer->target[0],
                                (long long)out->shape[2]);
    *out = (pc__keras_flow){2, {in[0].shape[0], in[0].shape[1]}};
    return PC_OK;
}

RULE(stack)
{
    (void)wants;
    *out = in[0];
    for (int i = 0; i < count; i++) {
        if (in[i].rank != 2)
            return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "(Stack) gets %d dimensions instead of 2", in[i].rank);
        PC__TRY(meet(layer, out, &in[i]));
    }
    *out = (pc__keras_flow){3, {out->shape[0], out->shape[1], count}};
    return PC_OK;
}

const pc__keras_rule pc__keras_rules[PC__KERAS_KIND_COUNT] = {
    [PC__KERAS_CONV2D] = conv2d,
    [PC__KERAS_DEPTHWISE_CONV2D] = depthwise,
    [PC__KERAS_SEPARABLE_CONV2D] = separable,
    [PC__KERAS_DENSE] = dense,
    [PC__KERAS_MAX_POOL2D] = pool,
    [PC__KERAS_AVG_POOL2D] = pool,
    [PC__KERAS_GLOBAL_MAX_POOL2D] = global_pool,
    [PC__KERAS_GLOBAL_AVG_POOL2D] = global_pool,
    [PC__KERAS_ZERO_PADDING2D] = padding,
    [PC__KERAS_CROPPING2D] = cropping,
    [PC__KERAS_UP_SAMPLING2D] = up_sampling,
    [PC__KERAS_FLATTEN] = flatten,
    [PC__KERAS_RESHAPE] = reshape,
    [PC__KERAS_PERMUTE] = permute,
    [PC__KERAS_DROPOUT] = same,
    [PC__KERAS_SPATIAL_DROPOUT2D] = spatial,
    [PC__KERAS_NOISE] = same,
    [PC__KERAS_ACTIVATION] = same,
    [PC__KERAS_PRELU] = prelu,
    [PC__KERAS_RESCALING] = rescaling,
    [PC__KERAS_NORMALIZATION] = normalization,
    [PC__KERAS_BATCH_NORM] = batch_norm,
    [PC__KERAS_LAYER_NORM] = layer_norm,
    [PC__KERAS_ADD] = join,
    [PC__KERAS_SUBTRACT] = join,
    [PC__KERAS_MULTIPLY] = join,
    [PC__KERAS_AVERAGE] = join,
    [PC__KERAS_MAXIMUM] = join,
    [PC__KERAS_MINIMUM] = join,
    [PC__KERAS_CONCATENATE] = concatenate,
    [PC__KERAS_CHANNELS] = channels,
    [PC__KERAS_STACK] = stack,
};
