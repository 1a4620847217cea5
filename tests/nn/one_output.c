/* Training a network with one output by recorded steps, as the header of pc_step says: whatever the step's function
 * does, weights have the bits that plain calls leave. */
#include "networks.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

enum { STEPS = 5, ROWS = 32, INPUTS = 1060, WIDTH = 20, MOST = 8 }; /* layers that many GPUs do together backward */

typedef enum way {
    PLAIN,
    LOSS_KEPT,        /* the function copies it */
    TWO_BATCHES,      /* whose gradients add up */
    TWO_LOSSES,       /* of the same logits */
    LOSS_SQUARED,     /* it is used twice */
    LAYER_FROZEN,     /* the last one */
    FRONT_FROZEN,     /* or the others */
    ON_ANOTHER,       /* stream: the last layer */
    TIED,             /* the last layer's weight is a part of what it multiplies */
    ROWS_EXPANDED,    /* one picture is the batch */
    LABELS_OF_MORE,   /* a part of a longer list, which are no classes */
    TWO_OPTIMIZERS,   /* with steps of their own by turns */
    TWO_STEPS,        /* of one optimiser, in two dtypes */
    LOADED,           /* weights, as from a file, between steps */
    GRADIENT_WAITING, /* when a step begins */
    RATE_AND_SEED,    /* change */
    WAYS
} way;

typedef struct job {
    way way;
    pc_dtype dtype;
    bool adam, dropout;
    int rows, inputs;
    pc_module *net;
    pc_parameter list[MOST];
    int count;
    pc_optimizer *optimizer[2];
    pc_scaler *scaler;
    pc_stream *side;
    pc_tensor *x, *labels, *loss; /* of the scope */
} job;

typedef struct learning {
    job *job;
    pc_optimizer *optimizer;
    pc_dtype dtype;
} learning;

static pc_tensor *parameter(const job *j, const char *name)
{
    pc_tensor *t = pc_module_parameter(j->net, name);
    assert_not_null_ok(t);
    return t;
}

static const char *last_weight(const job *j)
{
    return j->dropout ? "2.weight" : "1.weight";
}

/* The CPU records one stream alone. */
static pc_tensor *on_another(const job *j, pc_tensor *h)
{
    pc_module *last = pc_module_child(j->net, 1);
    if (test_device().type == PC_CPU)
        return pc_forward(last, h);
    pc_event *fork = pc_event_new(test_device());
    pc_tensor *y = NULL;
    assert_ok(pc_event_record(fork, NULL));
    assert_ok(pc_event_wait(fork, j->side));
    PC_WITH_STREAM(j->side) {
        y = pc_forward(last, h);
    }
    pc_event_free(fork);
    return y;
}

static pc_tensor *logits_of(const job *j, pc_tensor *x)
{
    if (j->way == ON_ANOTHER)
        return on_another(j, pc_forward(pc_module_child(j->net, 0), x));
    if (j->way == TIED) {
        pc_tensor *w = parameter(j, last_weight(j));
        pc_tensor *h = pc_add(pc_forward(pc_module_child(j->net, 0), x), w);
        return pc_fn_linear(h, w, NULL, PC_ACTIVATION_NONE);
    }
    return pc_forward(j->net, x);
}

static pc_tensor *loss_of(const job *j, pc_tensor *x)
{
    pc_tensor *labels = j->labels;
    if (j->way == LABELS_OF_MORE)
        labels = pc_slice(labels, 0, 3, 3 + j->rows, 1);
    if (j->way == ROWS_EXPANDED)
        x = pc_expand(pc_slice(x, 0, 0, 1, 1), PC_SHAPE(j->rows, j->inputs));
    pc_tensor *logits = logits_of(j, x), *loss = pc_bce_with_logits(logits, labels);
    if (j->way == TWO_LOSSES)
        loss = pc_add(loss, pc_bce_with_logits(logits, pc_zeros(PC_SHAPE(j->rows, 1), PC_F32, test_device())));
    return j->way == LOSS_SQUARED ? pc_add(loss, pc_mul(loss, loss)) : loss;
}

static pc_status add_gradients(const learning *l)
{
    const job *j = l->job;
    pc_tensor *loss = NULL;
    pc_status status = PC_OK;
    PC_AUTOCAST(l->dtype)
        loss = loss_of(j, j->x);
    status = pc_backward(j->scaler ? pc_scaler_scale(j->scaler, loss) : loss);
    if (status == PC_OK && j->way == LOSS_KEPT)
        PC_NO_GRAD
            status = pc_copy(j->loss, loss);
    return status;
}

static pc_status learn(void *user)
{
    const learning *l = user;
    const job *j = l->job;
    pc_status status = PC_OK;
    PC_SCOPE {
        for (int i = 0; i < 1 + (j->way == TWO_BATCHES) && status == PC_OK; i++)
            status = add_gradients(l);
        if (status == PC_OK)
            status = j->scaler ? pc_scaler_step(j->scaler, l->optimizer) : pc_optimizer_step(l->optimizer);
        if (status == PC_OK && j->scaler)
            status = pc_scaler_update(j->scaler);
    }
    return status;
}

static pc_module *network(const job *j)
{
    pc_module *front = pc_linear(j->inputs, WIDTH, .activation = PC_ACTIVATION_RELU), *last = pc_linear(WIDTH, 1);
    return on_device(j->dropout ? pc_sequential(front, pc_dropout(0.25), last) : pc_sequential(front, last));
}

static pc_optimizer *optimizer(const job *j, double lr)
{
    return j->adam ? pc_adam(j->net, .lr = lr, .weight_decay = 0.01) : pc_sgd(j->net, .lr = 10 * lr);
}

static void begin(job *j)
{
    const pc_device device = test_device();
    pc_seed(5);
    j->net = network(j);
    j->count = pc_module_parameter_list(j->net, j->list, MOST);
    for (int i = 0; i < j->count; i++)
        if ((j->way == LAYER_FROZEN && i >= 2) || (j->way == FRONT_FROZEN && i < 2))
            assert_ok(pc_require_grad(j->list[i].tensor, false));
    for (int i = 0; i < 2; i++)
        assert_not_null_ok(j->optimizer[i] = optimizer(j, 0.01 * (i + 1)));
    if (j->dtype == PC_F16)
        assert_not_null_ok(j->scaler = pc_scaler(device, .initial = 0x1p20, .interval = 2));
    assert_not_null_ok(j->side = pc_stream(device));
    j->x = pc_randn(PC_SHAPE(j->rows, j->inputs), PC_F32, device);
    j->labels = pc_rand(PC_SHAPE(j->rows + 7, 1), PC_F32, device);
    if (j->way != LABELS_OF_MORE)
        j->labels =
            pc_cast(pc_gt(pc_slice(j->labels, 0, 0, j->rows, 1), pc_full(PC_SHAPE(), 0.5, PC_F32, device)), PC_F32);
    j->loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, device);
}

static void end(job *j)
{
    for (int i = 0; i < 2; i++)
        pc_optimizer_free(j->optimizer[i]);
    pc_scaler_free(j->scaler);
    pc_module_free(j->net);
    assert_ok(pc_stream_synchronize(j->side));
    pc_stream_free(j->side);
}

/* In front of step i. */
static void happen(job *j, const learning *l, int i)
{
    if (j->way == RATE_AND_SEED && i == 3)
        pc_optimizer_set_lr(l->optimizer, 0.03);
    if (j->way == RATE_AND_SEED && i == 4)
        pc_seed(77);
    if (j->way == GRADIENT_WAITING && i == 3)
        PC_SCOPE {
            assert_ok(add_gradients(l));
        }
    if (j->way == LOADED && i % 2)
        PC_SCOPE {
            pc_parameter state[MOST];
            memcpy(state, j->list, sizeof state);
            for (int k = 0; k < j->count; k++)
                state[k].tensor = pc_full(pc_tensor_shape(j->list[k].tensor), 0.01 * (i + k), PC_F32, PC_DEVICE_CPU);
            assert_ok(pc_module_load(j->net, state, j->count));
        }
}

/* The weights after all, and the losses in front of each step, of a forward pass outside. */
static void train(job j, bool recorded, pc_tensor *weights[MOST], double losses[STEPS])
{
    begin(&j);
    const bool two = j.way == TWO_OPTIMIZERS || j.way == TWO_STEPS;
    learning l[2] = {{&j, j.optimizer[0], j.dtype},
                     {&j, j.optimizer[j.way == TWO_OPTIMIZERS], j.way == TWO_STEPS ? PC_F32 : j.dtype}};
    pc_step *steps[2];
    for (int k = 0; k < 2; k++)
        assert_not_null_ok(steps[k] = pc_step_new(learn, &l[k], l[k].optimizer));
    for (int i = 0; i < STEPS * (1 + two); i++) {
        const int k = two && i % 2;
        happen(&j, &l[k], i);
        assert_ok(recorded ? pc_step_run(steps[k]) : learn(&l[k]));
        if (i < STEPS)
            PC_SCOPE
                PC_NO_GRAD
                    PC_AUTOCAST(j.dtype)
                        losses[i] = j.way == LOSS_KEPT ? pc_item(j.loss) : j.dropout ? 0 : pc_item(loss_of(&j, j.x));
    }
    for (int k = 0; recorded && k < 1 + two; k++)
        if (pc_step_why(steps[k]))
            fail_msg("way %d is not recorded: %s", (int)j.way, pc_step_why(steps[k]));
    for (int k = 0; k < 2; k++)
        pc_step_free(steps[k]);
    for (int i = 0; i < j.count; i++)
        assert_not_null_ok(weights[i] = pc_clone(pc_detach(j.list[i].tensor)));
    end(&j);
}

static void assert_same(job j)
{
    PC_SCOPE {
        pc_tensor *plain[MOST] = {NULL}, *recorded[MOST] = {NULL};
        double a[STEPS] = {0}, b[STEPS] = {0};
        train(j, false, plain, a);
        train(j, true, recorded, b);
        for (int i = 0; i < STEPS; i++)
            if (a[i] != b[i])
                fail_msg("way %d, %s, %s, %d rows of %d: loss %d is %g, not %g", (int)j.way, pc_dtype_name(j.dtype),
                         j.adam ? "adam" : "sgd", j.rows, j.inputs, i, b[i], a[i]);
        for (int i = 0; i < MOST && plain[i]; i++)
            if (distance(recorded[i], plain[i]) != 0)
                fail_msg("way %d, %s, %s, %d rows of %d: parameter %d is %g off", (int)j.way, pc_dtype_name(j.dtype),
                         j.adam ? "adam" : "sgd", j.rows, j.inputs, i, distance(recorded[i], plain[i]));
    }
    assert_nothing_left();
}

static void any_way(pc_dtype dtype)
{
    for (int i = sampled() ? (int)dtype % 2 : 0; i < WAYS; i += sampled() ? 2 : 1) /* by turns: others have as many */
        assert_same((job){.way = (way)i, .dtype = dtype, .adam = i % 2, .rows = ROWS, .inputs = INPUTS});
}

static void in_floats(void **state)
{
    (void)state;
    any_way(PC_F32);
}

static void in_16_bits(void **state)
{
    (void)state;
    any_way(PC_BF16);
    any_way(PC_F16);
}

static void of_other_sizes(void **state)
{
    (void)state;
    const int rows[] = {1, 33, 64, 65};
    for (int i = 0; i < 4; i++)
        for (int d = 0; d < 2; d++)
            assert_same((job){.dtype = d ? PC_BF16 : PC_F32, .adam = true, .rows = rows[i], .inputs = 37 + i});
}

static void with_dropout(void **state)
{
    (void)state;
    assert_same((job){.dtype = PC_F32, .adam = true, .dropout = true, .rows = ROWS, .inputs = INPUTS});
    assert_same((job){.dtype = PC_BF16, .way = LOSS_KEPT, .dropout = true, .rows = ROWS, .inputs = INPUTS});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_floats),
        cmocka_unit_test(in_16_bits),
        cmocka_unit_test(of_other_sizes),
        cmocka_unit_test(with_dropout),
    };
    return cmocka_run_group_tests_name("nn.one_output", tests, NULL, NULL);
}
