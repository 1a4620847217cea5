/* Threads that train, measure and ask on one device, all on its default stream: each gets the bits that it gets alone.
 */
#include "folder.h"

#include "device.h"

#include <paracord.h>
#include <pthread.h>

enum { MOST = 16, STEPS = 12, FEATURES = 6, BATCH = 8, CLASSES = 3, KINDS = 4, PICTURES = 24 };

static test_path root;

/* What a thread comes to; it says by itself what went wrong, since assertions are the main thread's. */
typedef struct outcome {
    float bits[1024];
    int count;
    char wrong[PC_MESSAGE_MAX];
} outcome;

typedef struct worker {
    void (*work)(int number, outcome *result);
    int number;
    pthread_barrier_t *start;
    outcome result;
} worker;

static void says(outcome *result)
{
    if (!result->wrong[0])
        snprintf(result->wrong, sizeof result->wrong, "%s", pc_failed() ? pc_error_last()->message : "no error");
    pc_error_clear();
}

static void add_tensor(outcome *result, const pc_tensor *t)
{
    const int n = t ? (int)pc_tensor_count(t) : 0;
    if (!n || result->count + n > 1024 || pc_read(t, result->bits + result->count, (size_t)n * sizeof(float)) != PC_OK)
        says(result);
    else
        result->count += n;
}

static void add_weights(outcome *result, const pc_module *net)
{
    pc_parameter list[16];
    const int n = pc_module_parameter_list(net, list, 16);
    for (int i = 0; i < n; i++)
        add_tensor(result, list[i].tensor);
}

/* --- pc_step --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x, *labels;
    bool mixed;
} job;

static pc_status learn(void *user)
{
    const job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *logits = NULL;
        PC_AUTOCAST(j->mixed ? PC_BF16 : PC_F32) {
            logits = pc_forward(j->net, j->x);
        }
        status = pc_backward(pc_cross_entropy(logits, j->labels));
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
    }
    return status;
}

/* By number: networks with and without dropout, float32 and mixed precision, Adam and SGD, of sizes of their own. */
static bool make(job *j, int number)
{
    const int hidden = 5 + number % 3;
    const pc_device device = pc_device_pick(test_device_name());
    pc_seed((uint64_t)number + 1);
    *j = (job){.mixed = number % KINDS == 2};
    j->net = pc_sequential(pc_linear(FEATURES, hidden, .activation = PC_ACTIVATION_TANH),
                           pc_dropout(number % 2 ? 0.3 : 0), pc_linear(hidden, CLASSES));
    if (!j->net || pc_module_to(j->net, device, PC_F32) != PC_OK)
        return false;
    j->optimizer = number % KINDS == 3 ? pc_sgd(j->net, .lr = 0.05, .momentum = 0.9) : pc_adam(j->net, .lr = 1e-2);
    j->x = pc_empty(PC_SHAPE(BATCH, FEATURES), PC_F32, device);
    j->labels = pc_empty(PC_SHAPE(BATCH), PC_I64, device);
    return j->optimizer && j->x && j->labels;
}

static pc_status next_batch(const job *j, int number, int step)
{
    float x[BATCH * FEATURES];
    int64_t labels[BATCH];
    pc_status status = PC_OK;
    for (int i = 0; i < BATCH * FEATURES; i++)
        x[i] = (float)((i * 37 + step * 11 + number * 17) % 101) / 101;
    for (int i = 0; i < BATCH; i++)
        labels[i] = (i + step + number) % CLASSES;
    PC_SCOPE {
        status = pc_copy(j->x, pc_from_data(x, PC_SHAPE(BATCH, FEATURES), PC_F32, pc_tensor_device(j->x)));
        if (status == PC_OK)
            status = pc_copy(j->labels, pc_from_data(labels, PC_SHAPE(BATCH), PC_I64, pc_tensor_device(j->x)));
    }
    return status;
}

static void train_by_steps(int number, outcome *result)
{
    job j;
    pc_step *step = make(&j, number) ? pc_step_new(learn, &j, j.optimizer) : NULL;
    pc_status status = step ? PC_OK : PC_ERR_ARGUMENT;
    for (int i = 0; i < STEPS && status == PC_OK; i++) {
        if (i == STEPS / 2)
            pc_optimizer_set_lr(j.optimizer, 3e-3); /* recorded anew, while others launch */
        status = next_batch(&j, number, i);
        if (status == PC_OK)
            status = pc_step_run(step);
    }
    if (status != PC_OK || pc_step_why(step))
        says(result);
    add_weights(result, j.net);
    PC_SCOPE {
        add_tensor(result, pc_predict(j.net, j.x));
    }
    pc_step_free(step);
    pc_tensor_free(j.labels);
    pc_tensor_free(j.x);
    pc_optimizer_free(j.optimizer);
    pc_module_free(j.net);
}

/* --- pc_fit, pc_evaluate --- */

static void train_by_fit(int number, outcome *result)
{
    const pc_device device = pc_device_pick(test_device_name());
    pc_seed((uint64_t)number + 1);
    pc_module *net = pc_sequential(pc_conv2d(3, 4, 3, .stride = 2, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                   pc_flatten(), pc_dropout(number % 2 ? 0.2 : 0), pc_linear(4, 1));
    if (!net || pc_module_to(net, device, PC_F32) != PC_OK)
        says(result);
    pc_optimizer *adam = pc_adam(net, .lr = 3e-3);
    pc_loader *train = pc_loader(joined(root.s, "pictures").s, .size = 8, .batch = 5, .shuffle = true, .flip = true,
                                 .seed = (uint64_t)number, .device = device);
    pc_epoch_result last = {0};
    pc_score score = {0};
    if (pc_fit(net, adam, train, PC_OPTIONS(pc_fit_options, .epochs = 2, .mixed = number % 3 == 2 ? PC_MIXED_BF16 : 0),
               &last) != PC_OK ||
        pc_evaluate(net, train, &score) != PC_OK)
        says(result);
    add_weights(result, net);
    result->bits[result->count++] = (float)last.loss;
    result->bits[result->count++] = (float)score.loss;
    pc_loader_free(train);
    pc_optimizer_free(adam);
    pc_module_free(net);
}

/* --- one classifier for all, and one network --- */

static pc_classifier *asked;
static pc_module *shared;

static void ask(int number, outcome *result)
{
    static const char *const pictures[] = {"cat/b01.png", "dog/b01.png", "cat/a03.png", "dog/c05.png"};
    for (int i = 0; i < 8; i++) {
        pc_prediction p = {0};
        if (pc_classifier_predict(asked, root.s, &p) == PC_OK)
            says(result); /* a folder is no picture: the error is each thread's own */
        pc_error_clear();
        test_path picture = joined(root.s, "pictures/");
        strncat(picture.s, pictures[(i + number) % 4], sizeof picture.s - strlen(picture.s) - 1);
        if (pc_classifier_predict(asked, picture.s, &p) != PC_OK)
            says(result);
        result->bits[result->count++] = (float)p.probability;
        result->bits[result->count++] = (float)p.label;
    }
    pc_evaluation e = {0};
    if (pc_classifier_evaluate(asked, joined(root.s, "pictures").s, 5, NULL, &e) != PC_OK)
        says(result);
    result->bits[result->count++] = (float)e.loss;
    result->bits[result->count++] = (float)e.correct;
    pc_evaluation_free(&e);
    PC_SCOPE { /* in training mode, with dropout: what asks does not change that */
        pc_tensor *x = pc_full(PC_SHAPE(2, FEATURES), (double)(number % 3), PC_F32, pc_device_pick(test_device_name()));
        add_tensor(result, pc_predict(shared, x));
    }
}

/* --- all of it --- */

static void mix(int number, outcome *result)
{
    static void (*const kinds[])(int, outcome *) = {train_by_steps, train_by_fit, ask};
    kinds[number % 3](number, result);
}

static void *run(void *context)
{
    worker *w = context;
    if (w->start)
        pthread_barrier_wait(w->start);
    w->work(w->number, &w->result);
    return NULL;
}

static outcome alone[MOST];
static worker workers[MOST];

static void in_threads(void (*work)(int, outcome *), int count)
{
    pthread_t threads[MOST];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){.work = work, .number = i, .start = &start};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

static void check(void (*work)(int, outcome *), const int *counts)
{
    int most = 0;
    for (const int *c = counts; *c; c++)
        most = *c > most ? *c : most;
    for (int i = 0; i < most; i++) {
        alone[i] = (outcome){.count = 0};
        work(i, &alone[i]);
        assert_string_equal(alone[i].wrong, "");
        assert_true(alone[i].count > 0);
    }
    for (const int *c = counts; *c; c++) {
        in_threads(work, *c);
        for (int i = 0; i < *c; i++) {
            const outcome *got = &workers[i].result;
            if (got->wrong[0])
                fail_msg("thread %d of %d: %s", i, *c, got->wrong);
            assert_int_equal(got->count, alone[i].count);
            if (memcmp(got->bits, alone[i].bits, (size_t)got->count * sizeof *got->bits) != 0)
                fail_msg("thread %d of %d came to other numbers than alone", i, *c);
        }
    }
}

static void steps(void **state)
{
    (void)state;
    check(train_by_steps, (const int[]){2, 4, 4, MOST, 0});
}

static void fits(void **state)
{
    (void)state;
    check(train_by_fit, (const int[]){3, 4, 0});
}

static void one_classifier(void **state)
{
    (void)state;
    check(ask, (const int[]){2, 4, 0});
}

static void everything(void **state)
{
    (void)state;
    check(mix, (const int[]){6, 9, 0});
}

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    put_classes(placed(root.s, "pictures/").s, (const char *[]){"cat", "dog"}, 2, PICTURES / 2);
    test_path data = joined(root.s, "pictures"), out = joined(root.s, "out"), model = joined(root.s, "out/model.h5");
    pc_train_options settings = {.data = data.s,
                                 .out = out.s,
                                 .arch = "mlp",
                                 .device = test_device_name(),
                                 .epochs = 1,
                                 .batch = 4,
                                 .size = 8,
                                 .val_split = 0.25};
    pc_train_summary summary;
    (void)test_device(); /* which skips where there is none */
    assert_ok(pc_train_folder(settings, &summary));
    asked = pc_classifier_open(model.s, test_device_name());
    assert_not_null_ok(asked);
    shared = on_device(pc_sequential(pc_linear(FEATURES, 5), pc_dropout(0.5), pc_linear(5, 1)));
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    pc_module_free(shared);
    pc_classifier_free(asked);
    remove_root(&root);
    assert_no_leak();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(fits),
        cmocka_unit_test(one_classifier),
        cmocka_unit_test(everything),
    };
    return cmocka_run_group_tests_name("train.threads", tests, prepare, tidy);
}
