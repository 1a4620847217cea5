/* A training on the test's device ends with the bits that it has on the CPU, and either goes on from the other's
 * checkpoint. */
#include "group.h"

#include "device.h"
#include "train/scorer.h"

#include <paracord.h>

enum { SIZE = 16, BATCH = 2, PICTURES = 20, EPOCHS = 2, BATCHES = 2 * PICTURES / BATCH }; /* BATCHES > PC__AHEAD */

static test_path data;

static int prepare(void **state)
{
    open_folder(state);
    data = joined(root.s, "data");
    put_classes(placed(root.s, "data/train/").s, (const char *[]){"cat", "dog"}, 2, PICTURES);
    put_classes(placed(root.s, "data/test/").s, (const char *[]){"cat", "dog"}, 2, 5);
    return 0;
}

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_loader *train, *test;
    pc_epoch_result last;
    int64_t told;     /* progress calls */
    int stop_after;   /* batches; 0: never */
    double last_loss; /* that progress told of, at the end of an epoch */
} job;

/* Of the loaders that are opened next. */
static pc_residence residence;

/* The network of the articles. */
static job begin(pc_device device)
{
    job j = {.stop_after = 0};
    pc_seed(3);
    j.net = pc_sequential(pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                          pc_flatten(), pc_dropout(0.2), pc_linear(32 * 2 * 2, 128, .activation = PC_ACTIVATION_RELU),
                          pc_linear(128, 1));
    assert_ok(pc_module_to(j.net, device, PC_F32));
    j.optimizer = pc_adam(j.net);
    j.train = pc_loader(joined(data.s, "train").s, .size = SIZE, .batch = BATCH, .shuffle = true, .flip = true,
                        .seed = 1, .device = device, .augment = {.shear = 10}, .resident = residence);
    j.test = pc_loader(joined(data.s, "test").s, .size = SIZE, .batch = 3, .device = device, .resident = residence);
    assert_not_null_ok(j.optimizer);
    assert_not_null_ok(j.train);
    assert_not_null_ok(j.test);
    return j;
}

static void end(job *j)
{
    pc_loader_free(j->train);
    pc_loader_free(j->test);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static void hear_progress(void *context, const pc_progress *progress)
{
    job *j = context;
    assert_int_equal(progress->done, (j->told++ % BATCHES + 1) * BATCH);
    assert_int_equal(progress->total, 2 * PICTURES);
    j->last_loss = progress->loss;
}

static void hear_epoch(void *context, const pc_epoch_result *result)
{
    assert_true(((job *)context)->last_loss == result->loss); /* by then every batch is in it */
}

static bool stop(void *context)
{
    const job *j = context;
    return j->told == j->stop_after;
}

static void fit(job *j, const char *checkpoint, bool resume)
{
    pc_train_callbacks callbacks = {.context = j, .progress = hear_progress, .epoch = hear_epoch, .stop = stop};
    pc_fit_options options = {
        .epochs = EPOCHS, .test = j->test, .callbacks = &callbacks, .checkpoint = checkpoint, .resume = resume};
    assert_ok(pc_fit(j->net, j->optimizer, j->train, options, &j->last));
}

/* What the test's device must equal bit for bit: the CPU, whose kernels sim has; a GPU equals itself. */
static const char *like(void)
{
    return test_device().type == PC_CUDA ? test_device_name() : "cpu";
}

static void assert_same_bits(const pc_tensor *a, const pc_tensor *b)
{
    size_t n = (size_t)pc_tensor_count(a) * sizeof(float);
    float *x = malloc(n), *y = malloc(n);
    assert_true(x && y);
    assert_ok(pc_read(a, x, n));
    assert_ok(pc_read(b, y, n));
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void assert_same(const job *a, const job *b)
{
    pc_parameter x[8], y[8];
    int n = pc_module_parameter_list(a->net, x, 8);
    assert_int_equal(pc_module_parameter_list(b->net, y, 8), n);
    for (int i = 0; i < n; i++)
        assert_same_bits(x[i].tensor, y[i].tensor);
    const double p[] = {a->last.loss, a->last.accuracy, a->last.test_loss, a->last.test_accuracy};
    const double q[] = {b->last.loss, b->last.accuracy, b->last.test_loss, b->last.test_accuracy};
    assert_memory_equal(p, q, sizeof p);
}

static void the_same_bits_from(pc_residence there_too)
{
    assert_true((int)BATCHES > PC__MARK_FEWEST * (PC__MARKS + 1) && (int)BATCHES > (int)PC__AHEAD);
    job here = begin(pc_device_pick(like()));
    residence = there_too;
    job there = begin(test_device());
    residence = PC_RESIDENCE_AUTO;
    assert_int_equal(pc_loader_resident(there.train, NULL, 0),
                     test_device().type != PC_CPU && there_too == PC_RESIDENCE_AUTO);
    pc_seed(8);
    fit(&here, NULL, false);
    pc_seed(8);
    pc_sync_policy before = pc_sync_policy_set(PC_SYNC_REFUSE); /* no step makes the host wait */
    fit(&there, NULL, false);
    assert_int_equal(there.told, EPOCHS * BATCHES);
    pc_score a, b;
    assert_ok(pc_evaluate(there.net, there.train, &b));
    pc_sync_policy_set(before);
    assert_ok(pc_evaluate(here.net, here.train, &a));
    assert_same(&here, &there);
    assert_memory_equal(&a, &b, sizeof a);
    end(&here);
    end(&there);
}

static void the_same_bits(void **state)
{
    (void)state;
    the_same_bits_from(PC_RESIDENCE_AUTO);
}

static void the_same_bits_from_the_host(void **state)
{
    (void)state;
    the_same_bits_from(PC_RESIDENCE_NO);
}

/* Stopped on one device, in the first epoch or the second, and ended on the other, wherever the pictures were. */
static void checkpoints_cross_over(void **state)
{
    (void)state;
    test_path checkpoint = joined(root.s, "checkpoint");
    const pc_device devices[2] = {pc_device_pick(like()), test_device()};
    job whole = begin(pc_device_pick(like()));
    pc_seed(8);
    fit(&whole, NULL, false);
    for (int i = 0; i < 4; i++) {
        residence = i % 3 ? PC_RESIDENCE_AUTO : PC_RESIDENCE_NO;
        job first = begin(devices[i % 2]);
        residence = PC_RESIDENCE_AUTO;
        job second = begin(devices[1 - i % 2]);
        first.stop_after = i < 2 ? 3 : BATCHES + 7;
        second.told = first.stop_after;
        second.stop_after = -1;
        pc_seed(8);
        fit(&first, checkpoint.s, false);
        assert_int_equal(first.told, first.stop_after);
        pc_seed(99);
        fit(&second, checkpoint.s, true);
        assert_same(&whole, &second);
        unlink(checkpoint.s);
        end(&first);
        end(&second);
    }
    end(&whole);
}

typedef struct command {
    const char *device, *precision;
    int polls; /* until it is stopped; 0: never */
} command;

static bool stop_command(void *context)
{
    return --((command *)context)->polls == 0;
}

static void train(const char *out, command c, bool resume)
{
    pc_train_callbacks callbacks = {.context = &c, .stop = stop_command};
    pc_train_options settings = {.data = data.s,
                                 .out = out,
                                 .device = c.device,
                                 .precision = c.precision,
                                 .epochs = EPOCHS,
                                 .batch = BATCH,
                                 .size = SIZE,
                                 .flip = true,
                                 .resume = resume,
                                 .callbacks = &callbacks};
    pc_train_summary summary;
    assert_ok(pc_train_folder(settings, &summary));
}

static size_t read_model(const test_path *out, char *bytes, size_t room)
{
    FILE *file = fopen(joined(out->s, "model.h5").s, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, room, file);
    fclose(file);
    assert_true(n > 0 && n < room);
    return n;
}

static void assert_same_model(const test_path *a, const test_path *b)
{
    static char x[1 << 20], y[1 << 20];
    size_t n = read_model(a, x, sizeof x);
    assert_int_equal(read_model(b, y, sizeof y), n);
    assert_memory_equal(x, y, n);
}

static void assert_same_answers(const test_path *model)
{
    pc_evaluation e[2];
    pc_prediction p[2];
    for (int i = 0; i < 2; i++) {
        pc_classifier *c = pc_classifier_open(model->s, i ? test_device_name() : like());
        char *text, *json;
        assert_not_null_ok(c);
        assert_ok(pc_classifier_evaluate(c, joined(data.s, "train").s, 2, NULL, &e[i]));
        assert_ok(pc_classifier_predict(c, joined(data.s, "test/dog/a00.jpg").s, &p[i]));
        assert_ok(pc_classifier_summary(c, &text, &json));
        pc_text_free(text);
        pc_text_free(json);
        pc_classifier_free(c);
    }
    assert_int_equal(e[1].pictures, 2 * PICTURES);
    assert_true(e[0].loss == e[1].loss && e[0].correct == e[1].correct && p[0].probability == p[1].probability);
    assert_memory_equal(e[0].confusion, e[1].confusion, 4 * sizeof *e[0].confusion);
    pc_evaluation_free(&e[0]);
    pc_evaluation_free(&e[1]);
}

/* Other kernels round otherwise: the same training, not the same bits. */
static void close_to_the_cpu(void **state)
{
    (void)state;
    job here = begin(PC_DEVICE_CPU), there = begin(test_device());
    pc_seed(8);
    fit(&here, NULL, false);
    pc_seed(8);
    fit(&there, NULL, false);
    assert_close(there.last.loss, here.last.loss, 0.01);
    assert_close(there.last.test_loss, here.last.test_loss, 0.02);
    end(&here);
    end(&there);
}

/* paracord train, eval, predict and show: the same file, and the same answers. */
static void whole_run(const char *precision, const char *name)
{
    test_path folder = placed(root.s, name), here = joined(folder.s, "here"), there = joined(folder.s, "there");
    test_path both = joined(folder.s, "both");
    train(here.s, (command){like(), precision, 0}, false);
    train(there.s, (command){test_device_name(), precision, 0}, false);
    assert_same_model(&here, &there);
    train(both.s, (command){test_device_name(), precision, BATCHES + 5}, false);
    train(both.s, (command){like(), precision, 0}, true);
    assert_same_model(&here, &both);
    test_path model = joined(there.s, "model.h5");
    assert_same_answers(&model);
}

static void whole_runs(void **state)
{
    (void)state;
    whole_run(NULL, "float32/");
    whole_run("bf16", "bf16/");
    whole_run("f16", "f16/");
}

static void precisions_are_named(void **state)
{
    (void)state;
    pc_train_summary summary;
    test_path out = joined(root.s, "precision");
    pc_train_options settings = {.data = data.s, .out = out.s, .device = "cpu", .precision = "f8", .epochs = 1};
    assert_fails(pc_train_folder(settings, &summary) == PC_OK, PC_ERR_ARGUMENT, "float32, bf16, f16");
    train(out.s, (command){"cpu", "bf16", 3}, false);
    settings = (pc_train_options){.data = data.s,
                                  .out = out.s,
                                  .device = "cpu",
                                  .precision = "f16",
                                  .epochs = EPOCHS,
                                  .batch = BATCH,
                                  .size = SIZE,
                                  .flip = true,
                                  .resume = true};
    assert_fails(pc_train_folder(settings, &summary) == PC_OK, PC_ERR_STATE, "--precision bf16");
}

/* Operation number `fault` behind the making of the network fails, 0: none does. True: it ended with the weights of
 * `whole`, after so many operations. */
static bool trained_as(const job *whole, int64_t fault, int64_t *operations)
{
    const pc_device device = test_device();
    job j = begin(device);
    assert_ok(pc_device_synchronize(device));
    assert_ok(pc_sim_inject(device, fault ? PC_SIM_FAIL_ANY : PC_SIM_NO_FAULT, fault));
    const int64_t before = pc_sim_operations(device);
    pc_seed(8);
    const bool fine = pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = EPOCHS, .test = j.test),
                             &j.last) == PC_OK;
    *operations = pc_sim_operations(device) - before;
    if (fine)
        assert_same(whole, &j);
    end(&j);
    return fine;
}

/* Wherever the device fails, on the way of the pictures, in an epoch's order, in a step or in its sums, training says
 * so: no weights come of it that look right. */
static void the_device_fails(void **state)
{
    (void)state;
    const pc_device device = test_device();
    if (device.type != PC_SIM)
        skip();
    job whole = begin(PC_DEVICE_CPU);
    pc_seed(8);
    fit(&whole, NULL, false);
    int64_t operations, there_were;
    assert_true(trained_as(&whole, 0, &operations));
    assert_true(operations > 100);
    for (int64_t i = 1; i <= operations; i += i < 40 ? 1 : 17) {
        assert_false(trained_as(&whole, i, &there_were));
        pc_error_clear();
        (void)!pc_device_synchronize(device);
        pc_error_clear();
    }
    assert_true(trained_as(&whole, 0, &there_were));
    end(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(the_same_bits_from_the_host),
        cmocka_unit_test(checkpoints_cross_over),
        cmocka_unit_test(close_to_the_cpu),
        cmocka_unit_test(whole_runs),
        cmocka_unit_test(precisions_are_named),
        cmocka_unit_test(the_device_fails),
    };
    return cmocka_run_group_tests_name("train.device", tests, prepare, tidy);
}
