/* Labels of -100, which count for nothing: means over those that count, whatever the batches and their parts are, and none of
 * them where none counts. */
#include "device.h"

#include <paracord/fit.h>
#include <paracord/loss.h>
#include <paracord/random.h>
#include <paracord/samples.h>

#include <math.h>

enum { COUNT = 12, WIDTH = 2, CLASSES = 3 };

static const int64_t labels[COUNT] = {0, 1, 2, 0, -100, -100, -100, 1, 2, 0, -100, 1};

static pc_loader *loader(int first, int n, int batch)
{
    pc_loader *made = NULL;
    float x[COUNT * WIDTH];
    for (int i = 0; i < COUNT * WIDTH; i++)
        x[i] = sinf((float)(i * i + 1));
    PC_SCOPE {
        made = pc_loader_from_tensors(pc_from_data(x + first * WIDTH, PC_SHAPE(n, WIDTH), PC_F32, PC_DEVICE_CPU),
                                      pc_from_data(labels + first, PC_SHAPE(n), PC_I64, PC_DEVICE_CPU), .batch = batch,
                                      .device = test_device());
    }
    assert_not_null_ok(made);
    return made;
}

static pc_module *network(void)
{
    pc_seed(1);
    return on_device(pc_linear(WIDTH, CLASSES));
}

/* Over all that count, on the host. */
static pc_score right_score(pc_module *net)
{
    float x[COUNT * WIDTH], z[COUNT * CLASSES];
    pc_score s = {0};
    for (int i = 0; i < COUNT * WIDTH; i++)
        x[i] = sinf((float)(i * i + 1));
    PC_SCOPE {
        pc_tensor *answers = pc_forward(net, pc_from_data(x, PC_SHAPE(COUNT, WIDTH), PC_F32, test_device()));
        assert_ok(pc_read(answers, z, sizeof z));
    }
    for (int i = 0; i < COUNT; i++) {
        const float *row = z + i * CLASSES;
        if (labels[i] < 0)
            continue;
        double sum = 0;
        int best = 0;
        for (int k = 0; k < CLASSES; k++) {
            sum += exp((double)row[k]);
            best = row[k] > row[best] ? k : best;
        }
        s.loss += log(sum) - (double)row[labels[i]];
        s.correct += best == labels[i];
        s.count++;
    }
    s.loss /= (double)s.count;
    return s;
}

static void evaluated_in_any_batches(void **state)
{
    (void)state;
    pc_module *net = network();
    const pc_score want = right_score(net);
    assert_int_equal(want.count, 8);
    for (int batch = 1; batch <= COUNT; batch++) {
        pc_score score;
        pc_loader *all = loader(0, COUNT, batch);
        assert_ok(pc_evaluate(net, all, &score));
        assert_close(score.loss, want.loss, 1e-6);
        assert_int_equal(score.count, want.count);
        assert_int_equal(score.correct, want.correct);
        assert_close(score.accuracy, (double)want.correct / 8, 1e-12);
        pc_loader_free(all);
    }
    pc_score none;
    pc_loader *ignored = loader(4, 3, 2);
    assert_ok(pc_evaluate(net, ignored, &none));
    assert_true(isnan(none.loss) && isnan(none.accuracy) && none.count == 0 && none.correct == 0);
    pc_loader_free(ignored);
    pc_module_free(net);
}

static pc_epoch_result fit(int first, int n, int batch, pc_fit_options options, float weights[WIDTH * CLASSES])
{
    pc_module *net = network();
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.5);
    pc_loader *train = loader(first, n, batch);
    pc_epoch_result last;
    assert_ok(pc_fit(net, sgd, train, options, &last));
    assert_ok(pc_read(pc_module_parameter(net, "weight"), weights, WIDTH * CLASSES * sizeof *weights));
    pc_loader_free(train);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return last;
}

static void parts_are_learnt_from_as_the_whole(void **state)
{
    (void)state;
    for (int smooth = 0; smooth < 2; smooth++) {
        float want[WIDTH * CLASSES], got[WIDTH * CLASSES];
        const pc_epoch_result whole =
            fit(0, COUNT, COUNT, (pc_fit_options){.epochs = 3, .label_smoothing = 0.1 * smooth}, want);
        assert_true(whole.accuracy > 0 && fmod(whole.accuracy * 8, 1) == 0);
        for (int parts = 2; parts <= COUNT; parts++) {
            const pc_epoch_result r =
                fit(0, COUNT, COUNT,
                    (pc_fit_options){.epochs = 3, .accumulate = parts, .label_smoothing = 0.1 * smooth}, got);
            assert_close(r.loss, whole.loss, 1e-6);
            for (int i = 0; i < WIDTH * CLASSES; i++)
                assert_close(got[i], want[i], 1e-6);
        }
    }
}

/* Of the batches (0 1 2) (0 - -) (- 1 2) (0 - 1), and of (- -) (- 1) (2 0) (- 1), the first of which has none. */
static void a_batch_without_any(void **state)
{
    (void)state;
    float begin[WIDTH * CLASSES], got[WIDTH * CLASSES];
    pc_module *net = network();
    assert_ok(pc_read(pc_module_parameter(net, "weight"), begin, sizeof begin));
    pc_module_free(net);
    pc_epoch_result r = fit(4, 3, 2, (pc_fit_options){.epochs = 2}, got);
    assert_memory_equal(got, begin, sizeof begin);
    assert_true(isnan(r.loss) && isnan(r.accuracy));
    for (int parts = 0; parts < 3; parts++) {
        r = fit(4, 8, 2, (pc_fit_options){.epochs = 4, .accumulate = parts}, got);
        assert_true(isfinite(r.loss) && r.loss > 0);
        assert_true(memcmp(got, begin, sizeof begin) != 0);
        for (int i = 0; i < WIDTH * CLASSES; i++)
            assert_true(isfinite(got[i]));
    }
    r = fit(4, 8, 2, (pc_fit_options){.epochs = 2, .label_smoothing = 0.1}, got);
    assert_true(isfinite(r.loss));
}

/* The mean of a first output over the samples that count: NaN where none does. */
static pc_tensor *mean_of_first(void *context, pc_tensor *outputs, const pc_batch *b)
{
    (void)context;
    pc_tensor *counts = pc_cast(pc_ne(b->y, pc_scalar(-100, PC_I64, pc_tensor_device(b->y))), PC_F32);
    pc_tensor *first = pc_slice(pc_reshape(outputs, PC_SHAPE(b->n, -1)), 1, 0, 1, 1);
    return pc_div(pc_sum(pc_mul(pc_reshape(first, PC_SHAPE(b->n)), counts)), pc_sum(counts));
}

static pc_tensor *plain_loss(void *context, pc_tensor *outputs, const pc_batch *b)
{
    (void)context;
    return pc_cross_entropy(outputs, b->y);
}

/* It is NaN for the first batch, none of whose samples has a label: what learns from it says so, on every device. */
static void a_loss_that_is_no_number(void **state)
{
    (void)state;
    pc_module *net = network();
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    pc_loader *all = loader(4, 8, 2);
    assert_fails(pc_fit(net, sgd, all, PC_OPTIONS(pc_fit_options, .epochs = 1, .loss = plain_loss), NULL), PC_ERR_RANGE,
                 "no finite number");
    pc_loader_free(all);
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

static pc_tensor *some_outputs(void *context, pc_module *net, const pc_batch *b)
{
    (void)net;
    const int shape = *(const int *)context;
    pc_tensor *first = pc_slice(b->x, 1, 0, 1, 1);
    return shape == 0 ? pc_clone(b->x) : shape == 1 ? pc_clone(first) : pc_reshape(first, PC_SHAPE(b->n));
}

/* Outputs [n, 2], [n, 1] and [n], with a loss of one's own: the mean over all that count, in whatever batches they come. */
static void a_loss_of_ones_own(void **state)
{
    (void)state;
    double want = 0;
    for (int i = 0; i < COUNT; i++)
        want += labels[i] == -100 ? 0 : sin((double)(4 * i * i + 1)) / 8;
    pc_module *net = network();
    for (int shape = 0; shape < 3; shape++)
        for (int batch = 1; batch <= 5; batch++) {
            pc_loader *all = loader(0, COUNT, batch);
            pc_score s;
            assert_ok(pc_evaluate_by(
                net, all, (pc_fit_options){.loss = mean_of_first, .forward = some_outputs, .context = &shape}, &s));
            assert_int_equal(s.count, 8);
            assert_close(s.loss, want, 1e-6);
            pc_loader_free(all);
        }
    pc_module_free(net);
}

static pc_status sample(void *context, int64_t i, int64_t epoch, void *const *to)
{
    float *x = to[0];
    (void)context, (void)epoch;
    for (int k = 0; k < WIDTH; k++) {
        const int64_t place = i * WIDTH + k;
        x[k] = sinf((float)(place * place + 1));
    }
    *(int64_t *)to[1] = labels[i];
    return PC_OK;
}

/* One step on all samples, with weights of classes, in so many parts. */
static double weighed_loss(int parts, double smoothing, float got[WIDTH * CLASSES])
{
    static const char *const names[] = {"a", "b", "c"};
    static const float weights[] = {0.5f, 2, 4};
    pc_module *net = network();
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.5);
    pc_loader *train =
        pc_loader_new_samples(&(pc_samples){.count = COUNT,
                                            .fields = 2,
                                            .field = {{.dtype = PC_F32, .shape = PC_SHAPE(WIDTH)}, {.dtype = PC_I64}},
                                            .sample = sample,
                                            .class_names = names,
                                            .class_count = CLASSES},
                              (pc_batch_options){.batch = COUNT, .device = test_device()});
    pc_epoch_result last;
    assert_not_null_ok(train);
    assert_ok(pc_fit(net, sgd, train,
                     PC_OPTIONS(pc_fit_options, .epochs = 1, .accumulate = parts, .label_smoothing = smoothing,
                                .class_weights = weights),
                     &last));
    assert_ok(pc_read(pc_module_parameter(net, "weight"), got, WIDTH * CLASSES * sizeof *got));
    pc_loader_free(train);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return last.loss;
}

/* By the formula, from the answers of a new network. */
static double right_weighed(void)
{
    static const double weights[] = {0.5, 2, 4};
    float x[COUNT * WIDTH], z[COUNT * CLASSES];
    double loss = 0;
    pc_module *net = network();
    for (int i = 0; i < COUNT * WIDTH; i++)
        x[i] = sinf((float)(i * i + 1));
    PC_SCOPE {
        pc_tensor *in = pc_from_data(x, PC_SHAPE(COUNT, WIDTH), PC_F32, test_device());
        assert_ok(pc_read(pc_forward(net, in), z, sizeof z));
    }
    for (int i = 0; i < COUNT; i++) {
        const float *row = z + i * CLASSES;
        double sum = 0;
        for (int k = 0; k < CLASSES; k++)
            sum += exp((double)row[k]);
        loss += labels[i] < 0 ? 0 : weights[labels[i]] * (log(sum) - (double)row[labels[i]]) / 8;
    }
    pc_module_free(net);
    return loss;
}

static void classes_that_are_weighed(void **state)
{
    (void)state;
    for (int smooth = 0; smooth < 2; smooth++) {
        float want[WIDTH * CLASSES], got[WIDTH * CLASSES];
        const double loss = weighed_loss(1, 0.1 * smooth, want);
        if (!smooth)
            assert_close(loss, right_weighed(), 1e-6);
        for (int parts = 2; parts <= COUNT; parts++) {
            assert_close(weighed_loss(parts, 0.1 * smooth, got), loss, 1e-6);
            for (int i = 0; i < WIDTH * CLASSES; i++)
                assert_close(got[i], want[i], 1e-6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_of_ones_own),       cmocka_unit_test(a_loss_that_is_no_number),
        cmocka_unit_test(evaluated_in_any_batches), cmocka_unit_test(parts_are_learnt_from_as_the_whole),
        cmocka_unit_test(a_batch_without_any),      cmocka_unit_test(classes_that_are_weighed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
