/* What changes the work of a step changes what pc_step_run does: the bits are those of plain calls, whatever was
 * changed between two runs, and nothing is recorded anew while nothing changes. */
#include "same.h"

#include "device.h"

#include <paracord.h>

enum { FEATURES = 6, CLASSES = 3, BATCH = 4 };

typedef struct job {
    pc_module *net, *gate, *first;
    pc_optimizer *optimizer;
    pc_tensor *x, *labels;
    bool sets_mode; /* the function itself, at its begin */
    int calls;
} job;

/* A module of the program's own, with a mode that the library knows nothing of, and what it counts for itself. */
typedef struct gate_data {
    double factor;
    int64_t passes;
} gate_data;

static pc_tensor *gate_forward(pc_module *module, pc_tensor *x)
{
    gate_data *own = pc_module_data(module);
    own->passes += pc_module_is_training(module);
    pc_tensor *y = pc_mul(x, pc_full(PC_SHAPE(1), own->factor, PC_F32, test_device()));
    for (int i = 0; i < pc_module_child_count(module); i++)
        y = pc_forward(pc_module_child(module, i), y);
    return y;
}

static const pc_module_class gate_class = {.name = "Gate", .forward = gate_forward};

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    j->calls++;
    if (j->sets_mode)
        pc_module_set_training(j->net, true);
    PC_SCOPE {
        status = pc_backward(pc_cross_entropy(pc_forward(j->net, j->x), j->labels));
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
    }
    return status;
}

static void make(job *j, bool sets_mode)
{
    float x[BATCH * FEATURES];
    int64_t labels[BATCH];
    for (int i = 0; i < BATCH * FEATURES; i++)
        x[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    pc_seed(5);
    *j = (job){.sets_mode = sets_mode};
    j->first = pc_linear(FEATURES, 5, .activation = PC_ACTIVATION_TANH);
    j->gate = pc_module_new(&gate_class, sizeof(gate_data));
    ((gate_data *)pc_module_data(j->gate))->factor = 1;
    j->net = on_device(pc_sequential(j->first, pc_dropout(0.4), j->gate, pc_linear(5, CLASSES)));
    j->optimizer = pc_adam(j->net, .lr = 1e-2);
    j->x = pc_from_data(x, PC_SHAPE(BATCH, FEATURES), PC_F32, test_device());
    j->labels = pc_from_data(labels, PC_SHAPE(BATCH), PC_I64, test_device());
}

static void drop(job *j)
{
    pc_tensor_free(j->labels);
    pc_tensor_free(j->x);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static pc_autocast_scope outer;

static void evaluation(job *j, bool there)
{
    pc_module_set_training(j->net, !there);
}

static void one_layer(job *j, bool there)
{
    pc_module_set_training(pc_module_child(j->net, 1), !there);
}

static void autocast(job *j, bool there)
{
    (void)j;
    if (there)
        outer = pc_autocast_enter(PC_BF16);
    else
        pc_autocast_leave(&outer);
}

static void own_data(job *j, bool there)
{
    ((gate_data *)pc_module_data(j->gate))->factor = there ? 0.5 : 1;
}

static void frozen(job *j, bool there)
{
    pc_parameter list[8];
    assert_true(pc_module_parameter_list(j->first, list, 8) > 0);
    assert_ok(pc_require_grad(list[0].tensor, !there));
}

static void new_child(job *j, bool there)
{
    if (there)
        assert_ok(pc_module_add_child(j->gate, "more", pc_activation(PC_ACTIVATION_SIGMOID)));
}

static void rate(job *j, bool there)
{
    pc_optimizer_set_lr(j->optimizer, there ? 1e-3 : 1e-2);
}

static void decay(job *j, bool there)
{
    j->optimizer->settings.group[0].weight_decay = there ? 0.1 : 0;
}

static void moments(job *j, bool there)
{
    j->optimizer->settings.beta1 = there ? 0.5 : 0.9;
    j->optimizer->settings.beta2 = there ? 0.9 : 0.999;
    j->optimizer->settings.epsilon = there ? 1e-3 : 1e-8;
}

static void seed(job *j, bool there)
{
    (void)j;
    pc_seed(there ? 77 : 5);
}

static void precision(job *j, bool there)
{
    (void)j;
    (void)pc_matmul_precision_set(there ? PC_PRECISION_TF32 : PC_PRECISION_F32);
}

static const struct {
    const char *name;
    void (*change)(job *j, bool there);
    bool alters; /* the weights, on every device */
} changes[] = {
    {"evaluation mode", evaluation, true},
    {"mode of one layer", one_layer, true},
    {"autocast", autocast, true},
    {"data of a module of the program", own_data, true},
    {"a frozen parameter", frozen, true},
    {"a new child", new_child, true},
    {"learning rate", rate, true},
    {"weight decay", decay, true},
    {"moments", moments, true},
    {"seed", seed, true},
    {"precision", precision, false},
};

static void go(job *j, pc_step *step, int n)
{
    for (int i = 0; i < n; i++)
        assert_ok(step ? pc_step_run(step) : learn(j));
}

/* There and back; `never`: without the change. */
static pc_generator whole(job *j, int which, bool recorded, bool never)
{
    make(j, false);
    pc_step *step = recorded ? pc_step_new(learn, j, j->optimizer) : NULL;
    go(j, step, 4);
    const int before = j->calls;
    if (!never)
        changes[which].change(j, true);
    go(j, step, 4);
    if (!never)
        changes[which].change(j, false);
    go(j, step, 4);
    if (recorded && (never ? j->calls != before : j->calls > before + 4))
        fail_msg("%s: %d calls of the function", changes[which].name, j->calls - before);
    if (recorded)
        assert_null(pc_step_why(step));
    pc_step_free(step);
    return pc_generator_get();
}

static bool differs(const pc_optimizer *p, const pc_optimizer *q)
{
    for (int i = 0; i < p->count; i++)
        PC_SCOPE {
            if (pc_item(pc_sum(pc_ne(p->parameters[i], q->parameters[i]))) != 0)
                return true;
        }
    return false;
}

static void each_change_counts(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof changes / sizeof *changes); i++) {
        job plain, recorded, never;
        const pc_generator a = whole(&plain, i, false, false), b = whole(&recorded, i, true, false);
        assert_true(a.seed == b.seed && a.step == b.step);
        (void)whole(&never, i, true, true);
        assert_same(plain.optimizer, recorded.optimizer);
        if (changes[i].alters && !differs(plain.optimizer, never.optimizer))
            fail_msg("%s changes nothing", changes[i].name);
        drop(&never);
        drop(&recorded);
        drop(&plain);
    }
}

/* What somebody does between steps is no change: one call, and then launches. */
static void goes_on(bool sets_mode, void (*between)(job *j))
{
    job plain, recorded;
    for (int k = 0; k < 2; k++) {
        job *j = k ? &recorded : &plain;
        make(j, sets_mode);
        pc_step *step = k ? pc_step_new(learn, j, j->optimizer) : NULL;
        for (int i = 0; i < 6; i++) {
            go(j, step, 1);
            between(j);
        }
        assert_true(!k || j->calls == 1);
        pc_step_free(step);
    }
    assert_same(plain.optimizer, recorded.optimizer);
    drop(&recorded);
    drop(&plain);
}

static void evaluate(job *j)
{
    pc_module_set_training(j->net, false);
}

static void a_mode_that_the_step_sets(void **state)
{
    (void)state;
    goes_on(true, evaluate);
}

static void predict(job *j)
{
    PC_SCOPE {
        assert_not_null_ok(pc_predict(j->net, j->x));
    }
}

static void predictions_between(void **state)
{
    (void)state;
    goes_on(false, predict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_change_counts, nothing_left),
        cmocka_unit_test_teardown(a_mode_that_the_step_sets, nothing_left),
        cmocka_unit_test_teardown(predictions_between, nothing_left),
    };
    return cmocka_run_group_tests_name("train.step_changes", tests, NULL, NULL);
}
