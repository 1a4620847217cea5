/* A training that goes on from a checkpoint, made after any batch, is the same bit by bit as one that never stopped:
 * with dropout, augmentation, momentum, a loss scaler and a short last batch. */
#include "group.h"

#include "device.h"
#include "nn/scaler.h"
#include "same.h"
#include "train/checkpoint.h"

enum { EPOCHS = 2, BATCHES = 4, MOMENTS = EPOCHS * BATCHES };

static test_path path;

static int prepare(void **state)
{
    open_folder(state);
    path = joined(root.s, "checkpoint");
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog"}, 2, 7);
    return 0;
}

typedef struct training {
    pc__fit fit;
    int moment;  /* batches so far */
    int save_at; /* the moment to save at; 0: never */
    double losses[EPOCHS], accuracies[EPOCHS];
} training;

static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    training *t = context;
    if (fit->step)
        assert_null(pc_step_why(fit->step)); /* devices that work later have it recorded */
    if (result) {
        t->losses[result->epoch - 1] = result->loss;
        t->accuracies[result->epoch - 1] = result->accuracy;
        return PC_OK;
    }
    return ++t->moment == t->save_at ? pc__checkpoint_save(path.s, fit, "--x 1\n") : PC_OK;
}

typedef struct kind {
    bool adam;
    pc_mixed mixed;
    bool mixup; /* and smoothed labels, crops, jitter, erased parts */
} kind;

/* The first scales are so large that gradients become infinite: such steps are left out and not counted. */
static void begin(training *t, kind k)
{
    *t = (training){.fit = {.epochs = EPOCHS, .passed = passed, .context = t, .mixed = k.mixed}};
    if (k.mixed == PC_MIXED_F16)
        t->fit.scaler = pc_scaler(test_device(), .initial = 0x1p23, .interval = 2);
    pc_seed(7);
    t->fit.train = pc_loader(joined(root.s, "data").s, .size = 10, .batch = 4, .shuffle = true, .seed = 3, .flip = true,
                             .device = test_device(),
                             .augment = {.shear = 20,
                                         .zoom_low = 0.8,
                                         .zoom_high = 1.2,
                                         .crop_low = k.mixup ? 0.3 : 0,
                                         .crop_high = k.mixup,
                                         .jitter_contrast = k.mixup ? 0.3 : 0,
                                         .erase = k.mixup ? 0.5 : 0});
    t->fit.net = on_device(pc_sequential(
        pc_conv2d(3, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_dropout(0.3), pc_flatten(),
        pc_linear(64, 8, .activation = PC_ACTIVATION_RELU), pc_dropout(0.5), pc_linear(8, 1)));
    t->fit.optimizer = k.adam ? pc_adam(t->fit.net) : pc_sgd(t->fit.net, .lr = 0.05, .momentum = 0.9);
    assert_ok(k.mixup ? pc__mix_open(&t->fit.mix, 0.1, (double[]){0.4, 1}, test_device()) : PC_OK);
    assert_not_null_ok(t->fit.train);
    assert_not_null_ok(t->fit.optimizer);
    assert_int_equal(pc_loader_batches(t->fit.train), BATCHES);
}

static void end(training *t)
{
    pc_loader_free(t->fit.train);
    pc_optimizer_free(t->fit.optimizer);
    pc_scaler_free(t->fit.scaler);
    pc__mix_close(&t->fit.mix);
    pc_module_free(t->fit.net);
}

static void assert_same_state(const training *a, const training *b)
{
    assert_same(a->fit.optimizer, b->fit.optimizer);
    if (a->fit.scaler)
        assert_same_bits(a->fit.scaler->numbers, b->fit.scaler->numbers);
    assert_int_equal(a->fit.at.epoch, b->fit.at.epoch);
    assert_memory_equal(&a->fit.last.loss, &b->fit.last.loss, sizeof(double));
}

/* Save after batch `moment`, throw everything away, go on from the file. */
static void go_on_after(int moment, kind k, const training *alone, pc_generator at_end)
{
    training first, second;
    begin(&first, k);
    first.save_at = moment;
    first.fit.epochs = (moment + BATCHES - 1) / BATCHES; /* it is killed some time after the checkpoint */
    assert_ok(pc__fit_run(&first.fit));
    end(&first);
    begin(&second, k);
    (void)pc_generator_get(); /* whatever the generator did meanwhile */
    pc_seed((uint64_t)moment);
    assert_ok(pc__checkpoint_load(path.s, &second.fit, "--x 1\n"));
    assert_int_equal(second.fit.at.epoch * BATCHES + second.fit.at.batch, moment);
    assert_ok(pc__fit_run(&second.fit));
    assert_same_state(alone, &second);
    for (int e = (moment - 1) / BATCHES; e < EPOCHS; e++) {
        assert_memory_equal(&alone->losses[e], &second.losses[e], sizeof(double));
        assert_memory_equal(&alone->accuracies[e], &second.accuracies[e], sizeof(double));
    }
    pc_generator now = pc_generator_get();
    assert_memory_equal(&now, &at_end, sizeof now);
    end(&second);
}

static int64_t from_any_batch(kind k)
{
    training alone;
    int64_t steps;
    begin(&alone, k);
    assert_ok(pc__fit_run(&alone.fit));
    assert_int_equal(alone.moment, MOMENTS);
    pc_generator at_end = pc_generator_get();
    for (int moment = 1; moment <= MOMENTS; moment++)
        go_on_after(moment, k, &alone, at_end);
    assert_ok(pc__optimizer_updates(alone.fit.optimizer, &steps));
    end(&alone);
    return steps;
}

static void with_adam(void **state)
{
    (void)state;
    assert_int_equal(from_any_batch((kind){true, PC_MIXED_NONE, false}), MOMENTS);
}

static void with_momentum(void **state)
{
    (void)state;
    assert_int_equal(from_any_batch((kind){false, PC_MIXED_NONE, false}), MOMENTS);
}

static void with_bfloat16(void **state)
{
    (void)state;
    assert_int_equal(from_any_batch((kind){true, PC_MIXED_BF16, false}), MOMENTS);
}

static void with_float16(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        int64_t steps = from_any_batch((kind){adam, PC_MIXED_F16, false});
        assert_in_range(steps, 1, MOMENTS - 1); /* some were left out */
    }
}

static void with_mixup(void **state)
{
    (void)state;
    assert_int_equal(from_any_batch((kind){true, PC_MIXED_NONE, true}), MOMENTS);
}

/* Any part of a checkpoint, and any byte of it changed, is refused. */
static void damaged_checkpoints_are_refused(void **state)
{
    (void)state;
    training t;
    begin(&t, (kind){false, PC_MIXED_NONE, false});
    assert_ok(pc__checkpoint_save(path.s, &t.fit, "--x 1\n"));
    assert_fails(pc__checkpoint_load(path.s, &t.fit, "--x 2\n") == PC_OK, PC_ERR_STATE,
                 "--x 1, and this run has --x 2");
    FILE *file = fopen(path.s, "rb");
    static char bytes[1 << 16];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(n, 3000, sizeof bytes - 1);
    for (size_t i = 0; i < n; i += 97) {
        put_bytes(root.s, "cut", bytes, i);
        assert_fails(pc__checkpoint_load(joined(root.s, "cut").s, &t.fit, "--x 1\n") == PC_OK, PC_ERR_FORMAT, "cut");
        bytes[i] ^= 0x10;
        put_bytes(root.s, "changed", bytes, n);
        bytes[i] ^= 0x10;
        assert_fails(pc__checkpoint_load(joined(root.s, "changed").s, &t.fit, "--x 1\n") == PC_OK, PC_ERR_FORMAT,
                     "changed");
    }
    put_bytes(root.s, "longer", bytes, n + 1);
    assert_fails(pc__checkpoint_load(joined(root.s, "longer").s, &t.fit, "--x 1\n") == PC_OK, PC_ERR_FORMAT, "longer");
    assert_fails(pc__checkpoint_load(joined(root.s, "gone").s, &t.fit, "--x 1\n") == PC_OK, PC_ERR_FILE, "gone");
    end(&t);
}

/* Another test set is another best epoch. Files that do not say theirs are taken all the same. */
static void other_test_pictures_are_refused(void **state)
{
    (void)state;
    static const char *const one = "--x 1\nthe set of test pictures 01\n--y 2\n";
    training t;
    begin(&t, (kind){false, PC_MIXED_NONE, false});
    t.fit.about = "a network"; /* as a run of `paracord train` has it */
    assert_ok(pc__checkpoint_save(path.s, &t.fit, one));
    assert_ok(pc__checkpoint_load(path.s, &t.fit, one));
    assert_fails(pc__checkpoint_load(path.s, &t.fit, "--x 1\nthe set of test pictures 02\n--y 2\n") == PC_OK,
                 PC_ERR_STATE, "made with the set of test pictures 01, and this run has the set of test pictures 02");
    assert_ok(pc__checkpoint_save(path.s, &t.fit, "--x 1\n--y 2\n"));
    assert_ok(pc__checkpoint_load(path.s, &t.fit, one));
    assert_fails(pc__checkpoint_load(path.s, &t.fit, "--x 1\nthe set of test pictures 02\n--y 3\n") == PC_OK,
                 PC_ERR_STATE, "made with --y 2, and this run has --y 3");
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_adam),
                                       cmocka_unit_test(with_momentum),
                                       cmocka_unit_test(with_bfloat16),
                                       cmocka_unit_test(with_float16),
                                       cmocka_unit_test(with_mixup),
                                       cmocka_unit_test(damaged_checkpoints_are_refused),
                                       cmocka_unit_test(other_test_pictures_are_refused)};
    return cmocka_run_group_tests_name("train.resume", tests, prepare, tidy);
}
