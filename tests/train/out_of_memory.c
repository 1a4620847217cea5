/* Every allocation of a small training, and of using its network, fails once: an error, no crash, nothing left behind.
 */
#include "faults.h"
#include "folder.h"

#include <paracord.h>
#include <paracord/keras.h>
#include <paracord-tools/report.h>

#ifdef __SANITIZE_ADDRESS__
enum { EACH = 3 }; /* a third of them: a training takes five times as long */
#else
enum { EACH = 1 };
#endif

static test_path root, data, out, model;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    data = joined(root.s, "data");
    out = joined(root.s, "out");
    model = joined(root.s, "out/model.h5");
    put_classes(placed(root.s, "data/train/").s, (const char *[]){"cat", "dog"}, 2, 3);
    put_classes(placed(root.s, "data/test/").s, (const char *[]){"cat", "dog"}, 2, 1);
    put_bytes(root.s, "data/train/cat/broken.jpg", "no picture", 10);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static void hear_start(void *context, const char *text)
{
    (void)context, (void)text;
}

static bool train(const char *arch, bool resume, int epochs)
{
    pc_train_callbacks callbacks = {.started = hear_start};
    pc_train_options settings = {.data = data.s,
                                 .out = out.s,
                                 .arch = arch,
                                 .epochs = epochs,
                                 .batch = 4,
                                 .size = 10,
                                 .zoom = 0.2,
                                 .flip = true,
                                 .resume = resume,
                                 .callbacks = &callbacks,
                                 .report = pc_report_page};
    pc_train_summary summary;
    return pc_train_folder(settings, &summary) == PC_OK;
}

static char expected[1 << 20]; /* the network, when nothing fails */
static size_t expected_bytes;

static size_t read_model(char *bytes)
{
    FILE *file = fopen(model.s, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof expected, file);
    fclose(file);
    return n;
}

/* Where a failing allocation was made up for, it has changed nothing. */
static bool is_expected(void)
{
    static char bytes[sizeof expected];
    return read_model(bytes) == expected_bytes && memcmp(bytes, expected, expected_bytes) == 0;
}

/* Afresh each time, whatever the time before has left. */
static bool train_afresh(void *arch)
{
    unlink(joined(out.s, "checkpoint").s);
    bool fine = train(arch, false, 1);
    assert_true(!fine || !expected_bytes || is_expected());
    return fine;
}

static bool train_on(void *arch)
{
    bool fine = train(arch, true, 1);
    assert_true(!fine || is_expected());
    return fine;
}

static void expect(char *arch)
{
    expected_bytes = 0;
    assert_true(train_afresh(arch));
    expected_bytes = read_model(expected);
}

static void training(void **state)
{
    (void)state;
    expect("mlp");
    fail_some("train mlp, all later ones too", train_afresh, "mlp", true, 3); /* a whole training each */
    expect("article");
    fail_some("train article", train_afresh, "article", false, EACH);
}

static void going_on(void **state)
{
    (void)state;
    expect("article");
    fail_some("resume", train_on, "article", false, 3);
}

/* In parts, with parameters shared out, as far as one rank can: what each step, a checkpoint and going on need. */
static bool fit_shared_out(pc_group *group, int stage, bool resume)
{
    static const float x[8 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 3, 5, 7, 9, 2, 4, 6, 8, 1, 4, 7, 2, 5, 8};
    static const int64_t y[8] = {0, 1, 0, 1, 1, 0, 0, 1};
    const test_path path = joined(root.s, "shared");
    pc_seed(4);
    pc_loader *loader = NULL;
    PC_SCOPE {
        loader = pc_loader_from_tensors(pc_from_data(x, PC_SHAPE(8, 3), PC_F32, PC_DEVICE_CPU),
                                        pc_from_data(y, PC_SHAPE(8), PC_I64, PC_DEVICE_CPU), .batch = 4);
    }
    pc_module *net = pc_sequential(pc_linear(3, 4), pc_batch_norm1d(4), pc_linear(4, 2));
    pc_zero *zero = net ? pc_zero(net, group, .stage = stage) : NULL;
    pc_optimizer *adam = zero ? pc_adam(pc_zero_part(zero)) : NULL;
    const pc_fit_options options = {.epochs = 1 + resume,
                                    .test = loader,
                                    .keep_best = true,
                                    .checkpoint = path.s,
                                    .resume = resume,
                                    .zero = zero,
                                    .accumulate = 2,
                                    .group = group};
    const bool fine = loader && adam && pc_fit(net, adam, loader, options, NULL) == PC_OK;
    pc_optimizer_free(adam);
    pc_zero_free(zero);
    pc_module_free(net);
    pc_loader_free(loader);
    return fine;
}

static bool share_out(void *stage)
{
    pc_group *group = NULL;
    const bool fine = pc_group_threads(1, &group) == PC_OK && fit_shared_out(group, *(int *)stage, false) &&
                      fit_shared_out(group, *(int *)stage, true);
    pc_group_free(group);
    return fine;
}

static void sharing_out(void **state)
{
    (void)state;
    for (int stage = 2; stage <= 3; stage++)
        fail_some("ZeRO", share_out, &stage, stage == 3, 2);
}

static bool use(void *unused)
{
    (void)unused;
    pc_classifier *c = pc_classifier_open(model.s, "cpu");
    pc_evaluation e = {0};
    pc_prediction p;
    char *text = NULL, *json = NULL;
    bool fine = c && pc_classifier_evaluate(c, data.s, 3, NULL, &e) == PC_OK &&
                pc_classifier_predict(c, joined(data.s, "train/cat/a00.jpg").s, &p) == PC_OK &&
                pc_classifier_summary(c, &text, &json) == PC_OK;
    pc_text_free(text);
    pc_text_free(json);
    pc_evaluation_free(&e);
    pc_classifier_free(c);
    return fine;
}

static void using_a_network(void **state)
{
    (void)state;
    assert_true(train_afresh("article"));
    fail_each("open, evaluate, predict, summary", use, NULL, false);
    fail_each("the same, all later ones too", use, NULL, true);
}

static pc_module *small_network(void)
{
    return pc_sequential(pc_conv2d(3, 2, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                         pc_linear(18, 4, .activation = PC_ACTIVATION_TANH), pc_dropout(0.5), pc_linear(4, 3));
}

static bool save(void *path)
{
    pc_module *net = small_network();
    pc_optimizer *adam = pc_adam(net);
    pc_keras_options options = {.height = 8,
                                .width = 8,
                                .channels = 3,
                                .head = PC_KERAS_SOFTMAX,
                                .optimizer = adam,
                                .optimizer_state = true,
                                .class_names = (const char *[]){"ant", "bee", "cow"},
                                .class_count = 3};
    bool fine = adam && pc_keras_save(path, net, options) == PC_OK;
    pc_optimizer_free(adam);
    pc_module_free(net);
    return fine;
}

static bool load(void *path)
{
    pc_module *net = pc_keras_load(path, NULL);
    pc_module_free(net);
    return net != NULL;
}

static bool load_optimizer(void *path)
{
    pc_module *net = small_network();
    pc_optimizer *adam = pc_adam(net);
    bool fine = adam && pc_keras_load_optimizer(path, adam) == PC_OK;
    pc_optimizer_free(adam);
    pc_module_free(net);
    return fine;
}

/* One after the other: the last run of each, which fails nowhere, leaves the file to the next. */
static void keras_files(void **state)
{
    (void)state;
    test_path path = joined(root.s, "net.h5");
    for (int later = 0; later < 2; later++) {
        fail_each(later ? "save, all later ones too" : "save", save, path.s, later);
        fail_each(later ? "load, all later ones too" : "load", load, path.s, later);
        fail_each(later ? "optimizer, all later ones too" : "optimizer", load_optimizer, path.s, later);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(training), cmocka_unit_test(going_on),
                                       cmocka_unit_test(sharing_out), cmocka_unit_test(using_a_network),
                                       cmocka_unit_test(keras_files)};
    return cmocka_run_group_tests_name("train.out_of_memory", tests, prepare, tidy);
}
