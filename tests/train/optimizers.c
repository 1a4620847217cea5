/* pc_train_folder with each optimiser, schedules and clipping: what the Keras file says, going on to the same bits, and
 * settings that make no sense. */
#include "group.h"

#include "device.h"
#include "same.h"

#include <paracord/keras.h>
#include <paracord/train.h>

static int prepare(void **state)
{
    open_folder(state);
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog"}, 2, 9);
    return 0;
}

static pc_train_options settings(const char *out)
{
    static test_path data, run;
    data = joined(root.s, "data");
    run = joined(root.s, out);
    return (pc_train_options){.data = data.s,
                              .out = run.s,
                              .arch = "mlp",
                              .epochs = 2,
                              .batch = 4,
                              .size = 16,
                              .lr = 0.002,
                              .val_split = 0.2,
                              .device = test_device_name()};
}

static void files_name_the_optimiser_as_keras_does(void **state)
{
    (void)state;
#ifdef PC_HAVE_HDF5
    static const char *const names[][2] = {
        {"adam", "Adam"}, {"sgd", "SGD"}, {"adamw", "AdamW"}, {"rmsprop", "RMSprop"}, {"lion", "Lion"}};
    for (int i = 0; i < 5; i++) {
        pc_train_options s = settings(names[i][0]);
        pc_train_summary summary;
        pc_keras_info info;
        s.optimizer = names[i][0];
        s.momentum = i == 1 || i == 3 ? 0.9 : 0;
        s.nesterov = i == 1;
        s.weight_decay = 0.01;
        s.clip = 1;
        s.schedule = "cosine";
        s.warmup = 2;
        assert_ok(pc_train_folder(s, &summary));
        assert_int_equal(summary.epochs_done, 2);
        pc_module *net = pc_keras_load(joined(s.out, "model.h5").s, &info);
        assert_not_null_ok(net);
        assert_string_equal(info.optimizer, names[i][1]);
        assert_close(info.lr, 0.002, 1e-9); /* not that of the last step */
        pc_module_free(net);
    }
#endif
}

static int polls;

static bool stop_later(void *context)
{
    return ++polls == *(int *)context;
}

/* The weights of a run, as its file has them. */
static void assert_same_models(const char *a, const char *b)
{
#ifdef PC_HAVE_HDF5
    pc_module *nets[2] = {pc_keras_load(joined(joined(root.s, a).s, "model.h5").s, NULL),
                          pc_keras_load(joined(joined(root.s, b).s, "model.h5").s, NULL)};
    assert_not_null_ok(nets[0]);
    assert_not_null_ok(nets[1]);
    pc_parameter x[8], y[8];
    const int n = pc_module_state_list(nets[0], x, 8);
    pc_module_state_list(nets[1], y, 8);
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            assert_true(pc_item(pc_sum(pc_ne(x[i].tensor, y[i].tensor))) == 0);
        }
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
#else
    (void)a, (void)b;
#endif
}

static void schedules_go_on_where_they_were(void **state)
{
    (void)state;
    static const char *const schedules[] = {"linear", "one-cycle"}, *const optimizers[] = {"rmsprop", "lion"};
    for (int i = 0; i < 2; i++) {
        int after = 5;
        pc_train_summary summary;
        pc_train_callbacks callbacks = {.context = &after, .stop = stop_later};
        pc_train_options s = settings("whole");
        s.optimizer = optimizers[i];
        s.schedule = schedules[i];
        s.clip = 0.5;
        s.keep = "last";
        assert_ok(pc_train_folder(s, &summary));
        pc_train_options part = s;
        test_path out = joined(root.s, i ? "part1" : "part0");
        part.out = out.s;
        part.callbacks = &callbacks;
        polls = 0;
        assert_ok(pc_train_folder(part, &summary));
        assert_true(summary.interrupted);
        part.callbacks = NULL;
        part.resume = true;
        part.epochs = 3;
        assert_fails(pc_train_folder(part, &summary), PC_ERR_STATE, "--epochs 2");
        part.epochs = 2;
        part.clip = 1;
        assert_fails(pc_train_folder(part, &summary), PC_ERR_STATE, "--clip 0.5");
        part.clip = 0.5;
        assert_ok(pc_train_folder(part, &summary));
        assert_same_models("whole", i ? "part1" : "part0");
    }
}

/* AdamW without decay is Adam; its usual decay is another training. */
static void no_decay_is_none(void **state)
{
    (void)state;
    pc_train_summary summary;
    pc_train_options s = settings("adam-0");
    s.keep = "last";
    assert_ok(pc_train_folder(s, &summary));
    test_path out = joined(root.s, "adamw-0");
    s.out = out.s;
    s.optimizer = "adamw";
    s.weight_decay = -1;
    assert_ok(pc_train_folder(s, &summary));
    assert_same_models("adam-0", "adamw-0");
    s.resume = true;
    s.weight_decay = 0;
    assert_fails(pc_train_folder(s, &summary), PC_ERR_STATE, "--weight-decay 0,");
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    pc_train_summary summary;
    pc_train_options s = settings("wrong");
    s.optimizer = "adagrad";
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "there are adam, sgd, adamw, rmsprop, lion");
    s.optimizer = "adam";
    s.nesterov = true;
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "nesterov is for \"sgd\"");
    s.nesterov = false;
    s.momentum = 0.9;
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "a momentum is for \"sgd\" and \"rmsprop\"");
    s.momentum = 0;
    s.schedule = "sawtooth";
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "there are constant, cosine, linear, one-cycle");
    s.schedule = "cosine";
    s.warmup = 1000;
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "a warmup of 1000 steps is longer than the run");
    s.warmup = 0;
    s.clip = -1;
    assert_fails(pc_train_folder(s, &summary), PC_ERR_ARGUMENT, "clip is -1");
}

/* A folder with files of somebody else's is left as it is; with those of a run it is a run's. */
static void files_of_others_stay(void **state)
{
    (void)state;
    static const char *const names[] = {"model.h5", "model.safetensors", "report.html"};
    pc_train_summary summary;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "mine%d/%s", i, names[i]);
        put_bytes(root.s, name, "x", 1);
        *strchr(name, '/') = 0;
        pc_train_options s = settings(name);
        assert_fails(pc_train_folder(s, &summary), PC_ERR_STATE, "is there and is no run's");
        assert_true(access(joined(s.out, names[i]).s, F_OK) == 0 &&
                    access(joined(s.out, "metrics.jsonl").s, F_OK) != 0);
        assert_int_equal(unlink(joined(s.out, names[i]).s), 0);
        for (int run = 0; run < 2; run++)
            assert_ok(pc_train_folder(s, &summary));
    }
}

/* The run folder keeps what was good. */
static void a_rate_that_is_too_high_ends_the_run(void **state)
{
    (void)state;
    pc_train_summary summary;
    pc_train_options s = settings("diverges");
    s.optimizer = "sgd";
    s.lr = 1000;
    s.weight_decay = 1000; /* the weights grow by a million in each step */
    assert_fails(pc_train_folder(s, &summary), PC_ERR_RANGE, "is no finite number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_name_the_optimiser_as_keras_does),
        cmocka_unit_test(schedules_go_on_where_they_were),
        cmocka_unit_test(no_decay_is_none),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(a_rate_that_is_too_high_ends_the_run),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
