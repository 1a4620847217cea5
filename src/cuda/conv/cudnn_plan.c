/* cudnn_plan.c: the plans for a convolution's graph. cuDNN names engines for it, the likeliest first, and each says what
 * it does to the numbers. */
#include "cuda/conv/cudnn.h"

#if PC__HAVE_CUDNN

#include "base/base.h"
#include "cuda/runtime/hash.h"
#include "cuda/runtime/view.h"

enum { CONFIGS = 64, WORKSPACE_MOST = 256 << 20, WORKSPACE_MEASURED = 1 << 30 /* bytes */ };

/* Sums in the order of a sum, in float32, the same each time; float32 in full unless TF32 was asked for; 16 bits by matrix
 * units: engines without them are there for every shape and take ten times as long. Larger tiles of Winograd's method lose digits,
 * and by Fourier's a NaN is seen in the whole tile: the latter, six times as fast for large windows in float32, is only
 * for who asks for the fastest. What is compiled when it is first used takes seconds, and differs with what else is installed. */
static bool gives_what_is_asked(const pc__conv_shape *s, cudnnBackendDescriptor_t config, bool measured)
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
               notes[i] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP || notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
               (notes[i] == CUDNN_NUMERICAL_NOTE_FFT && measured && s->dtype == PC__CUDA_F32);
    }
    fine = fine && (units || !has_units) && (has_units || s->dtype == PC__CUDA_F32);
    for (int64_t i = 0; fine && i < behaviours; i++)
        fine = behaviour[i] != CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    pc__cudnn_destroy(&engine, 1);
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
    pc__cudnn_destroy(&engine, 1);
    pc__cudnn_destroy(knobs, KNOBS);
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
static bool plan_of(const pc__cudnn_target *target, cudnnBackendDescriptor_t config, bool measured,
                    pc__cudnn_plan *plan)
{
    *plan = (pc__cudnn_plan){.config = config, .engine = engine_of(config)};
    if (pc__cudnn_plan_of(target, config, &plan->plan, &plan->workspace) &&
        plan->workspace <= (measured ? WORKSPACE_MEASURED : WORKSPACE_MOST))
        return true;
    pc__cudnn_plan_free(plan);
    return false;
}

/* Plans that one of cuDNN's guesses at the best engines has, behind the `count` that are there. */
static int guess(pc__cudnn_builder *b, const pc__conv_shape *shape, cudnnBackendDescriptor_t of,
                 cudnnBackendHeurMode_t mode, pc__cudnn_plan *plans, int count, int most)
{
    cudnnBackendDescriptor_t configs[CONFIGS] = {NULL};
    const int found = b->failed ? 0 : pc__cudnn_configs(b->target, of, mode, configs, CONFIGS);
    for (int i = 0; i < found && count < most; i++)
        if (gives_what_is_asked(shape, configs[i], most > 1) && !is_known(engine_of(configs[i]), plans, count)) {
            count += plan_of(b->target, configs[i], most > 1, &plans[count]);
            configs[i] = NULL;
        }
    pc__cudnn_destroy(configs, found);
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
    pc__cudnn_builder b = {.target = target};
    const cudnnBackendDescriptor_t of = pc__conv_cudnn_graph(&b, shape);
    const cudnnBackendHeurMode_t first = mode_for(shape);
    const cudnnBackendHeurMode_t other = first == CUDNN_HEUR_MODE_A ? CUDNN_HEUR_MODE_B : CUDNN_HEUR_MODE_A;
    int count = b.failed ? 0 : guess(&b, shape, of, first, plans, 0, most);
    if (!b.failed && most > 1) /* to be measured */
        count = guess(&b, shape, of, other, plans, count, most);
    if (!b.failed && count == 0)
        count = guess(&b, shape, of, CUDNN_HEUR_MODE_FALLBACK, plans, count, most);
    pc__cudnn_destroy(b.made, b.count);
    return count;
}

/* cuDNN 9.19 fuses a bias, with a ReLU or without, and no ReLU without a bias: that is for our kernels behind the bare
 * product. So is a bias in float32 where there is no way with it. In 16 bits that rounds once more, as PyTorch does: only
 * where it is measured to be worth it, since the engines that fuse are few. */
int pc__cudnn_plans(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most)
{
    pc__conv_shape bare = *shape;
    const bool more = shape->direction == PC__CONV_FORWARD && (shape->bias || shape->relu), measured = most > 1;
    int count = plans_of(target, shape, plans, more && measured ? most / 2 : most);
    if (!more || (!measured && (count || (shape->bias && shape->dtype != PC__CUDA_F32))))
        return count;
    bare.bias = bare.relu = 0;
    const int bares = plans_of(target, &bare, plans + count, most - count);
    for (int i = count; i < count + bares; i++)
        plans[i].bare = true;
    return count + bares;
}

void pc__cudnn_plan_free(pc__cudnn_plan *plan)
{
    pc__cudnn_destroy(&plan->plan, 1);
    pc__cudnn_destroy(&plan->config, 1);
    *plan = (pc__cudnn_plan){0};
}

#endif
