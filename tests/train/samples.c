/* pc_fit on data of one's own: regression, losses and metrics of the program's, schedules, early stopping, going on from a
 * checkpoint, several tensors a batch; and losses that are no numbers any more. */
#include "device.h"

#include <paracord.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 70, BATCH = 8 };

static char checkpoint[64];

static int make(void **state)
{
    (void)state;
    snprintf(checkpoint, sizeof checkpoint, "/tmp/paracord-fit-samples-%d", (int)getpid());
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    (void)!unlink(checkpoint);
    return 0;
}

/* y = 2 x0 - x1 + 3, in one column, and whether it is above 3. */
static void draw(pc_tensor **x, pc_tensor **y, pc_tensor **labels)
{
    pc_seed(5);
    *x = pc_randn(PC_SHAPE(COUNT, 2), PC_F32, PC_DEVICE_CPU);
    pc_tensor *w = pc_from_data((const float[]){2, -1}, PC_SHAPE(2, 1), PC_F32, PC_DEVICE_CPU);
    *y = pc_add_scalar(pc_matmul(*x, w), 3);
    *labels = pc_reshape(pc_cast(pc_gt(*y, pc_scalar(3, PC_F32, PC_DEVICE_CPU)), PC_I64), PC_SHAPE(COUNT));
}

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_loader *train, *test;
} job;

static job begin_with(pc_tensor *x, pc_tensor *y, int64_t outputs)
{
    job j;
    pc_seed(3);
    j.net = on_device(
        pc_sequential(pc_linear(2, 16, .activation = PC_ACTIVATION_TANH), pc_dropout(0.1), pc_linear(16, outputs)));
    j.optimizer = pc_adam(j.net, .lr = 0.02);
    j.train = pc_loader_from_tensors(x, y, .batch = BATCH, .shuffle = true, .seed = 4, .device = test_device());
    j.test = pc_loader_from_tensors(x, y, .batch = 32, .device = test_device());
    assert_not_null_ok(j.train);
    assert_not_null_ok(j.test);
    return j;
}

static job begin_regression(void)
{
    job j = {0};
    PC_SCOPE {
        pc_tensor *x, *y, *labels;
        draw(&x, &y, &labels);
        j = begin_with(x, y, 1);
    }
    return j;
}

static void end(job *j)
{
    pc_loader_free(j->train);
    pc_loader_free(j->test);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static bool same_weights(const pc_module *a, const pc_module *b)
{
    pc_parameter x[16], y[16];
    int n = pc_module_state_list(a, x, 16), different = 0;
    pc_module_state_list(b, y, 16);
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            different += pc_item(pc_sum(pc_ne(x[i].tensor, y[i].tensor))) != 0;
        }
    return !different;
}

static void regression_comes_close(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_epoch_result last;
    pc_score score;
    assert_ok(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = 60, .test = j.test), &last));
    assert_true(last.test_loss < 0.05);
    assert_true(isnan(last.accuracy) && isnan(last.test_accuracy) && isnan(last.test_balanced_accuracy));
    assert_ok(pc_evaluate(j.net, j.test, &score));
    assert_close(score.loss, last.test_loss, 1e-12);
    assert_int_equal(score.count, COUNT);
    assert_true(isnan(score.accuracy));
    end(&j);
}

static void y_may_lack_the_dimension_of_one(void **state)
{
    (void)state;
    double losses[2];
    for (int flat = 0; flat < 2; flat++)
        PC_SCOPE {
            pc_tensor *x, *y, *labels;
            pc_epoch_result last;
            draw(&x, &y, &labels);
            job j = begin_with(x, flat ? pc_reshape(y, PC_SHAPE(COUNT)) : y, 1);
            assert_ok(pc_fit(j.net, j.optimizer, j.train, (pc_fit_options){0}, &last));
            losses[flat] = last.loss;
            end(&j);
        }
    assert_true(losses[0] == losses[1]);
    PC_SCOPE {
        pc_tensor *x, *y, *labels;
        draw(&x, &y, &labels);
        job j = begin_with(x, y, 3);
        assert_fails(pc_fit(j.net, j.optimizer, j.train, (pc_fit_options){0}, NULL), PC_ERR_SHAPE,
                     "the network gives [8, 3], and y is [8, 1]");
        end(&j);
    }
}

static void integers_are_labels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x, *y, *labels;
        pc_epoch_result last;
        pc_score score;
        draw(&x, &y, &labels);
        job j = begin_with(x, pc_cast(labels, PC_I32), 2);
        assert_ok(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = 30, .test = j.test), &last));
        assert_true(last.test_accuracy > 0.9 && last.accuracy > 0.8);
        assert_ok(pc_evaluate(j.net, j.test, &score));
        assert_close(score.accuracy, last.test_accuracy, 1e-12);
        assert_close((double)score.correct / COUNT, score.accuracy, 1e-12);
        assert_fails(pc_fit(j.net, j.optimizer, j.train,
                            PC_OPTIONS(pc_fit_options, .class_weights = (const float[]){1, 2}), NULL),
                     PC_ERR_ARGUMENT, "names no classes");
        end(&j);
    }
}

/* --- functions of the program's --- */

static int asked;

static pc_tensor *absolute_error(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    asked += context == &asked;
    return pc_mean(pc_abs(pc_sub(outputs, batch->y)));
}

static pc_tensor *largest_output(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context, (void)batch;
    return pc_max(outputs);
}

static const pc_metric metrics[] = {{"error", absolute_error, false}, {"largest", largest_output, true}};

static void losses_and_metrics_may_be_functions(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_epoch_result last;
    pc_score score;
    pc_fit_options options = {
        .epochs = 3, .test = j.test, .loss = absolute_error, .context = &asked, .metrics = metrics, .metric_count = 2};
    asked = 0;
    assert_ok(pc_fit(j.net, j.optimizer, j.train, options, &last));
    assert_true(asked > 0);
    assert_int_equal(last.metrics, 2);
    assert_close(last.metric[0], last.test_loss, 1e-9);
    assert_ok(pc_evaluate_by(j.net, j.test, options, &score));
    assert_close(score.metric[1], last.metric[1], 1e-12);
    assert_true(isnan(score.metric[2]));
    options.watch = "eror";
    assert_fails(pc_fit(j.net, j.optimizer, j.train, options, NULL), PC_ERR_NOT_FOUND, "no \"eror\" to watch");
    options.watch = NULL;
    options.metric_count = 9;
    assert_fails(pc_fit(j.net, j.optimizer, j.train, options, NULL), PC_ERR_ARGUMENT, "9 metrics");
    end(&j);
}

static pc_tensor *no_number(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context;
    return pc_sub(outputs, batch->y);
}

static pc_tensor *nothing(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context, (void)outputs, (void)batch;
    return NULL;
}

static void a_loss_is_one_number(void **state)
{
    (void)state;
    job j = begin_regression();
    assert_fails(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .loss = no_number), NULL), PC_ERR_SHAPE,
                 "the loss function gave float32 [8, 1]");
    assert_fails(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .loss = nothing), NULL),
                 PC_ERR_ARGUMENT, "the loss function gave NULL");
    pc_loader *alone = NULL;
    PC_SCOPE {
        alone = pc_loader_from_tensors(pc_ones(PC_SHAPE(4, 2), PC_F32, PC_DEVICE_CPU), NULL, .device = test_device());
    }
    assert_fails(pc_fit(j.net, j.optimizer, alone, (pc_fit_options){0}, NULL), PC_ERR_ARGUMENT, "no y for a loss");
    pc_loader_free(alone);
    end(&j);
}

/* x and the third tensor, joined, and a weight for each sample. */
static pc_tensor *join(void *context, pc_module *net, const pc_batch *batch)
{
    (void)context;
    return pc_forward(net, pc_cat((pc_tensor *[]){batch->x, batch->tensor[2]}, 2, 1));
}

static pc_tensor *weighted(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context;
    return pc_mean(pc_mul(batch->tensor[3], pc_square(pc_sub(outputs, batch->y))));
}

static void a_batch_may_have_many_tensors(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x, *y, *labels;
        pc_epoch_result last;
        draw(&x, &y, &labels);
        pc_tensor *all[] = {pc_slice(x, 1, 0, 1, 1), y, pc_slice(x, 1, 1, 2, 1),
                            pc_ones(PC_SHAPE(COUNT, 1), PC_F32, PC_DEVICE_CPU)};
        job j = begin_with(x, y, 1);
        pc_loader *wide = pc_loader_new_tensors(
            all, 4, PC_OPTIONS(pc_batch_options, .batch = BATCH, .shuffle = true, .seed = 4, .device = test_device()));
        assert_not_null_ok(wide);
        assert_ok(pc_fit(j.net, j.optimizer, wide,
                         PC_OPTIONS(pc_fit_options, .epochs = 2, .forward = join, .loss = weighted), &last));
        job plain = begin_with(x, y, 1);
        pc_epoch_result same;
        assert_ok(pc_fit(plain.net, plain.optimizer, plain.train, PC_OPTIONS(pc_fit_options, .epochs = 2), &same));
        assert_close(last.loss, same.loss, 1e-5);
        pc_loader_free(wide);
        end(&j);
        end(&plain);
    }
}

/* --- the rate, and the end --- */

static void a_schedule_sets_the_rate_of_each_step(void **state)
{
    (void)state;
    job j = begin_regression();
    const pc_schedule cosine = {.kind = PC_SCHEDULE_COSINE, .warmup = 3};
    pc_schedule whole = cosine;
    whole.lr = 0.02;
    whole.steps = 3 * pc_loader_batches(j.train);
    for (int i = 0; i < 3; i++) { /* from the rate that the program gave, not from where the one before has ended */
        if (i == 2)
            pc_optimizer_set_lr(j.optimizer, whole.lr = 0.03);
        assert_ok(
            pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = 3, .schedule = cosine), NULL));
        assert_close(pc_optimizer_lr(j.optimizer), pc_schedule_lr(&whole, whole.steps - 1), 1e-15);
    }
    whole.warmup = 1000;
    assert_fails(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .schedule = whole), NULL),
                 PC_ERR_ARGUMENT, "");
    end(&j);
}

static void training_ends_when_nothing_gets_better(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_epoch_result last;
    pc_score score;
    pc_fit_options options = {.epochs = 500, .test = j.test, .early_stop = 2, .keep_best = true, .least_gain = 1e-4};
    assert_ok(pc_fit(j.net, j.optimizer, j.train, options, &last));
    assert_true(last.epoch < 500);
    assert_ok(pc_evaluate(j.net, j.test, &score));
    assert_true(score.loss <= last.test_loss); /* the best weights, not the last ones */
    options.test = NULL;
    assert_fails(pc_fit(j.net, j.optimizer, j.train, options, NULL), PC_ERR_ARGUMENT, "need .test");
    options.test = j.test;
    options.least_gain = -1;
    assert_fails(pc_fit(j.net, j.optimizer, j.train, options, NULL), PC_ERR_ARGUMENT, "least_gain -1");
    end(&j);
}

/* The greatest of a metric whose direction is up. */
static void the_best_epoch_may_be_told_by_a_metric(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_epoch_result last;
    pc_score score;
    pc_fit_options options = {
        .epochs = 6, .test = j.test, .keep_best = true, .metrics = metrics, .metric_count = 2, .watch = "largest"};
    assert_ok(pc_fit(j.net, j.optimizer, j.train, options, &last));
    assert_ok(pc_evaluate_by(j.net, j.test, options, &score));
    assert_true(score.metric[1] >= last.metric[1]);
    end(&j);
}

static int polls;

static bool stop_later(void *context)
{
    return ++polls == *(int *)context;
}

static void a_stopped_training_goes_on_to_the_same_bits(void **state)
{
    (void)state;
    const pc_schedule line = {.kind = PC_SCHEDULE_LINEAR};
    for (int after = 3; after < 30; after += 6) {
        pc_epoch_result last, again;
        job whole = begin_regression(), first = begin_regression(), second = begin_regression();
        pc_train_callbacks callbacks = {.context = &after, .stop = stop_later};
        pc_fit_options options = {
            .epochs = 3, .schedule = line, .metrics = metrics, .metric_count = 2, .keep_best = true};
        pc_seed(8);
        options.test = whole.test;
        assert_ok(pc_fit(whole.net, whole.optimizer, whole.train, options, &last));
        options.checkpoint = checkpoint;
        options.callbacks = &callbacks;
        polls = 0;
        pc_seed(8);
        options.test = first.test;
        assert_ok(pc_fit(first.net, first.optimizer, first.train, options, NULL));
        pc_seed(77);
        options.callbacks = NULL;
        options.resume = true;
        const job *on = after % 12 == 3 ? &first : &second; /* the optimiser's rate has changed, or it is new */
        options.test = on->test;
        assert_ok(pc_fit(on->net, on->optimizer, on->train, options, &again));
        assert_true(same_weights(on->net, whole.net));
        assert_true(again.loss == last.loss && again.metric[0] == last.metric[0]);
        assert_int_equal(unlink(checkpoint), 0);
        end(&whole);
        end(&first);
        end(&second);
    }
}

/* --- losses that are no numbers --- */

static pc_tensor *log_loss(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context;
    return pc_mean(pc_mul(pc_log(batch->x), pc_slice(outputs, 1, 0, 1, 1)));
}

/* Sample 29 of x is bad. A shuffled order, so the batch is found by its place. */
static job begin_bad(double bad, bool shuffle)
{
    job j = begin_regression();
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(COUNT, 2), PC_F32, PC_DEVICE_CPU),
                  *y = pc_ones(PC_SHAPE(COUNT, 1), PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_fill(pc_slice(x, 0, 29, 30, 1), bad));
        pc_loader_free(j.train);
        j.train = pc_loader_from_tensors(x, y, .batch = BATCH, .shuffle = shuffle, .seed = 4, .device = test_device());
    }
    return j;
}

static void assert_finite(pc_module *net)
{
    pc_parameter list[16];
    const int n = pc_module_state_list(net, list, 16);
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            assert_true(pc_item(pc_mean(pc_cast(pc_isfinite(list[i].tensor), PC_F32))) == 1);
        }
}

static void the_batch_may_be_to_blame(void **state)
{
    (void)state;
    job j = begin_bad((double)NAN, false);
    assert_fails(pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = 3), NULL), PC_ERR_RANGE,
                 "epoch 1, step 4 of 9 is no finite number: its x is NaN, in sample 29; correct that sample");
    pc_tensor *bias = pc_module_parameter(j.net, "0.bias");
    PC_NO_GRAD
        assert_ok(pc_fill(bias, (double)NAN));
    assert_true(pc_fit(j.net, j.optimizer, j.train, (pc_fit_options){0}, NULL) == PC_ERR_RANGE);
    assert_non_null(strstr(pc_error_last()->message, "in the weights that training begins with"));
    assert_null(strstr(pc_error_last()->message, "rate"));
    pc_error_clear();
    PC_NO_GRAD
        assert_ok(pc_fill(bias, 0));
    assert_finite(j.net);
    end(&j);
}

static void an_op_may_be_to_blame(void **state)
{
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        job j = begin_bad(0, shuffle);
        assert_fails(
            pc_fit(j.net, j.optimizer, j.train, PC_OPTIONS(pc_fit_options, .epochs = 3, .loss = log_loss), NULL),
            PC_ERR_RANGE, "first, log made an infinity");
        assert_finite(j.net);
        end(&j);
    }
}

/* The parameters are those before the bad step, as if it had never been. */
static void weights_stay_good(void **state)
{
    (void)state;
    for (pc_mixed mixed = PC_MIXED_NONE; mixed <= PC_MIXED_F16; mixed++) {
        job bad = begin_bad((double)NAN, false), good = begin_bad(1, false);
        int after = 3;
        pc_train_callbacks callbacks = {.context = &after, .stop = stop_later};
        polls = 0;
        pc_seed(2);
        assert_ok(pc_fit(good.net, good.optimizer, good.train,
                         PC_OPTIONS(pc_fit_options, .callbacks = &callbacks, .mixed = mixed), NULL));
        pc_seed(2);
        assert_fails(pc_fit(bad.net, bad.optimizer, bad.train, PC_OPTIONS(pc_fit_options, .mixed = mixed), NULL),
                     PC_ERR_RANGE, "step 4 of 9");
        assert_true(same_weights(good.net, bad.net));
        end(&bad);
        end(&good);
    }
}

/* So steep that its gradients are infinite in float16 until the scale is small: the first steps are left out. */
static pc_tensor *steep_loss(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context;
    return pc_mul_scalar(pc_mse(outputs, batch->y), 300);
}

/* Whether a loss scaler has left out steps before or not. */
static void it_ends_in_16_bits_too(void **state)
{
    (void)state;
    for (int mixed = PC_MIXED_BF16; mixed <= PC_MIXED_F16; mixed++)
        for (int steep = 0; steep < 2; steep++) {
            job j = begin_bad((double)NAN, false);
            assert_fails(pc_fit(j.net, j.optimizer, j.train,
                                PC_OPTIONS(pc_fit_options, .epochs = 2, .mixed = (pc_mixed)mixed,
                                           .loss = steep ? steep_loss : NULL),
                                NULL),
                         PC_ERR_RANGE,
                         "epoch 1, step 4 of 9 is no finite number: its x is NaN, in sample 29; correct that sample");
            assert_finite(j.net);
            end(&j);
        }
}

static void a_layer_has_its_name(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_parameter list[16];
    pc_module_parameter_list(j.net, list, 16);
    PC_NO_GRAD
        assert_ok(pc_fill(list[3].tensor, 3e38)); /* the bias of the last layer */
    PC_NO_GRAD
        assert_ok(pc_fill(list[2].tensor, 3e38));
    assert_fails(pc_fit(j.net, j.optimizer, j.train, (pc_fit_options){0}, NULL), PC_ERR_RANGE,
                 "first, layer 2 (Linear(");
    PC_NO_GRAD
        assert_ok(pc_fill(list[1].tensor, (double)INFINITY));
    assert_fails(
        pc_fit(j.net, j.optimizer, j.train, (pc_fit_options){0}, NULL), PC_ERR_RANGE,
        "step 1 of 9 is no finite number: parameter 0.bias is infinite in the weights that training begins with; "
        "begin with other ones");
    end(&j);
}

/* A rate that overflows them in the first step is told at the second. */
static void a_rate_may_be_too_large(void **state)
{
    (void)state;
    job j = begin_regression();
    pc_optimizer *sgd = pc_sgd(j.net, .lr = 1e38);
    assert_fails(pc_fit(j.net, sgd, j.train, (pc_fit_options){0}, NULL), PC_ERR_RANGE, "a smaller rate");
    pc_optimizer_free(sgd);
    end(&j);
}

static void the_last_good_checkpoint_stays(void **state)
{
    (void)state;
    job j = begin_regression(), again = begin_regression(), bad = begin_bad((double)NAN, true);
    pc_fit_options options = {.epochs = 1, .checkpoint = checkpoint};
    assert_ok(pc_fit(j.net, j.optimizer, j.train, options, NULL));
    options.resume = true;
    options.epochs = 2;
    assert_fails(pc_fit(bad.net, bad.optimizer, bad.train, options, NULL), PC_ERR_RANGE, "epoch 2");
    options.epochs = 1;
    assert_ok(pc_fit(again.net, again.optimizer, again.train, options, NULL)); /* all is done: it only reads */
    assert_true(same_weights(again.net, j.net));
    assert_int_equal(unlink(checkpoint), 0);
    end(&j);
    end(&again);
    end(&bad);
}

static pc_status one_sample(void *context, int64_t sample, int64_t epoch, void *const *to)
{
    (void)epoch;
    ((float *)to[0])[0] = ((float *)to[0])[1] = (float)sample;
    *(int64_t *)to[1] = sample % *(const int *)context;
    return PC_OK;
}

static pc_loader *with_classes(const char *const *names, int count)
{
    static int counts[8];
    counts[count] = count;
    pc_samples samples = {.count = 9,
                          .fields = 2,
                          .sample = one_sample,
                          .context = &counts[count],
                          .field = {{PC_F32, PC_SHAPE(2)}, {PC_I64, PC_SHAPE_SCALAR}},
                          .class_names = names,
                          .class_count = count};
    return pc_loader_from_samples(&samples, .device = test_device());
}

/* A test set without one of the classes has other labels for the rest. */
static void labels_mean_the_same(void **state)
{
    (void)state;
    static const char *const three[] = {"bird", "cat", "dog"}, *const four[] = {"bird", "cat", "dog", "eel"};
    pc_module *net = on_device(pc_linear(2, 3));
    pc_optimizer *sgd = pc_sgd(net);
    pc_loader *train = with_classes(three, 3), *less = with_classes(three + 1, 2), *first = with_classes(three, 2),
              *more = with_classes(four, 4);
    assert_true(train && less && first && more);
    assert_fails(pc_fit(net, sgd, train, PC_OPTIONS(pc_fit_options, .test = less), NULL), PC_ERR_ARGUMENT,
                 "label 0 is \"cat\" in .test, and \"bird\" in what is learnt from");
    assert_fails(pc_fit(net, sgd, train, PC_OPTIONS(pc_fit_options, .test = more), NULL), PC_ERR_ARGUMENT,
                 "label 3 is \"eel\" in .test, and no class in what is learnt from");
    assert_ok(pc_fit(net, sgd, train, PC_OPTIONS(pc_fit_options, .test = first), NULL));
    pc_loader_free(train);
    pc_loader_free(less);
    pc_loader_free(first);
    pc_loader_free(more);
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regression_comes_close),
        cmocka_unit_test(y_may_lack_the_dimension_of_one),
        cmocka_unit_test(integers_are_labels),
        cmocka_unit_test(losses_and_metrics_may_be_functions),
        cmocka_unit_test(a_loss_is_one_number),
        cmocka_unit_test(a_batch_may_have_many_tensors),
        cmocka_unit_test(a_schedule_sets_the_rate_of_each_step),
        cmocka_unit_test(training_ends_when_nothing_gets_better),
        cmocka_unit_test(the_best_epoch_may_be_told_by_a_metric),
        cmocka_unit_test(a_stopped_training_goes_on_to_the_same_bits),
        cmocka_unit_test(the_batch_may_be_to_blame),
        cmocka_unit_test(an_op_may_be_to_blame),
        cmocka_unit_test(weights_stay_good),
        cmocka_unit_test(it_ends_in_16_bits_too),
        cmocka_unit_test(a_layer_has_its_name),
        cmocka_unit_test(labels_mean_the_same),
        cmocka_unit_test(a_rate_may_be_too_large),
        cmocka_unit_test(the_last_good_checkpoint_stays),
    };
    return cmocka_run_group_tests(tests, make, tidy);
}
