/* pc_fit that goes on from a sound checkpoint in another way than the one that it was made in: the error names what differs, or
 * nothing is amiss. */
#include "device.h"

#include <paracord/fit.h>
#include <paracord/random.h>
#include <paracord/samples.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 9, WIDTH = 2, CLASSES = 3 };

static char folder[64], checkpoint[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/paracord-otherwise-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(checkpoint);
    return rmdir(folder);
}

static pc_loader *loader(pc_dtype dtype)
{
    pc_loader *made = NULL;
    int64_t y[COUNT];
    float x[COUNT * WIDTH];
    for (int i = 0; i < COUNT; i++)
        y[i] = i % CLASSES;
    for (int i = 0; i < COUNT * WIDTH; i++)
        x[i] = sinf((float)(i * i));
    PC_SCOPE {
        made = pc_loader_from_tensors(pc_cast(pc_from_data(x, PC_SHAPE(COUNT, WIDTH), PC_F32, PC_DEVICE_CPU), dtype),
                                      pc_from_data(y, PC_SHAPE(COUNT), PC_I64, PC_DEVICE_CPU), .batch = 3,
                                      .device = test_device());
    }
    return made;
}

typedef enum kind { PLAIN, WIDER, DEEPER, NORMED, DOUBLE, HALF, BRAIN } kind;

static pc_dtype dtype_of(kind k)
{
    return k == DOUBLE ? PC_F64 : k == HALF ? PC_F16 : k == BRAIN ? PC_BF16 : PC_F32;
}

static pc_module *network(kind k)
{
    pc_seed(2);
    const int wide = k == WIDER ? 5 : 4;
    if (k == DEEPER)
        return on_device(pc_sequential(pc_linear(WIDTH, 4), pc_linear(4, 4), pc_linear(4, CLASSES)));
    if (k == NORMED) /* as many parameters as two layers */
        return on_device(pc_sequential(pc_batch_norm1d(WIDTH), pc_linear(WIDTH, CLASSES)));
    return on_device(pc_sequential(pc_linear(WIDTH, wide), pc_linear(wide, CLASSES)));
}

/* With the same data as `test`. */
static pc_status fit(kind k, double momentum, pc_fit_options options)
{
    pc_module *net = network(k);
    assert_ok(pc_module_to(net, test_device(), dtype_of(k)));
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1, .momentum = momentum);
    pc_loader *train = loader(dtype_of(k)), *test = loader(dtype_of(k));
    options.checkpoint = checkpoint;
    options.test = test;
    const pc_status status = pc_fit(net, sgd, train, options, NULL);
    pc_loader_free(train);
    pc_loader_free(test);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return status;
}

static const pc_fit_options again = {.epochs = 2, .resume = true};
#define AGAIN(...) ((pc_fit_options){.epochs = 2, .resume = true, __VA_ARGS__})

/* In these words, and without the advice to throw a sound file away. */
static void refused(pc_status status, const char *words)
{
    assert_int_equal(status, PC_ERR_STATE);
    assert_int_equal(pc_error_last()->status, PC_ERR_STATE);
    if (!strstr(pc_error_last()->message, words) || strstr(pc_error_last()->message, "delete"))
        fail_msg("%s", pc_error_last()->message);
    pc_error_clear();
}

static void other_networks(void **state)
{
    (void)state;
    assert_ok(fit(PLAIN, 0.5, (pc_fit_options){.epochs = 1}));
    refused(fit(WIDER, 0.5, again),
            "of another network, which has other shapes: there 0.weight has [4, 2], and here [5, 2]");
    refused(fit(DEEPER, 0.5, again), "of another network: that has 4 parameters to train, and this one 6");
    refused(fit(NORMED, 0.5, again),
            "of another network: that has 0 buffers, such as running statistics, and this one ");
    refused(fit(PLAIN, 0, again), "has 1 tensors of the optimiser sgd for each parameter, and this run's keeps 0");
    assert_ok(fit(PLAIN, 0.5, again));
}

static void other_dtypes(void **state)
{
    (void)state;
    static const kind kinds[] = {PLAIN, DOUBLE, HALF, BRAIN};
    for (int i = 0; i < 4; i++) {
        assert_ok(fit(kinds[i], 0.5, (pc_fit_options){.epochs = 1, .keep_best = true}));
        for (int k = 0; k < 4; k++) {
            char words[128];
            snprintf(words, sizeof words, "has 0.weight in %s, and this network has it in %s; take the network in %s",
                     pc_dtype_name(dtype_of(kinds[i])), pc_dtype_name(dtype_of(kinds[k])),
                     pc_dtype_name(dtype_of(kinds[i])));
            if (k != i)
                refused(fit(kinds[k], 0.5, AGAIN(.keep_best = true)), words);
        }
        assert_ok(fit(kinds[i], 0.5, AGAIN(.keep_best = true)));
    }
}

static void other_options(void **state)
{
    (void)state;
    assert_ok(fit(PLAIN, 0.5, (pc_fit_options){.epochs = 1}));
    refused(fit(PLAIN, 0.5, AGAIN(.mixed = PC_MIXED_F16)), "made without .mixed = PC_MIXED_F16, and this run has that");
    refused(fit(PLAIN, 0.5, AGAIN(.keep_best = true)),
            "made without keep_best, so that it lacks the weights of its best epoch, 1");
    refused(fit(PLAIN, 0.5, AGAIN(.settings = "mine\n")), "made without the settings mine, which this run has");
    assert_ok(fit(PLAIN, 0.5, AGAIN(.mixed = PC_MIXED_BF16)));
    assert_ok(fit(PLAIN, 0.5, (pc_fit_options){.epochs = 1, .mixed = PC_MIXED_F16, .settings = "a\nb 1"}));
    refused(fit(PLAIN, 0.5, AGAIN(.settings = "a\nb 1")),
            "made with .mixed = PC_MIXED_F16, and this run has another .mixed");
    refused(fit(PLAIN, 0.5, AGAIN(.settings = "a\nb 2", .mixed = PC_MIXED_F16)),
            "made with the settings b 1, and this run has b 2; resume with the same .settings");
    refused(fit(PLAIN, 0.5, AGAIN(.settings = "a", .mixed = PC_MIXED_F16)),
            "made with the settings b 1, which this run lacks");
    assert_ok(fit(PLAIN, 0.5, AGAIN(.settings = "a\nb 1", .mixed = PC_MIXED_F16)));
    assert_ok(fit(DOUBLE, 0.5, (pc_fit_options){.epochs = 1, .mixed = PC_MIXED_F16}));
    refused(fit(DOUBLE, 0.5, again), "made with .mixed = PC_MIXED_F16, and this run has another .mixed");
}

/* The weights of the best epoch are dropped, and all else goes on. */
static void the_best_is_not_kept_any_more(void **state)
{
    (void)state;
    for (int normed = 0; normed < 2; normed++) {
        const kind k = normed ? NORMED : PLAIN;
        assert_ok(fit(k, 0.5, (pc_fit_options){.epochs = 1, .keep_best = true}));
        assert_ok(fit(k, 0.5, again));
        refused(fit(k, 0.5, (pc_fit_options){.epochs = 3, .resume = true, .keep_best = true}),
                "made without keep_best");
        assert_ok(fit(k, 0.5, (pc_fit_options){.epochs = 1, .keep_best = true}));
        assert_ok(fit(k, 0.5, AGAIN(.keep_best = true)));
    }
}

/* --- what an epoch's callback changes is in that epoch's checkpoint --- */

static void halve_rate(void *optimizer, const pc_epoch_result *result)
{
    (void)result;
    pc_optimizer_set_lr(optimizer, pc_optimizer_lr(optimizer) / 2);
    PC_SCOPE {
        assert_not_null_ok(pc_randn(PC_SHAPE(3), PC_F32, PC_DEVICE_CPU)); /* and it draws */
    }
}

typedef struct ending {
    double rate;
    float weights[4 * WIDTH];
    pc_generator generator;
} ending;

static ending fit_halving(int epochs, bool resume)
{
    ending e;
    pc_module *net = network(PLAIN);
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1, .momentum = 0.5);
    pc_loader *train = loader(PC_F32);
    const pc_train_callbacks callbacks = {.context = sgd, .epoch = halve_rate};
    assert_ok(pc_fit(net, sgd, train,
                     PC_OPTIONS(pc_fit_options, .epochs = epochs, .resume = resume, .checkpoint = checkpoint,
                                .callbacks = &callbacks),
                     NULL));
    e.rate = pc_optimizer_lr(sgd);
    e.generator = pc_generator_get();
    assert_ok(pc_read(pc_module_parameter(net, "0.weight"), e.weights, sizeof e.weights));
    pc_loader_free(train);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    return e;
}

static void what_the_callback_changes_is_in_it(void **state)
{
    (void)state;
    const ending whole = fit_halving(3, false);
    assert_true(whole.rate == 0.1 / 8);
    (void)fit_halving(1, false);
    const ending resumed = fit_halving(3, true);
    assert_true(resumed.rate == whole.rate);
    assert_memory_equal(resumed.weights, whole.weights, sizeof whole.weights);
    assert_memory_equal(&resumed.generator, &whole.generator, sizeof whole.generator);
}

/* --- metrics by their names --- */

static pc_tensor *grows(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    static int calls;
    (void)context, (void)outputs, (void)batch;
    return pc_scalar(++calls, PC_F32, test_device());
}

static pc_tensor *is_great(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context, (void)outputs, (void)batch;
    return pc_scalar(1000, PC_F32, test_device());
}

static int epochs_learnt;

static void note(void *context, const pc_epoch_result *result)
{
    (void)context;
    epochs_learnt = result->epoch;
}

static void metrics_are_found_by_name(void **state)
{
    (void)state;
    static const pc_metric both[] = {{"great", is_great, true}, {"growing", grows, true}};
    const pc_train_callbacks callbacks = {.epoch = note};
    const pc_fit_options two = {.epochs = 2, .keep_best = true, .metrics = both, .metric_count = 2, .watch = "growing"};
    pc_fit_options one = {.epochs = 6,
                          .keep_best = true,
                          .early_stop = 2,
                          .metrics = both + 1,
                          .metric_count = 1,
                          .watch = "growing",
                          .resume = true,
                          .callbacks = &callbacks};
    assert_ok(fit(PLAIN, 0.5, two));
    assert_ok(fit(PLAIN, 0.5, one));
    assert_int_equal(epochs_learnt, 6);
    one.watch = "loss";
    one.epochs = 7;
    refused(fit(PLAIN, 0.5, one), "has the best epoch by \"growing\", 6, and this run watches \"loss\"");
    one.watch = NULL;
    refused(fit(PLAIN, 0.5, one), "watches \"accuracy\"; resume with the same .watch");
    one.watch = "growing";
    one.metrics = both;
    one.metric_count = 2;
    assert_ok(fit(PLAIN, 0.5, one));
    assert_int_equal(epochs_learnt, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_networks),
        cmocka_unit_test(other_dtypes),
        cmocka_unit_test(other_options),
        cmocka_unit_test(the_best_is_not_kept_any_more),
        cmocka_unit_test(what_the_callback_changes_is_in_it),
        cmocka_unit_test(metrics_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
