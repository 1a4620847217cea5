/* cudnn_plan.c: a convolution as a graph of cuDNN's, and the plans for it: the operation itself, forward with bias and
 * ReLU behind it. cuDNN names engines for a graph, the likeliest first, and each says what it does to the numbers. */
#include "cuda/conv/cudnn.h"

#if PC__HAVE_CUDNN

#include "base/base.h"
#include "cuda/runtime/hash.h"
#include "cuda/runtime/view.h"

enum { DESCRIPTORS = 24, CONFIGS = 64, WORKSPACE_MOST = 256 << 20 /* bytes */ };

/* Names of the operands, and of what only lies between operations. */
enum { ID_X = 1, ID_WEIGHT, ID_Y, ID_BIAS, ID_CONVOLVED, ID_ADDED };

/* Descriptors on the way to a plan. After a failure the rest does nothing. */
typedef struct builder {
    const pc__cudnn_target *target;
    const pc__conv_shape *shape;
    bool failed;
    int count;
    cudnnBackendDescriptor_t made[DESCRIPTORS];
} builder;

static cudnnBackendDescriptor_t make(builder *b, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    b->failed |= b->count == DESCRIPTORS || pc__cudnn.BackendCreateDescriptor(type, &made) != CUDNN_STATUS_SUCCESS;
    if (made)
        b->made[b->count++] = made;
    return made;
}

static void set(builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    b->failed = b->failed || pc__cudnn.BackendSetAttribute(of, name, type, count, values) != CUDNN_STATUS_SUCCESS;
}

static void set_descriptor(builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    set(b, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(builder *b, cudnnBackendDescriptor_t made)
{
    b->failed = b->failed || pc__cudnn.BackendFinalize(made) != CUDNN_STATUS_SUCCESS;
}

static void destroy(cudnnBackendDescriptor_t *made, int count)
{
    for (int i = 0; i < count; i++)
        if (made[i])
            (void)pc__cudnn.BackendDestroyDescriptor(made[i]);
}

/* --- the graph --- */

static cudnnDataType_t type_of(const pc__conv_shape *s)
{
    return s->dtype == PC__CUDA_F16    ? CUDNN_DATA_HALF
           : s->dtype == PC__CUDA_BF16 ? CUDNN_DATA_BFLOAT16
                                       : CUDNN_DATA_FLOAT;
}

/* Shape [n][c][h][w], in memory too in the format of planes, else channels last. What lies between operations is float32
 * and nowhere. */
static cudnnBackendDescriptor_t tensor(builder *b, int64_t id, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const bool between = id >= ID_CONVOLVED;
    const cudnnDataType_t type = between ? CUDNN_DATA_FLOAT : type_of(b->shape);
    const bool planes = b->shape->format == PC__CONV_PLANES;
    const int64_t shape[4] = {n, c, h, w}, alignment = 16;
    const int64_t strides[4] = {h * w * c, planes ? h * w : 1, planes ? w : w * c, planes ? 1 : c};
    const cudnnBackendDescriptor_t made = make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(b, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(b, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(b, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape);
    set(b, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(b, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(b, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
    finish(b, made);
    return made;
}

static cudnnBackendDescriptor_t result_tensor(builder *b, int64_t id)
{
    const pc__conv_shape *s = b->shape;
    return tensor(b, id, s->n, s->o, s->oh, s->ow);
}

/* Taps, steps and borders; sums in float32. */
static cudnnBackendDescriptor_t window(builder *b)
{
    const pc__conv_shape *s = b->shape;
    const int64_t dimensions = 2, padding[2] = {s->ph, s->pw}, strides[2] = {s->sh, s->sw}, dilation[2] = {1, 1};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const cudnnBackendDescriptor_t made = make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(b, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    set(b, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    set(b, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(b, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
    set(b, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
    set(b, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    set(b, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    finish(b, made);
    return made;
}

/* The names that cuDNN has for the same things in the three directions. */
static const struct {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, window, x, weight, y;
} names[PC__CONV_DIRECTIONS] = {
    [PC__CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [PC__CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [PC__CONV_WEIGHTS] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

static cudnnBackendDescriptor_t convolution(builder *b, cudnnBackendDescriptor_t y)
{
    const pc__conv_shape *s = b->shape;
    const float one = 1, zero = 0;
    const cudnnBackendDescriptor_t made = make(b, names[s->direction].operation);
    set(b, made, names[s->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(b, made, names[s->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    set_descriptor(b, made, names[s->direction].window, window(b));
    set_descriptor(b, made, names[s->direction].x, tensor(b, ID_X, s->n, s->c, s->h, s->w));
    set_descriptor(b, made, names[s->direction].weight, tensor(b, ID_WEIGHT, s->o, s->c, s->kh, s->kw));
    set_descriptor(b, made, names[s->direction].y, y);
    finish(b, made);
    return made;
}

/* to = mode(from, with); `with` NULL: of one operand. NaN stays NaN. */
static cudnnBackendDescriptor_t pointwise(builder *b, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t from,
                                          cudnnBackendDescriptor_t with, cudnnBackendDescriptor_t to)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    const cudnnBackendDescriptor_t what = make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(b, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(b, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        set(b, what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    finish(b, what);
    const cudnnBackendDescriptor_t made = make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    if (with)
        set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, with);
    set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    finish(b, made);
    return made;
}

static cudnnBackendDescriptor_t graph(builder *b)
{
    const pc__conv_shape *s = b->shape;
    const bool forward = s->direction == PC__CONV_FORWARD, bias = forward && s->bias, relu = forward && s->relu;
    cudnnBackendDescriptor_t operations[3], at = result_tensor(b, bias || relu ? ID_CONVOLVED : ID_Y);
    int64_t count = 0;
    operations[count++] = convolution(b, at);
    if (bias) {
        const cudnnBackendDescriptor_t added = result_tensor(b, relu ? ID_ADDED : ID_Y);
        operations[count++] = pointwise(b, CUDNN_POINTWISE_ADD, at, tensor(b, ID_BIAS, 1, s->o, 1, 1), added);
        at = added;
    }
    if (relu)
        operations[count++] = pointwise(b, CUDNN_POINTWISE_RELU_FWD, at, NULL, result_tensor(b, ID_Y));
    const cudnnBackendDescriptor_t made = make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (b->target->handle)
        set(b, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &b->target->handle);
    set(b, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
    finish(b, made);
    return made;
}

/* --- engines --- */

/* Sums in the order of a sum, in float32, the same each time; float32 in full unless TF32 was asked for; 16 bits by matrix
 * units: engines without them are there for every shape and take ten times as long. Larger tiles of Winograd's method and
 * Fourier's lose digits. What is compiled when it is first used takes seconds, and differs with what else is installed. */
static bool gives_what_is_asked(const pc__conv_shape *s, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behaviour[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    const bool units = s->dtype != PC__CUDA_F32 || s->tf32;
    int64_t one, count = 0, behaviours = 0;
    bool has_units = false;
    if (pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS)
        return false;
    bool fine = pc__cudnn.BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                              &one, &engine) == CUDNN_STATUS_SUCCESS &&
                pc__cudnn.BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                              PC__COUNT(notes), &count, notes) == CUDNN_STATUS_SUCCESS &&
                pc__cudnn.BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                              PC__COUNT(behaviour), &behaviours, behaviour) == CUDNN_STATUS_SUCCESS &&
                count <= PC__COUNT(notes) && behaviours <= PC__COUNT(behaviour);
    for (int64_t i = 0; fine && i < count; i++) {
        has_units |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        fine = notes[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD || notes[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 ||
               notes[i] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP || notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    }
    fine = fine && (units || !has_units) && (has_units || s->dtype == PC__CUDA_F32);
    for (int64_t i = 0; fine && i < behaviours; i++)
        fine = behaviour[i] != CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    destroy(&engine, 1);
    return fine;
}

static bool get(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t most, int64_t *count, void *values)
{
    return pc__cudnn.BackendGetAttribute(of, name, type, most, count, values) == CUDNN_STATUS_SUCCESS;
}

/* A hash of the engine and of what is set of it, by which the same one in several guesses is known; 0: it does not say. */
static uint32_t engine_of(cudnnBackendDescriptor_t config)
{
    enum { KNOBS = 32 };
    cudnnBackendDescriptor_t engine = NULL, knobs[KNOBS] = {NULL};
    int64_t found[1 + 2 * KNOBS] = {0}, one, count = 0;
    bool fine = pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) == CUDNN_STATUS_SUCCESS;
    for (int i = 0; fine && i < KNOBS; i++)
        fine =
            pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i]) == CUDNN_STATUS_SUCCESS;
    fine = fine && get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) &&
           get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, found) &&
           get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &count, knobs);
    for (int64_t i = 0; fine && i < PC__MIN(count, KNOBS); i++) {
        cudnnBackendKnobType_t type;
        fine = get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type) &&
               get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &found[2 + 2 * i]);
        found[1 + 2 * i] = fine ? (int64_t)type : 0;
    }
    destroy(&engine, 1);
    destroy(knobs, KNOBS);
    return fine ? pc__cuda_hash(found, sizeof found) : 0;
}

static bool is_known(uint32_t engine, const pc__cudnn_plan *plans, int count)
{
    bool known = false;
    for (int i = 0; i < count && engine; i++)
        known = known || plans[i].engine == engine;
    return known;
}

/* Takes the configuration, also when it fails. */
static bool plan_of(const pc__cudnn_target *target, cudnnBackendDescriptor_t config, pc__cudnn_plan *plan)
{
    builder b = {.target = target};
    int64_t one;
    *plan = (pc__cudnn_plan){
        .plan = make(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), .config = config, .engine = engine_of(config)};
    if (target->handle)
        set(&b, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
#if CUDNN_VERSION >= 90800
    else
        set_descriptor(&b, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target->properties);
#endif
    set_descriptor(&b, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finish(&b, plan->plan);
    if (!b.failed &&
        pc__cudnn.BackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                      &plan->workspace) == CUDNN_STATUS_SUCCESS &&
        plan->workspace <= WORKSPACE_MOST)
        return true;
    pc__cudnn_plan_free(plan);
    return false;
}

/* Plans that one of cuDNN's guesses at the best engines has, behind the `count` that are there. */
static int guess(builder *b, cudnnBackendDescriptor_t of, cudnnBackendHeurMode_t mode, pc__cudnn_plan *plans, int count,
                 int most)
{
    cudnnBackendDescriptor_t configs[CONFIGS] = {NULL};
    int64_t found = 0;
    builder own = {.target = b->target, .failed = b->failed};
    const cudnnBackendDescriptor_t guesses = make(&own, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(&own, guesses, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
    set(&own, guesses, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
    if (!b->target->handle)
        set_descriptor(&own, guesses, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, b->target->properties);
#endif
    finish(&own, guesses);
    for (int i = 0; i < CONFIGS && !own.failed; i++)
        own.failed =
            pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]) != CUDNN_STATUS_SUCCESS;
    if (!own.failed &&
        pc__cudnn.BackendGetAttribute(guesses, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS,
                                      &found, configs) != CUDNN_STATUS_SUCCESS)
        found = 0;
    for (int64_t i = 0; i < PC__MIN(found, CONFIGS) && count < most; i++)
        if (gives_what_is_asked(b->shape, configs[i]) && !is_known(engine_of(configs[i]), plans, count)) {
            count += plan_of(b->target, configs[i], &plans[count]);
            configs[i] = NULL;
        }
    destroy(configs, CONFIGS);
    destroy(own.made, own.count);
    return count;
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* Mode B is the better guess for gradients, A for the usual layers of large networks, and in 16 bits for the input's;
 * forward they say the same (docs/kernels-diary.md). */
static cudnnBackendHeurMode_t mode_for(const pc__conv_shape *s)
{
    const bool floats = s->dtype == PC__CUDA_F32, usual = is_power_of_two(s->c) && is_power_of_two(s->o) &&
                                                          s->c >= 32 && s->o >= 32 && s->kh * s->kw <= 25;
    const double work = (double)s->n * s->oh * s->ow * s->c * s->o * s->kh * s->kw;
    if (s->direction == PC__CONV_FORWARD || (s->direction == PC__CONV_INPUT && !floats))
        return CUDNN_HEUR_MODE_A;
    return usual && !floats && work > 1e8 ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_B;
}

static int plans_of(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most)
{
    builder b = {.target = target, .shape = shape};
    const cudnnBackendDescriptor_t of = graph(&b);
    const cudnnBackendHeurMode_t first = mode_for(shape);
    const cudnnBackendHeurMode_t other = first == CUDNN_HEUR_MODE_A ? CUDNN_HEUR_MODE_B : CUDNN_HEUR_MODE_A;
    int count = b.failed ? 0 : guess(&b, of, first, plans, 0, most);
    if (!b.failed && most > 1) /* to be measured */
        count = guess(&b, of, other, plans, count, most);
    if (!b.failed && count == 0)
        count = guess(&b, of, CUDNN_HEUR_MODE_FALLBACK, plans, count, most);
    destroy(b.made, b.count);
    return count;
}

/* cuDNN 9.19 fuses a bias, with a ReLU or without, and no ReLU without a bias: that is for our kernels behind the bare
 * product. So is a bias in float32 where there is no way with it; in 16 bits it would round once too often. */
int pc__cudnn_plans(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most)
{
    pc__conv_shape bare = *shape;
    int count = plans_of(target, shape, plans, most);
    const bool more = shape->direction == PC__CONV_FORWARD && (shape->bias || shape->relu);
    if (count || !more || (shape->bias && shape->dtype != PC__CUDA_F32))
        return count;
    bare.bias = bare.relu = 0;
    count = plans_of(target, &bare, plans, most);
    for (int i = 0; i < count; i++)
        plans[i].bare = true;
    return count;
}

void pc__cudnn_plan_free(pc__cudnn_plan *plan)
{
    destroy(&plan->plan, 1);
    destroy(&plan->config, 1);
    *plan = (pc__cudnn_plan){0};
}

/* --- running --- */

cudnnStatus_t pc__cudnn_run(cudnnHandle_t handle, const pc__cudnn_plan *plan, const pc__conv_shape *shape,
                            const pc__cudnn_operands *o)
{
    const bool forward = shape->direction == PC__CONV_FORWARD;
    const void *const y = forward ? o->result : o->dy;
    const void *const x = shape->direction == PC__CONV_INPUT ? o->result : o->x;
    const void *const weight = shape->direction == PC__CONV_WEIGHTS ? o->result : o->weight;
    const void *const pointers[4] = {x, weight, y, o->bias};
    const int64_t ids[4] = {ID_X, ID_WEIGHT, ID_Y, ID_BIAS}, count = forward && shape->bias && !plan->bare ? 4 : 3;
    builder b = {0};
    const cudnnBackendDescriptor_t pack = make(&b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&b, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    set(&b, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    set(&b, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o->workspace);
    finish(&b, pack);
    const cudnnStatus_t status = b.failed ? CUDNN_STATUS_BAD_PARAM : pc__cudnn.BackendExecute(handle, plan->plan, pack);
    destroy(b.made, b.count);
    return status;
}

#endif
