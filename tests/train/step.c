/* A recorded training step leaves the bits that plain steps leave: with short batches between, a changed learning
 * rate, and from a checkpoint; where a recording is refused, plain calls do. */
#include "folder.h"

#include "device.h"
#include "nn/optimizer.h"
#include "train/checkpoint.h"

#include <paracord.h>

enum { FEATURES = 6, CLASSES = 3, BATCH = 4, SHORT = 2 };

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x, *labels, *loss; /* what a whole step works with */
    int calls;
    bool reads; /* look at the loss, in the middle */
} job;

static pc_status learn_from(job *j, pc_tensor *x, pc_tensor *labels)
{
    pc_status status = PC_OK;
    j->calls++;
    PC_SCOPE {
        pc_tensor *loss = pc_cross_entropy(pc_forward(j->net, x), labels);
        float value;
        status = pc_backward(loss);
        if (status == PC_OK && j->reads)
            status = pc_read(loss, &value, sizeof value);
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
        if (status == PC_OK)
            PC_NO_GRAD {
                status = pc_copy(j->loss, loss);
            }
    }
    return status;
}

static pc_status learn(void *context)
{
    job *j = context;
    return learn_from(j, j->x, j->labels);
}

static pc_tensor *pictures(int seed, int64_t n)
{
    float values[BATCH * FEATURES];
    for (int i = 0; i < BATCH * FEATURES; i++)
        values[i] = (float)((i * 37 + seed * 11) % 101) / 101;
    return pc_from_data(values, PC_SHAPE(n, FEATURES), PC_F32, test_device());
}

static pc_tensor *classes(int seed, int64_t n)
{
    int64_t values[BATCH];
    for (int i = 0; i < BATCH; i++)
        values[i] = (i + seed) % CLASSES;
    return pc_from_data(values, PC_SHAPE(n), PC_I64, test_device());
}

static bool begin(job *j, bool adam, bool dropout)
{
    pc_seed(5);
    *j = (job){.calls = 0};
    j->net = dropout
                 ? pc_sequential(pc_linear(FEATURES, 5, .activation = PC_TANH), pc_dropout(0.3), pc_linear(5, CLASSES))
                 : pc_sequential(pc_linear(FEATURES, 5, .activation = PC_TANH), pc_linear(5, CLASSES));
    if (!j->net || pc_module_to(j->net, test_device(), PC_F32) != PC_OK)
        return false;
    j->optimizer = adam ? pc_adam(j->net, .lr = 1e-2) : pc_sgd(j->net, .lr = 0.05, .momentum = 0.9, .nesterov = true);
    PC_SCOPE {
        j->x = pc_tensor_retain(pictures(0, BATCH));
        j->labels = pc_tensor_retain(classes(0, BATCH));
        j->loss = pc_tensor_retain(pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device()));
    }
    return j->optimizer && j->x && j->labels && j->loss;
}

static void end(job *j)
{
    pc_tensor_free(j->x);
    pc_tensor_free(j->labels);
    pc_tensor_free(j->loss);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static pc_status one(job *j, pc_step *step, int i)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        if (i % 5 == 4) {
            status = learn_from(j, pictures(i, SHORT), classes(i, SHORT));
        } else {
            status = pc_copy(j->x, pictures(i, BATCH));
            if (status == PC_OK)
                status = pc_copy(j->labels, classes(i, BATCH));
            if (status == PC_OK)
                status = step ? pc_step_run(step) : learn(j);
        }
    }
    return status;
}

static void assert_same_bits(const pc_tensor *a, const pc_tensor *b)
{
    float x[4096], y[4096];
    size_t n = (size_t)pc_tensor_count(a) * sizeof *x;
    assert_true(n <= sizeof x);
    assert_ok(pc_read(a, x, n));
    assert_ok(pc_read(b, y, n));
    assert_memory_equal(x, y, n);
}

static void assert_same(const pc_optimizer *p, const pc_optimizer *q)
{
    assert_int_equal(p->count, q->count);
    for (int i = 0; i < p->count; i++)
        assert_same_bits(p->parameters[i], q->parameters[i]);
    for (int i = 0; i < p->count * p->slots; i++)
        assert_same_bits(p->state[i], q->state[i]);
    assert_int_equal(p->settings.step, q->settings.step);
}

static void compare(bool adam, bool dropout, const char *why)
{
    job plain, recorded;
    pc_generator generator = {3, 0};
    assert_true(begin(&plain, adam, dropout) && begin(&recorded, adam, dropout));
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    assert_not_null_ok(step);
    for (int i = 0; i < 23; i++) {
        double rate = i < 12 ? 0.02 : 0.01;
        pc_optimizer_set_lr(plain.optimizer, rate);
        pc_optimizer_set_lr(recorded.optimizer, rate);
        pc_generator_set(generator);
        assert_ok(one(&plain, NULL, i));
        pc_generator_set(generator);
        assert_ok(one(&recorded, step, i));
        generator = pc_generator_get();
        assert_same(plain.optimizer, recorded.optimizer);
        assert_same_bits(plain.loss, recorded.loss);
        for (int k = 0; k < recorded.optimizer->count; k++)
            assert_null(pc_grad(recorded.optimizer->parameters[k]));
    }
    if (why)
        assert_non_null(strstr(pc_step_why(step), why));
    else
        assert_null(pc_step_why(step));
    assert_int_equal(plain.calls, 23);
    assert_int_equal(recorded.calls, why ? 24 : 4 + 1 + 2); /* short, first, recorded */
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

static void the_bits_of_plain_steps(void **state)
{
    (void)state;
    compare(true, false, NULL);
    compare(false, false, NULL);
}

static void random_numbers_are_not_recorded(void **state)
{
    (void)state;
    compare(true, true, "random");
}

static void reading_is_not_recorded(void **state)
{
    (void)state;
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    plain.reads = recorded.reads = true;
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    assert_null(pc_step_why(step));
    for (int i = 0; i < 8; i++) {
        assert_ok(one(&plain, NULL, i));
        assert_ok(one(&recorded, step, i));
    }
    assert_same(plain.optimizer, recorded.optimizer);
    assert_non_null(strstr(pc_step_why(step), "step.c:"));
    assert_false(pc_failed());
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

/* Gradients that wait to be added to are not overlooked. */
static void gradients_add_up(void **state)
{
    (void)state;
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    for (int i = 0; i < 4; i++) {
        PC_SCOPE {
            for (int k = 0; i % 2 && k < 2; k++) {
                job *j = k ? &plain : &recorded;
                assert_ok(pc_backward(pc_cross_entropy(pc_forward(j->net, j->x), j->labels)));
            }
        }
        assert_ok(one(&plain, NULL, i));
        assert_ok(one(&recorded, step, i));
        assert_same(plain.optimizer, recorded.optimizer);
    }
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

/* A step that the host counts would be the same one with every launch. */
static void other_recordings_refuse_counted_steps(void **state)
{
    (void)state;
    job j, other;
    assert_true(begin(&j, true, false) && begin(&other, true, false));
    assert_ok(learn(&j));
    assert_ok(pc_graph_begin(pc_stream_current(test_device())));
    assert_fails(learn(&j) == PC_OK, PC_ERR_STATE, "pc_optimizer_step");
    assert_null(pc_graph_end(pc_stream_current(test_device())));
    pc_error_clear();
    pc_module_zero_grad(j.net);
    pc_step *step = pc_step_new(learn, &j, other.optimizer);
    for (int i = 0; i < 3; i++)
        assert_ok(one(&j, step, i));
    assert_int_equal(j.optimizer->settings.step, 4);
    assert_non_null(strstr(pc_step_why(step), "pc_optimizer_step"));
    pc_step_free(step);
    assert_fails(pc_step_new(NULL, NULL, j.optimizer), PC_ERR_ARGUMENT, "function");
    assert_fails(pc_step_run(NULL), PC_ERR_ARGUMENT, "NULL");
    end(&j);
    end(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_plain_steps),
        cmocka_unit_test(random_numbers_are_not_recorded),
        cmocka_unit_test(reading_is_not_recorded),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(other_recordings_refuse_counted_steps),
    };
    return cmocka_run_group_tests_name("train.step", tests, NULL, NULL);
}
