/* Which epoch a run keeps, when it ends early, and that there is a usable network at any time. */
#include "group.h"

#include "device.h"
#include "io/file.h"
#include "train/checkpoint_form.h"

#include <math.h>
#include <paracord/fit.h>

static test_path data;

static int prepare(void **state)
{
    open_folder(state);
    put_data();
    data = joined(root.s, "data");
    return 0;
}

enum { EPOCHS = 12, BATCHES = 3 };

typedef struct watched {
    const char *out;
    pc_epoch_result epochs[EPOCHS];
    int count;
    int batches, stop_at; /* 0: never */
    bool usable;          /* at the end of every epoch */
} watched;

static void see(void *context, const pc_epoch_result *result)
{
    watched *w = context;
    w->epochs[result->epoch - 1] = *result;
    w->count = result->epoch;
    pc_classifier *c = pc_classifier_open(w->out, "cpu");
    w->usable = w->usable && c;
    pc_classifier_free(c);
}

static bool stop(void *context)
{
    watched *w = context;
    return ++w->batches == w->stop_at;
}

/* These options, and what all runs here have. */
static pc_train_options as_all(const char *out, pc_train_options s)
{
    s.data = s.data ? s.data : data.s;
    s.out = out;
    s.device = test_device_name();
    s.epochs = EPOCHS;
    s.batch = 6;
    s.size = 8;
    s.arch = "mlp";
    s.seed = 3;
    s.lr = 0.01;
    s.flip = true;
    return s;
}

static pc_train_summary train(const char *out, watched *w, int stop_at, pc_train_options s)
{
    pc_train_callbacks callbacks = {.context = w, .epoch = see, .stop = stop};
    pc_train_summary summary;
    *w = (watched){.out = out, .stop_at = stop_at, .usable = true};
    s = as_all(out, s);
    s.callbacks = &callbacks;
    assert_ok(pc_train_folder(s, &summary));
    return summary;
}
#define TRAIN(out, w, stop_at, ...) train((out), (w), (stop_at), (pc_train_options){.reserved_ = 0, __VA_ARGS__})

/* By the rule as it is written, from what the callbacks saw. */
static int best_of(const watched *w)
{
    int best = 0;
    for (int i = 1; i < w->count; i++)
        if (w->epochs[i].test_accuracy > w->epochs[best].test_accuracy ||
            (w->epochs[i].test_accuracy == w->epochs[best].test_accuracy &&
             w->epochs[i].test_loss < w->epochs[best].test_loss))
            best = i;
    return best + 1;
}

static pc_evaluation measured(const char *model)
{
    pc_evaluation e;
    pc_classifier *c = pc_classifier_open(model, test_device_name());
    assert_not_null_ok(c);
    assert_ok(pc_classifier_evaluate(c, data.s, 6, NULL, &e));
    pc_classifier_free(c);
    pc_evaluation result = e;
    pc_evaluation_free(&e);
    return result;
}

static void assert_measures(const char *model, const pc_epoch_result *epoch)
{
    pc_evaluation e = measured(model);
    assert_true(e.accuracy == epoch->test_accuracy);
    assert_true(fabs(e.loss - epoch->test_loss) < 1e-6);
}

static void the_best_epoch_is_kept(void **state)
{
    (void)state;
    watched w;
    test_path out = joined(root.s, "best");
    pc_train_summary s = TRAIN(out.s, &w, 0);
    int best = best_of(&w);
    assert_int_equal(w.count, EPOCHS);
    assert_in_range(best, 1, EPOCHS - 1); /* the last one would show nothing */
    assert_int_equal(s.kept.epoch, best);
    assert_true(s.kept.test_accuracy == w.epochs[best - 1].test_accuracy && s.kept.has_test);
    assert_true(s.test_accuracy == w.epochs[EPOCHS - 1].test_accuracy);
    assert_false(s.stopped_early);
    assert_true(w.usable);
    assert_measures(out.s, &w.epochs[best - 1]);
    assert_measures(joined(out.s, "model.h5").s, &w.epochs[best - 1]);
    assert_measures(joined(out.s, "checkpoint").s, &w.epochs[EPOCHS - 1]);
}

static void the_last_one_where_asked(void **state)
{
    (void)state;
    watched w;
    test_path out = joined(root.s, "last");
    pc_train_summary s = TRAIN(out.s, &w, 0, .keep = "last");
    assert_int_equal(s.kept.epoch, EPOCHS);
    assert_true(w.usable);
    assert_measures(out.s, &w.epochs[EPOCHS - 1]);
    pc_train_options other = {.data = data.s, .out = out.s, .keep = "worst"};
    assert_fails(pc_train_folder(other, &s), PC_ERR_ARGUMENT, "\"worst\"; there are best, last");
}

static void it_ends_early(void **state)
{
    (void)state;
    watched all, w;
    test_path out = joined(root.s, "all"), early = joined(root.s, "early");
    (void)TRAIN(out.s, &all, 0);
    int run = 0, best = 0, end = 0; /* where it must end, from the run that does not */
    for (int i = 0; i < EPOCHS && !end; i++) {
        watched upto = all;
        upto.count = i + 1;
        run = best_of(&upto) == i + 1 ? 0 : run + 1;
        best = best_of(&upto);
        end = run == 3 ? i + 1 : 0;
    }
    assert_in_range(end, 4, EPOCHS - 1);
    for (int last = 0; last < 2; last++) {
        pc_train_summary s = TRAIN(early.s, &w, 0, .early_stop = 3, .keep = last ? "last" : "best");
        assert_int_equal(s.epochs_done, end);
        assert_true(s.stopped_early);
        assert_int_equal(s.kept.epoch, last ? end : best);
        s = TRAIN(early.s, &w, 0, .early_stop = 3, .resume = true, .keep = last ? "last" : "best");
        assert_int_equal(s.epochs_done, end); /* it is over */
        assert_int_equal(w.count, 0);
    }
    pc_train_summary s = TRAIN(early.s, &w, 0, .resume = true, .keep = "last"); /* and goes on when asked otherwise */
    assert_int_equal(s.epochs_done, EPOCHS);
}

/* Stopped after any batch: it has a network that can be used, and goes on to the same one bit for bit. */
static void stopped_anywhere(void **state)
{
    (void)state;
    watched w;
    test_path alone = joined(root.s, "alone"), out = joined(root.s, "stopped");
    test_path one = joined(alone.s, "model.h5"), other = joined(out.s, "model.h5");
    pc_train_summary s = TRAIN(alone.s, &w, 0);
    const int best = s.kept.epoch;
    uint8_t *a, *b;
    size_t n, m;
    assert_ok(pc__file_read(one.s, &a, &n));
    for (int at = 1; at < EPOCHS * BATCHES; at += for_races() ? 12 : 4) {
        s = TRAIN(out.s, &w, at);
        assert_true(s.interrupted);
        assert_int_equal(measured(out.s).pictures, 14);
        s = TRAIN(out.s, &w, 0, .resume = true);
        assert_int_equal(s.kept.epoch, best);
        assert_ok(pc__file_read(other.s, &b, &m));
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        pc__free(b);
        remove_root(&out);
    }
    pc__free(a);
}

/* More settings than a checkpoint has room for: it goes on with the same ones, and notices others. */
static void with_many_settings(void **state)
{
    (void)state;
    watched w;
    test_path out = joined(root.s, "many");
    const double third = 1.0 / 3, small = 1e-5 / 3;
    char numbers[256];
    snprintf(numbers, sizeof numbers, "%.36f,%.36f,%.36f,%.36f,%.36f,%.36f", third, third, third, third, third, third);
    pc_train_options s = {.optimizer = "sgd",
                          .momentum = third,
                          .nesterov = true,
                          .schedule = "cosine",
                          .warmup = 2,
                          .weight_decay = small,
                          .clip = third,
                          .label_smoothing = small,
                          .mixup = third,
                          .cutmix = third,
                          .shear = small,
                          .zoom = small,
                          .rotation = small,
                          .crop = third,
                          .brightness = small,
                          .contrast = small,
                          .saturation = small,
                          .hue = small,
                          .erase = small,
                          .pad = 1,
                          .fill = "reflect",
                          .normalise = numbers,
                          .class_weights = "balanced",
                          .keep = "last"};
    assert_true(train(out.s, &w, 4, s).interrupted);
    s.resume = true;
    assert_true(train(out.s, &w, 4, s).interrupted);
    s.keep = "best";
    pc_train_summary summary;
    assert_fails(pc_train_folder(as_all(out.s, s), &summary), PC_ERR_STATE, "made with the other settings ");
}

static void without_test_pictures(void **state)
{
    (void)state;
    watched w;
    test_path out = joined(root.s, "untested"), folder = joined(data.s, "train");
    pc_train_summary s = TRAIN(out.s, &w, 0, .data = folder.s);
    assert_int_equal(s.kept.epoch, EPOCHS);
    assert_false(s.kept.has_test);
    assert_true(w.usable);
    pc_train_options early = {.data = folder.s, .out = out.s, .early_stop = 3};
    assert_fails(pc_train_folder(early, &s), PC_ERR_ARGUMENT,
                 "--early-stop 3, but there are no test pictures to tell by: give the folder test/, or a --val-split");
}

/* Before the first epoch is finished a folder's checkpoint is what there is. */
static void what_paths_mean(void **state)
{
    (void)state;
    watched w;
    test_path out = joined(root.s, "paths"), checkpoint = joined(out.s, "checkpoint");
    assert_fails(pc_classifier_open(root.s, "cpu") != NULL, PC_ERR_NOT_FOUND, "neither model.h5 nor model.safetensors");
    (void)TRAIN(out.s, &w, 2);
    unlink(joined(out.s, "model.h5").s);
    assert_int_equal(measured(out.s).pictures, 14);
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(checkpoint.s, &bytes, &n));
    memcpy(bytes, "PCCKPT03", 8);
    assert_ok(pc__file_write(checkpoint.s, bytes, n));
    pc__free(bytes);
    assert_fails(pc_classifier_open(checkpoint.s, "cpu") != NULL, PC_ERR_FORMAT,
                 "another version of Paracord (PCCKPT03");
    assert_fails(pc_classifier_open(out.s, "cpu") != NULL, PC_ERR_FORMAT, "another version of Paracord (PCCKPT03");
}

/* Networks of the program's own: pc_fit leaves the best weights in them, also when it goes on from a checkpoint. */
static void in_a_loop_of_ones_own(void **state)
{
    (void)state;
    test_path checkpoint = joined(root.s, "own");
    for (int resume = 0; resume < 2; resume++) {
        watched w = {.out = root.s, .stop_at = resume ? 0 : 3 * BATCHES + 1};
        pc_train_callbacks callbacks = {.context = &w, .epoch = see, .stop = stop};
        pc_seed(4);
        pc_module *net = on_device(
            pc_sequential(pc_flatten(), pc_linear(192, 8, .activation = PC_ACTIVATION_RELU), pc_linear(8, 1)));
        pc_optimizer *adam = pc_adam(net, .lr = 0.01);
        pc_loader *pictures =
            pc_loader(joined(data.s, "train").s, .size = 8, .batch = 6, .shuffle = true, .device = test_device());
        pc_loader *test = pc_loader(joined(data.s, "test").s, .size = 8, .batch = 6, .device = test_device());
        pc_epoch_result last;
        pc_score score;
        pc_fit_options options = {.epochs = EPOCHS,
                                  .test = test,
                                  .callbacks = &callbacks,
                                  .checkpoint = checkpoint.s,
                                  .resume = resume,
                                  .keep_best = true};
        assert_ok(pc_fit(net, adam, pictures, options, &last));
        assert_ok(pc_evaluate(net, test, &score));
        pc_error_clear(); /* the folder of `see` is no run */
        if (resume) {
            double most = 0;
            for (int i = 3; i < EPOCHS; i++)
                most = fmax(most, w.epochs[i].test_accuracy);
            assert_true(score.accuracy >= most && score.accuracy > last.test_accuracy);
        }
        options.test = NULL;
        assert_fails(pc_fit(net, adam, pictures, options, &last), PC_ERR_ARGUMENT, "keep_best");
        pc_loader_free(test);
        pc_loader_free(pictures);
        pc_optimizer_free(adam);
        pc_module_free(net);
    }
    assert_fails(pc_classifier_open(checkpoint.s, "cpu") != NULL, PC_ERR_UNSUPPORTED, "pc_fit writes such ones");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_epoch_is_kept), cmocka_unit_test(the_last_one_where_asked),
        cmocka_unit_test(it_ends_early),          cmocka_unit_test(stopped_anywhere),
        cmocka_unit_test(with_many_settings),     cmocka_unit_test(without_test_pictures),
        cmocka_unit_test(what_paths_mean),        cmocka_unit_test(in_a_loop_of_ones_own),
    };
    return cmocka_run_group_tests_name("train.keep", tests, prepare, tidy);
}
