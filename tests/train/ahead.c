/* pc_fit on a device that works later: recorded steps, each of which makes the batch of the one behind it, leave the
 * bits of plain steps. For whole and short last batches, over epochs, from a checkpoint behind any batch, after stops,
 * with another learning rate, and where recording is given up; and the making is beside the step, not in front of it.
 */
#include "group.h"
#include "same.h"

#include "device.h"
#include "train/checkpoint.h"

#include <paracord.h>

enum { BATCH = 4, SIZE = 10, EPOCHS = 3, MOST = 8 };

/* root/N has N pictures of each of two classes. */
static test_path pictures(int each)
{
    char name[16];
    snprintf(name, sizeof name, "%d", each);
    return joined(root.s, name);
}

static int prepare(void **state)
{
    open_folder(state);
    for (int each = 1; each <= MOST; each++) {
        char name[16];
        snprintf(name, sizeof name, "%d/", each);
        put_classes(placed(root.s, name).s, (const char *[]){"cat", "dog"}, 2, each);
    }
    return 0;
}

static const pc_generator usual = {8, 0}, unrecordable = {8, (uint64_t)1 << 52};

typedef struct training {
    pc__fit fit;
    int moment;  /* batches trained */
    int save_at; /* that many; 0: never */
    int slow_from;
    bool dirties; /* what the next step is to fill, between the steps */
    bool recorded, gave_up;
} training;

static test_path checkpoint(void)
{
    return joined(root.s, "checkpoint");
}

/* From batch `slow_from` on, counted from 1, where that is not 0. */
static void choose_rate(training *t, int next)
{
    if (t->slow_from && next >= t->slow_from)
        pc_optimizer_set_lr(t->fit.optimizer, 1e-4);
}

static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    training *t = context;
    t->recorded |= fit->step && !pc_step_why(fit->step);
    t->gave_up |= pc_step_why(fit->step) != NULL;
    if (t->dirties && fit->fixed.now.tensor[0])
        assert_ok(pc_fill(fit->fixed.now.tensor[0], -1));
    if (result)
        return PC_OK;
    choose_rate(t, ++t->moment + 1);
    return t->moment == t->save_at ? pc__checkpoint_save(checkpoint().s, fit, "") : PC_OK;
}

/* `last` may be NULL. */
static void begin_with(training *t, int each, bool adam, pc_module *last)
{
    *t = (training){.fit = {.epochs = EPOCHS, .passed = passed, .context = t}};
    pc_seed(7);
    t->fit.train = pc_loader(pictures(each).s, .size = SIZE, .batch = BATCH, .shuffle = true, .seed = 3, .flip = true,
                             .device = test_device());
    pc_module *net =
        pc_sequential(pc_conv2d(3, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                      pc_dropout(0.2), pc_linear(64, 8, .activation = PC_ACTIVATION_RELU), pc_linear(8, 1));
    t->fit.net = on_device(last ? pc_sequential(net, last) : net);
    t->fit.optimizer = adam ? pc_adam(t->fit.net) : pc_sgd(t->fit.net, .lr = 0.05, .momentum = 0.9);
    assert_not_null_ok(t->fit.train);
    assert_not_null_ok(t->fit.optimizer);
}

static void begin(training *t, int each, bool adam)
{
    begin_with(t, each, adam, NULL);
}

static void end(training *t)
{
    pc_loader_free(t->fit.train);
    pc_optimizer_free(t->fit.optimizer);
    pc_module_free(t->fit.net);
}

static int batches_of(const training *t)
{
    return (int)pc_loader_batches(t->fit.train);
}

/* Every batch by hand; the loss of the last epoch. */
static double train_plainly(training *t)
{
    const int batches = batches_of(t);
    double loss = 0;
    pc_batch batch;
    for (int i = 0; i < EPOCHS * batches; i++) {
        choose_rate(t, i + 1);
        assert_ok(pc_loader_seek(t->fit.train, i / batches, i % batches));
        assert_true(pc_loader_next(t->fit.train, &batch));
        PC_SCOPE {
            pc_tensor *value = pc_bce_with_logits(pc_forward(t->fit.net, batch.x), batch.y);
            assert_ok(pc_backward(value));
            assert_ok(pc_optimizer_step(t->fit.optimizer));
            loss = (i % batches ? loss : 0) + pc_item(value) * (double)batch.n;
        }
    }
    return loss / (double)pc_loader_count(t->fit.train);
}

static bool works_later(void)
{
    return test_device().type != PC_CPU;
}

/* From a checkpoint behind any batch, to the bits of `plain`. */
static void go_on_from_any_batch(int each, const training *plain, double loss)
{
    for (int moment = 1; moment <= EPOCHS * batches_of(plain); moment++) {
        training first, second;
        begin(&first, each, true);
        begin(&second, each, true);
        first.save_at = moment;
        pc_generator_set(usual);
        assert_ok(pc__fit_run(&first.fit));
        pc_seed(99); /* the checkpoint brings the generator back */
        assert_ok(pc__checkpoint_load(checkpoint().s, &second.fit, ""));
        assert_ok(pc__fit_run(&second.fit));
        assert_same(plain->fit.optimizer, second.fit.optimizer);
        assert_true(second.fit.last.loss == loss);
        end(&first);
        end(&second);
    }
}

static void compare(int each, bool adam, bool goes_on)
{
    training plain, whole;
    begin(&plain, each, adam);
    begin(&whole, each, adam);
    pc_generator_set(usual);
    const double loss = train_plainly(&plain);
    pc_generator_set(usual);
    assert_ok(pc__fit_run(&whole.fit));
    assert_int_equal(whole.recorded, works_later());
    assert_false(whole.gave_up);
    assert_int_equal(whole.moment, EPOCHS * batches_of(&whole));
    assert_same(plain.fit.optimizer, whole.fit.optimizer);
    assert_true(whole.fit.last.loss == loss);
    if (goes_on)
        go_on_from_any_batch(each, &plain, loss);
    end(&plain);
    end(&whole);
}

static void the_bits_of_plain_steps(void **state)
{
    (void)state;
    compare(7, true, true); /* three whole batches and a half */
    compare(7, false, false);
    compare(8, true, true);  /* whole ones alone */
    compare(6, true, false); /* an odd number of them */
    compare(4, true, false); /* two */
    compare(3, true, true);  /* one and a half */
    compare(2, true, false); /* one */
    compare(1, true, false); /* not even that */
}

static int polls;

static bool stop_often(void *context)
{
    (void)context;
    return ++polls % 5 == 0;
}

static void stops_between(void **state)
{
    (void)state;
    const pc_train_callbacks callbacks = {.stop = stop_often};
    for (int each = 7; each <= MOST; each++) {
        training plain, stopped;
        begin(&plain, each, true);
        begin(&stopped, each, true);
        pc_generator_set(usual);
        (void)train_plainly(&plain);
        pc_generator_set(usual);
        stopped.fit.callbacks = &callbacks;
        polls = 0;
        for (int runs = 0; stopped.fit.at.epoch < EPOCHS; runs++) {
            assert_true(runs < 10);
            stopped.fit.stopped = false;
            assert_ok(pc__fit_run(&stopped.fit));
        }
        assert_same(plain.fit.optimizer, stopped.fit.optimizer);
        end(&plain);
        end(&stopped);
    }
}

/* Each turn is recorded anew then, in the middle of an epoch, behind what was made ahead. */
static void the_rate_changes(void **state)
{
    (void)state;
    for (int from = 5; from <= 8; from++) {
        training plain, changed;
        begin(&plain, MOST, true);
        begin(&changed, MOST, true);
        plain.slow_from = changed.slow_from = from;
        pc_generator_set(usual);
        (void)train_plainly(&plain);
        pc_generator_set(usual);
        assert_ok(pc__fit_run(&changed.fit));
        assert_same(plain.fit.optimizer, changed.fit.optimizer);
        end(&plain);
        end(&changed);
    }
}

static void recording_is_given_up(void **state)
{
    (void)state;
    for (int each = 7; each <= MOST; each++) {
        training plain, whole;
        begin(&plain, each, true);
        begin(&whole, each, true);
        pc_generator_set(unrecordable);
        (void)train_plainly(&plain);
        pc_generator_set(unrecordable);
        assert_ok(pc__fit_run(&whole.fit));
        assert_int_equal(whole.gave_up, works_later());
        assert_same(plain.fit.optimizer, whole.fit.optimizer);
        end(&plain);
        end(&whole);
    }
}

static void begin_mixed(training *t, pc_mixed mixed, bool on_the_host)
{
    assert_int_equal(on_the_host ? setenv("PARACORD_RESIDENT", "no", 1) : unsetenv("PARACORD_RESIDENT"), 0);
    begin(t, 7, true);
    assert_int_equal(unsetenv("PARACORD_RESIDENT"), 0);
    t->fit.mixed = mixed;
    assert_ok(pc__fit_scaler(&t->fit));
}

/* With batches that one recording is given, and with what a loss scaler decides on the device. */
static void pictures_on_the_host_make_the_same(void **state)
{
    (void)state;
    for (pc_mixed mixed = PC_MIXED_NONE; mixed <= PC_MIXED_F16; mixed++) {
        training host, device;
        begin_mixed(&host, mixed, true);
        begin_mixed(&device, mixed, false);
        assert_int_equal(pc_loader_resident(device.fit.train, NULL, 0), works_later());
        assert_false(pc_loader_resident(host.fit.train, NULL, 0));
        pc_generator_set(usual);
        assert_ok(pc__fit_run(&host.fit));
        pc_generator_set(usual);
        assert_ok(pc__fit_run(&device.fit));
        assert_int_equal(device.recorded, works_later());
        assert_false(device.gave_up || host.gave_up);
        assert_same(host.fit.optimizer, device.fit.optimizer);
        pc_scaler_free(host.fit.scaler);
        pc_scaler_free(device.fit.scaler);
        end(&host);
        end(&device);
    }
}

/* --- beside the step --- */

static struct {
    const training *training;
    int unmade, made; /* batches, by the end of the forward pass of the steps that were to make them */
} watched;

/* The emulated device's memory is the host's, and its work is done where it is queued. */
static void look(void *next)
{
    const bool dirty = watched.training->moment > 0 && watched.training->fit.ahead;
    watched.unmade += dirty && *(const float *)next == -1;
    watched.made += dirty && *(const float *)next != -1;
}

static pc_tensor *watch(pc_module *module, pc_tensor *x)
{
    (void)module;
    const pc_tensor *next = watched.training->fit.fixed.next.tensor[0];
    if (next)
        assert_ok(pc_stream_call(pc_stream_current(test_device()), look, pc__data(next)));
    return pc_cast(x, pc_tensor_dtype(x));
}

/* That device does what a recording holds in two orders by turns, as different as what waits for what allows. */
static void no_forward_pass_waits_for_the_next_batch(void **state)
{
    (void)state;
    static const pc_module_class watching = {.name = "Watch", .forward = watch};
    const char *plugin = getenv("PARACORD_PLUGIN_PATH");
    if (!plugin || !strstr(plugin, "emulator"))
        skip();
    training plain, seen;
    begin(&plain, MOST, true);
    begin_with(&seen, MOST, true, pc_module_new(&watching, 0));
    seen.dirties = true;
    watched.training = &seen;
    pc_generator_set(usual);
    (void)train_plainly(&plain);
    pc_generator_set(usual);
    assert_ok(pc__fit_run(&seen.fit));
    assert_same(plain.fit.optimizer, seen.fit.optimizer);
    assert_true(watched.unmade > 0 && watched.made == 0);
    end(&plain);
    end(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_plain_steps),
        cmocka_unit_test(stops_between),
        cmocka_unit_test(the_rate_changes),
        cmocka_unit_test(recording_is_given_up),
        cmocka_unit_test(pictures_on_the_host_make_the_same),
        cmocka_unit_test(no_forward_pass_waits_for_the_next_batch),
    };
    return cmocka_run_group_tests_name("train.ahead", tests, prepare, tidy);
}
