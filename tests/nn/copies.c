/* Parameters in 16 bits that recorded steps write beside them (plan/shadows.c): whatever happens between launches, weights
 * have the bits that plain calls leave. */
#include "counted.h"
#include "networks.h"
#include "nn/step.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

enum { STEPS = 7, TURNS = PC__STEP_TURNS, MOST = 100 };

/* What happens, beside training. */
typedef enum happening {
    NOTHING,
    IN_TURNS,
    ANOTHER_RATE,
    WEIGHTS_FILLED,   /* by the program */
    WEIGHTS_COPIED,   /* from a tensor of the host */
    WEIGHTS_LOADED,   /* as a state */
    WEIGHTS_MAPPED,   /* and written by the host */
    POINTER_OUT,      /* to a weight, through which the program may write */
    GRAPH_LAUNCHED,   /* of the program's own, which writes a weight */
    PLAIN_STEPS,      /* call by call, between launches */
    OTHER_STEPS,      /* of a recording without mixed precision */
    CLIPPED_IN_STEP,  /* the step itself writes a weight when all is done */
    CLIPPED_AT_FIRST, /* or before */
    TWO_UPDATES,      /* in a step */
    FROZEN,           /* a layer has no gradient */
    ONE_OF_16_BITS,   /* a parameter that has no float32 */
    TIED,             /* the net has a parameter under two names, and plain functions use it too */
    INFINITE,         /* gradients at first, so that the scaler leaves steps out */
    HAPPENINGS
} happening;

typedef struct training {
    happening what;
    pc_dtype dtype;
    bool adam;
    int deep; /* layers in the middle */
    pc_module *net;
    pc_optimizer *optimizer;
    pc_scaler *scaler;
    pc_parameter list[MOST];
    int count, turn;
    pc_tensor *x[TURNS], *labels;
    pc_graph *graph; /* NULL: none */
    float *pointer;  /* the same */
} training;

static pc_status clip(const training *t)
{
    pc_status status = PC_ERR_STATE;
    PC_NO_GRAD
        status = pc_fill(t->list[2].tensor, 0.25);
    return status;
}

static pc_status update(const training *t, pc_dtype dtype)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        PC_AUTOCAST(dtype)
            loss = pc_cross_entropy(pc_forward(t->net, t->x[t->turn]), t->labels);
        if (t->what == ONE_OF_16_BITS)
            loss = pc_add(loss, pc_cast(pc_sum(pc_module_parameter(t->net, "narrow")), PC_F32));
        if (t->what == TIED)
            PC_AUTOCAST(dtype) {
                pc_tensor *w = pc_module_parameter(t->net, "tied");
                loss = pc_add(loss, pc_mean(pc_matmul(pc_transpose(w, 0, 1), pc_add(w, w))));
            }
        status = pc_backward(t->scaler ? pc_scaler_scale(t->scaler, loss) : loss);
        if (status == PC_OK)
            status = t->scaler ? pc_scaler_step(t->scaler, t->optimizer) : pc_optimizer_step(t->optimizer);
        if (status == PC_OK && t->scaler)
            status = pc_scaler_update(t->scaler);
    }
    return status;
}

static pc_status learn(void *user)
{
    const training *t = user;
    pc_status status = t->what == CLIPPED_AT_FIRST ? clip(t) : PC_OK;
    for (int i = 0; i < 1 + (t->what == TWO_UPDATES) && status == PC_OK; i++)
        status = update(t, t->dtype);
    return status == PC_OK && t->what == CLIPPED_IN_STEP ? clip(t) : status;
}

static pc_status learn_in_full(void *user)
{
    return update(user, PC_F32);
}

static pc_module *network(int deep)
{
    pc_module *children[MOST] = {pc_conv2d(2, 4, 3, .activation = PC_ACTIVATION_RELU), pc_flatten(), pc_linear(64, 3)};
    int n = 3;
    for (int i = 0; i < deep; i++)
        children[n++] = pc_linear(3, 3);
    children[n++] = pc_linear(3, 5);
    return on_device(pc_sequential_new(children, n));
}

static pc_graph *recorded_clip(const training *t)
{
    pc_stream *stream = pc_stream_current(test_device());
    assert_ok(pc_graph_begin(stream));
    assert_ok(clip(t));
    return pc_graph_end(stream);
}

static void begin(training *t)
{
    pc_seed(3);
    t->net = network(t->deep);
    if (t->what == ONE_OF_16_BITS)
        PC_SCOPE {
            pc_tensor *narrow = pc_full(PC_SHAPE(100), 1, PC_F16, test_device());
            assert_ok(pc_module_add_parameter(t->net, "narrow", narrow));
        }
    if (t->what == TIED)
        assert_ok(pc_module_add_parameter(t->net, "tied", pc_module_parameter(t->net, "2.weight")));
    t->count = pc_module_parameter_list(t->net, t->list, MOST);
    assert_in_range(t->count, 1, MOST);
    if (t->what == FROZEN)
        assert_ok(pc_require_grad(t->list[2].tensor, false));
    t->optimizer = t->adam ? pc_adam(t->net, .lr = 0.05) : pc_sgd(t->net, .lr = 0.25, .momentum = 0.5);
    t->scaler = t->what == INFINITE ? pc_scaler(test_device(), .initial = 0x1p24, .interval = 3) : NULL;
    if (t->what == GRAPH_LAUNCHED)
        assert_not_null_ok(t->graph = recorded_clip(t));
    for (int i = 0; i < TURNS; i++)
        t->x[i] = pc_tensor_retain(pc_randn(PC_SHAPE(5, 2, 6, 6), PC_F32, test_device()));
    t->labels = pc_tensor_retain(pc_from_data((int64_t[]){0, 1, 2, 0, 4}, PC_SHAPE(5), PC_I64, test_device()));
}

static void load(const training *t)
{
    PC_SCOPE {
        pc_parameter state[MOST];
        for (int i = 0; i < t->count; i++) {
            state[i] = t->list[i];
            state[i].tensor = pc_mul_scalar(pc_detach(t->list[i].tensor), 0.75);
        }
        assert_ok(pc_module_load(t->net, state, t->count));
    }
}

static void happen(training *t, pc_step *other, int i)
{
    pc_tensor *weight = t->list[2].tensor;
    if (t->what == IN_TURNS)
        t->turn = i % 3 == 2;
    if (t->what == ANOTHER_RATE && i == 4)
        pc_optimizer_set_lr(t->optimizer, 0.125);
    if (t->what == PLAIN_STEPS && i % 3 == 2)
        assert_ok(learn(t));
    if (t->what == OTHER_STEPS)
        assert_ok(other ? pc_step_run(other) : learn_in_full(t));
    if (t->what == POINTER_OUT && i == 3)
        t->pointer = pc_device_pointer(weight);
    if (t->pointer && (emulated() || test_device().type == PC_CPU)) {
        assert_ok(pc_device_synchronize(test_device()));
        t->pointer[0] = 0.25f * (float)i;
    }
    if (i % 2)
        return;
    if (t->graph)
        assert_ok(pc_graph_launch(t->graph, NULL));
    PC_NO_GRAD {
        if (t->what == WEIGHTS_FILLED)
            assert_ok(pc_fill(weight, 0.03 * i));
        if (t->what == WEIGHTS_COPIED)
            assert_ok(pc_copy(weight, pc_randn(pc_tensor_shape(weight), PC_F32, PC_DEVICE_CPU)));
        if (t->what == WEIGHTS_LOADED)
            load(t);
        if (t->what == WEIGHTS_MAPPED && test_device().type == PC_CPU) {
            float *at = pc_map(weight, PC_MAP_WRITE);
            assert_not_null_ok(at);
            at[0] = 0.125f * (float)i;
            assert_ok(pc_unmap(weight));
        }
    }
}

static void assert_recorded(const pc_step *step)
{
    if (step && pc_step_why(step))
        fail_msg("not recorded: %s", pc_step_why(step));
}

/* The weights after STEPS steps, and how many casts of lists the host queued for the last one. */
static int train(training t, bool recorded, pc_tensor *weights[MOST])
{
    begin(&t);
    pc_step *step = recorded ? pc_step_new(learn, &t, t.optimizer) : NULL;
    pc_step *other = recorded && t.what == OTHER_STEPS ? pc_step_new(learn_in_full, &t, t.optimizer) : NULL;
    for (int i = 0; i < STEPS; i++) {
        happen(&t, other, i);
        if (i == STEPS - 1)
            start_timeline();
        assert_ok(step ? pc__step_run(step, t.turn) : learn(&t));
    }
    const int lists = stop_counting().lists;
    assert_recorded(step);
    assert_recorded(other);
    for (int i = 0; i < t.count; i++)
        assert_not_null_ok(weights[i] = pc_detach(t.list[i].tensor));
    pc_step_free(step);
    pc_step_free(other);
    pc_optimizer_free(t.optimizer);
    pc_scaler_free(t.scaler);
    pc_graph_free(t.graph);
    for (int i = 0; i < TURNS; i++)
        pc_tensor_free(t.x[i]);
    pc_tensor_free(t.labels);
    pc_module_free(t.net);
    return lists;
}

/* True where something has written weights in front of the last launch, which casts them again. */
static bool goes_stale(happening what)
{
    return what == WEIGHTS_FILLED || what == GRAPH_LAUNCHED || what == WEIGHTS_COPIED || what == WEIGHTS_LOADED ||
           what == OTHER_STEPS || what == POINTER_OUT || (what == WEIGHTS_MAPPED && test_device().type == PC_CPU);
}

static void assert_same_weights(training t)
{
    PC_SCOPE {
        pc_tensor *plain[MOST] = {NULL}, *recorded[MOST] = {NULL};
        (void)train(t, false, plain);
        const int lists = train(t, true, recorded);
        if (!getenv("PARACORD_PLAN"))
            assert_int_equal(lists, goes_stale(t.what));
        for (int i = 0; i < MOST && plain[i]; i++)
            if (distance(recorded[i], plain[i]) != 0)
                fail_msg("happening %d, parameter %d: %g apart", (int)t.what, i, distance(recorded[i], plain[i]));
    }
    assert_nothing_left();
}

static void whatever_happens(void **state)
{
    (void)state;
    for (int what = 0; what < HAPPENINGS; what++) {
        const pc_dtype dtype = what % 2 || what == INFINITE ? PC_F16 : PC_BF16;
        assert_same_weights((training){.what = (happening)what, .dtype = dtype, .adam = true});
    }
}

static void by_sgd(void **state)
{
    (void)state;
    const happening some[] = {NOTHING, IN_TURNS, WEIGHTS_FILLED, INFINITE};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        assert_same_weights((training){.what = some[i], .dtype = i % 2 ? PC_BF16 : PC_F16});
}

/* More parameters than a launch of the optimiser takes. */
static void many(void **state)
{
    (void)state;
    assert_same_weights((training){.dtype = PC_BF16, .adam = true, .deep = 40});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens),
        cmocka_unit_test(by_sgd),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests_name("nn.copies", tests, NULL, NULL);
}
