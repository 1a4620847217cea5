/* Classes of unequal size: what training tells of them, what weights make of them, and which epoch is kept then. Classes
 * that are not tested. */
#include "group.h"

#include "device.h"
#include "io/file.h"

#include <math.h>
#include <paracord/classifier.h>
#include <paracord/fit.h>
#include <paracord/log.h>
#include <paracord/no_grad.h>

enum { CATS = 20, DOGS = 4, BATCH = 6 };

static test_path data;

static int prepare(void **state)
{
    open_folder(state);
    data = joined(root.s, "data");
    put_classes(placed(root.s, "data/train/").s, (const char *[]){"cat"}, 1, CATS);
    put_classes(joined(root.s, "data/train").s, (const char *[]){"dog"}, 1, DOGS);
    put_classes(placed(root.s, "data/test/").s, (const char *[]){"cat"}, 1, 10);
    put_classes(joined(root.s, "data/test").s, (const char *[]){"dog"}, 1, 2);
    return 0;
}

typedef struct told {
    char started[2048], logged[2048];
    double epoch_loss;
    int never_named;
    bool uneven;
} told;

static void started(void *context, const char *text)
{
    told *h = context;
    snprintf(h->started, sizeof h->started, "%s", text);
}

static void epoch(void *context, const pc_epoch_result *result)
{
    told *h = context;
    h->epoch_loss = result->loss;
    h->never_named = result->never_named;
    h->uneven = result->uneven;
}

static void logged(void *context, pc_log_level level, const char *line)
{
    told *h = context;
    (void)level;
    size_t n = strlen(h->logged);
    snprintf(h->logged + n, sizeof h->logged - n, "%s\n", line);
}

static pc_train_summary train(const char *out, told *h, pc_train_options s)
{
    pc_train_callbacks callbacks = {.context = h, .started = started, .epoch = epoch};
    pc_train_summary summary;
    *h = (told){.never_named = -1};
    s.data = data.s;
    s.out = out;
    s.device = test_device_name();
    s.batch = BATCH;
    s.size = 8;
    s.arch = "mlp";
    s.callbacks = &callbacks;
    pc_log_set(logged, h, PC_LOG_WARNING);
    assert_ok(pc_train_folder(s, &summary));
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
    return summary;
}
#define TRAIN(out, h, ...) train((out), (h), (pc_train_options){.reserved_ = 0, __VA_ARGS__})

/* With weights that do not move the loss of the epoch is that of its pictures, each times n / (2 n of its class). */
static void the_loss_is_weighted(void **state)
{
    (void)state;
    told plain, balanced;
    double loss[2] = {0};
    test_path out = joined(root.s, "still");
    (void)TRAIN(out.s, &plain, .epochs = 1, .lr = 1e-30, .keep = "last");
    (void)TRAIN(out.s, &balanced, .epochs = 1, .lr = 1e-30, .keep = "last", .class_weights = "balanced");
    pc_classifier *c = pc_classifier_open(out.s, test_device_name());
    assert_not_null_ok(c);
    for (int class = 0; class < 2; class ++)
        for (int i = 0; i < (class ? DOGS : CATS); i++) {
            char name[64];
            pc_prediction p;
            snprintf(name, sizeof name, "data/train/%s/%c%02d.%s", class ? "dog" : "cat", 'a' + i % 3, i,
                     i % 2 ? "png" : "jpg");
            assert_ok(pc_classifier_predict(c, joined(root.s, name).s, &p));
            loss[class] -= log(class ? p.sigmoid : 1 - p.sigmoid);
        }
    pc_classifier_free(c);
    const double n = CATS + DOGS;
    assert_true(fabs(plain.epoch_loss - (loss[0] + loss[1]) / n) < 1e-5);
    assert_true(fabs(balanced.epoch_loss - (loss[0] / (2 * CATS) + loss[1] / (2 * DOGS))) < 1e-5);
    assert_true(fabs(balanced.epoch_loss - plain.epoch_loss) > 1e-4);
}

static void what_is_never_said_is_told(void **state)
{
    (void)state;
    told h;
    uint8_t *bytes;
    size_t n;
    test_path out = joined(root.s, "told");
    pc_train_summary s = TRAIN(out.s, &h, .epochs = 4, .lr = 1e-6, .init = "torch", .zoom = 0.1);
    assert_non_null(strstr(h.started, "classes of unequal size, 4 (dog) to 20 (cat): always saying cat would be right "
                                      "for 83% of these pictures; --class-weights balanced"));
    assert_true(h.uneven && s.kept.uneven);
    if (h.never_named) { /* which of the two is chance, of the first weights */
        assert_int_equal(h.never_named, 1);
        assert_int_equal(s.kept.never_named, 1);
        assert_true(s.kept.test_balanced_accuracy == 0.5);
        assert_non_null(strstr(h.logged, "the network of epoch 3 never says "));
        assert_non_null(
            strstr(h.logged, ": no test picture was taken for it, of 2 classes; --class-weights balanced may"));
    }
    assert_int_equal(h.never_named, 1);
    assert_ok(pc__file_read(joined(out.s, "metrics.jsonl").s, &bytes, &n));
    assert_non_null(strstr((char *)bytes, "\"test_balanced_accuracy\": 0.5, "));
    assert_non_null(strstr((char *)bytes, "\"test_recall\": ["));
    pc__free(bytes);
}

static void measured(void **state)
{
    (void)state;
    pc_evaluation e;
    pc_classifier *c = pc_classifier_open(joined(root.s, "told").s, test_device_name());
    assert_not_null_ok(c);
    assert_ok(pc_classifier_evaluate(c, data.s, 5, NULL, &e));
    pc_classifier_free(c);
    int said = e.confusion[0] ? 0 : 1, never = !said;
    assert_true(e.balanced_accuracy == 0.5 && e.never_named == 1);
    assert_true(e.recall[said] == 1 && e.recall[never] == 0);
    assert_true(isnan(e.precision[never]));
    assert_true(e.precision[said] == e.accuracy);
    pc_evaluation_free(&e);
}

/* With weights the epoch is kept that is best for all classes alike. */
static void kept_by_balanced_accuracy(void **state)
{
    (void)state;
    told h;
    uint8_t *bytes;
    size_t n;
    double best = -1;
    test_path out = joined(root.s, "kept");
    pc_train_summary s = TRAIN(out.s, &h, .epochs = 15, .lr = 0.01, .class_weights = "balanced");
    assert_non_null(strstr(h.started, "their losses are weighted alike"));
    assert_ok(pc__file_read(joined(out.s, "metrics.jsonl").s, &bytes, &n));
    for (const char *at = (char *)bytes; (at = strstr(at, "\"test_balanced_accuracy\": ")); at++)
        best = fmax(best, atof(at + 26));
    pc__free(bytes);
    assert_true(fabs(s.kept.test_balanced_accuracy - best) < 1e-12);
    pc_train_options other = {.data = data.s,
                              .out = out.s,
                              .epochs = 16,
                              .lr = 0.01,
                              .size = 8,
                              .arch = "mlp",
                              .batch = BATCH,
                              .device = test_device_name(),
                              .resume = true};
    assert_fails(pc_train_folder(other, &s), PC_ERR_STATE, "--class-weights balanced");
    other.class_weights = "heavy";
    assert_fails(pc_train_folder(other, &s), PC_ERR_ARGUMENT, "\"heavy\"; there are none, balanced");
}

/* pc_fit with weights of the program's own: a class that weighs nothing is not learned, on any path of a step. */
static void in_a_loop_of_ones_own(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        pc_seed(5);
        const float weights[2] = {class == 0, class == 1};
        pc_module *net = on_device(
            pc_sequential(pc_flatten(), pc_linear(192, 8, .activation = PC_ACTIVATION_RELU), pc_linear(8, 1)));
        pc_optimizer *adam = pc_adam(net, .lr = 0.02);
        pc_loader *pictures =
            pc_loader(joined(data.s, "train").s, .size = 8, .batch = BATCH, .shuffle = true, .device = test_device());
        pc_score score;
        assert_ok(pc_fit(net, adam, pictures, PC_OPTIONS(pc_fit_options, .epochs = 6, .class_weights = weights), NULL));
        assert_ok(pc_evaluate(net, pictures, &score));
        assert_int_equal(score.correct, class ? DOGS : CATS);
        pc_loader_free(pictures);
        pc_optimizer_free(adam);
        pc_module_free(net);
    }
}

/* Trained on pictures of root/`train`; whatever the test pictures are of three classes, it names the last of its outputs. */
static pc_epoch_result says_the_last(const char *train, int outputs)
{
    pc_module *net = on_device(pc_sequential(pc_flatten(), pc_linear(3 * 8 * 8, outputs)));
    pc_optimizer *sgd = pc_sgd(net, .lr = 1e-30);
    pc_loader *learnt = pc_loader(joined(root.s, train).s, .size = 8, .device = test_device()),
              *tested = pc_loader(joined(root.s, "three").s, .size = 8, .batch = 5, .device = test_device());
    assert_true(sgd && learnt && tested);
    pc_tensor *bias = pc_module_parameter(net, "1.bias");
    PC_NO_GRAD {
        PC_SCOPE {
            assert_ok(pc_fill(pc_slice(bias, 0, outputs - 1, outputs, 1), 1000));
        }
    }
    pc_epoch_result last;
    assert_ok(pc_fit(net, sgd, learnt, PC_OPTIONS(pc_fit_options, .test = tested), &last));
    pc_loader_free(learnt);
    pc_loader_free(tested);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return last;
}

/* What is named may be a class that the test pictures lack, and one that nothing is called. */
static void classes_that_are_not_tested(void **state)
{
    (void)state;
    static const char *const names[] = {"cat", "dog", "eel", "fox"};
    put_classes(placed(root.s, "four/").s, names, 4, 4);
    put_classes(placed(root.s, "three/").s, names, 3, 4);
    const pc_epoch_result results[] = {says_the_last("four", 4), says_the_last("three", 5), says_the_last("three", 3)};
    for (int i = 0; i < 2; i++) {
        assert_true(results[i].test_accuracy == 0 && results[i].test_balanced_accuracy == 0);
        assert_int_equal(results[i].never_named, 3);
    }
    assert_true(fabs(results[2].test_balanced_accuracy - 1.0 / 3) < 1e-12);
    assert_int_equal(results[2].never_named, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_weighted),
        cmocka_unit_test(what_is_never_said_is_told),
        cmocka_unit_test(measured),
        cmocka_unit_test(kept_by_balanced_accuracy),
        cmocka_unit_test(classes_that_are_not_tested),
        cmocka_unit_test(in_a_loop_of_ones_own),
    };
    return cmocka_run_group_tests_name("train.class_weights", tests, prepare, tidy);
}
