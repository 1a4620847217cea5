/* Networks of models.h through a whole training: their file, going on, weights to begin with, a frozen part. */
#include "group.h"

#include "device.h"
#include "train/arch.h"

#include <paracord/fit.h>
#include <paracord/models.h>
#include <paracord/train.h>
#include <paracord/weights.h>
#include <string.h>

enum { SIZE = 32, PARTS_MAX = 400 };

static int prepare(void **state)
{
    open_folder(state);
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog", "owl"}, 3, 6);
    return 0;
}

/* What a run said before it began, and after how many batches it stops; 0: never. */
typedef struct listener {
    char said[2048];
    int batches, stop_at;
} listener;

static void started(void *context, const char *text)
{
    snprintf(((listener *)context)->said, sizeof((listener *)context)->said, "%s", text);
}

static bool stop(void *context)
{
    listener *l = context;
    return ++l->batches == l->stop_at;
}

static pc_status train(const char *out, const char *arch, pc_train_options more, listener *l)
{
    const test_path data = joined(root.s, "data"), to = joined(root.s, out);
    const pc_train_callbacks callbacks = {.context = l, .started = started, .stop = stop};
    pc_train_summary summary;
    more.data = data.s, more.out = to.s, more.arch = arch, more.device = test_device_name();
    more.size = SIZE, more.batch = more.batch ? more.batch : 4, more.val_split = 0.3, more.lr = 1e-3;
    more.epochs = more.epochs ? more.epochs : 1;
    more.callbacks = &callbacks;
    const pc_status status = pc_train_folder(more, &summary);
    if (status == PC_OK)
        assert_string_equal(summary.model, strcmp(arch, "mlp") == 0 ? "model.h5" : "model.safetensors");
    return status;
}

static bool is_there(const char *run, const char *name)
{
    return access(joined(joined(root.s, run).s, name).s, F_OK) == 0;
}

static pc_prediction ask(const char *model)
{
    pc_prediction p;
    pc_classifier *c = pc_classifier_open(joined(root.s, model).s, test_device_name());
    assert_not_null_ok(c);
    assert_ok(pc_classifier_predict(c, joined(root.s, "data/owl/a00.jpg").s, &p));
    pc_classifier_free(c);
    p.name = NULL;
    return p;
}

/* --- the file --- */

static void the_file_is_a_classifier(void **state)
{
    (void)state;
    listener l = {.stop_at = 0};
    assert_ok(train("file", "mlp", (pc_train_options){0}, &l));
    assert_true(is_there("file", "model.h5"));
    assert_ok(train("file", "mobilenet_v2", (pc_train_options){.channels = 1}, &l));
    assert_false(is_there("file", "model.h5")); /* of the run before */
    pc_classifier *c = pc_classifier_open(joined(root.s, "file").s, test_device_name());
    assert_not_null_ok(c);
    assert_int_equal(pc_classifier_class_count(c), 3);
    assert_string_equal(pc_classifier_class_name(c, 2), "owl");
    char *text, *json;
    assert_ok(pc_classifier_summary(c, &text, &json));
    assert_non_null(strstr(text, "InvertedResidual"));
    assert_non_null(strstr(text, "takes pictures of 32x32 grey"));
    pc_text_free(text);
    pc_text_free(json);
    pc_evaluation e;
    assert_ok(pc_classifier_evaluate(c, joined(root.s, "data").s, 5, NULL, &e));
    assert_int_equal(e.pictures, 18);
    pc_evaluation_free(&e);
    pc_classifier_free(c);
}

static void what_is_set_is_noted(void **state)
{
    (void)state;
    const test_path file = joined(root.s, "file/model.safetensors");
    const pc_prediction before = ask("file/model.safetensors");
    pc_classifier *c = pc_classifier_open(file.s, "cpu");
    assert_not_null_ok(c);
    assert_ok(pc_classifier_set_class_names(c, (const char *[]){"Katze \xff\xc3", "Hund \"Rex\"", "Eule\n"}, 3));
    assert_ok(pc_classifier_note(c));
    pc_classifier_free(c);
    c = pc_classifier_open(file.s, "cpu");
    assert_not_null_ok(c);
    assert_string_equal(pc_classifier_class_name(c, 0), "Katze \xff\xc3"); /* as folders may be called */
    assert_string_equal(pc_classifier_class_name(c, 1), "Hund \"Rex\"");
    assert_string_equal(pc_classifier_class_name(c, 2), "Eule\n");
    pc_classifier_free(c);
    const pc_prediction after = ask("file/model.safetensors");
    assert_memory_equal(&before.probability, &after.probability, sizeof before.probability);
}

static void weights_alone_are_no_classifier(void **state)
{
    (void)state;
    static const char *const torch[] = {"new.pth", "old.pth", "old4.pth"};
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/torch/%s", PC_TEST_GOLDEN, torch[i]);
        assert_fails(pc_classifier_open(path, "cpu"), PC_ERR_UNSUPPORTED, "--init-from");
    }
    const test_path path = placed(root.s, "alone.safetensors");
    pc_module *net = pc_linear(2, 2);
    assert_ok(pc_weights_save(net, path.s));
    pc_module_free(net);
    assert_fails(pc_classifier_open(path.s, "cpu") != NULL, PC_ERR_UNSUPPORTED, "does not say of which network");
    const pc_weights_note_pair notes[] = {{"paracord", "network resnet18, pictures 32 32 3, classes 2\n{}\n3 cat\n9 d"},
                                          {NULL, NULL}};
    assert_ok(pc_weights_write(path.s, NULL, 0, notes));
    assert_fails(pc_classifier_open(path.s, "cpu") != NULL, PC_ERR_FORMAT, "the names of its classes do not end");
}

/* --- going on --- */

static void goes_on_as_if_it_had_not_stopped(void **state)
{
    (void)state;
    listener whole = {.stop_at = 0}, first = {.stop_at = 5}, second = {.stop_at = 0};
    const pc_train_options o = {.epochs = 2, .keep = "last", .flip = true},
                           on = {.epochs = 2, .keep = "last", .flip = true, .resume = true};
    assert_ok(train("whole", "mobilenet_v2", o, &whole));
    assert_ok(train("parts", "mobilenet_v2", o, &first));
    assert_int_equal(first.batches, 5);
    /* the checkpoint, running statistics too, answers as the network that was saved with it */
    const pc_prediction a = ask("parts/checkpoint"), b = ask("parts/model.safetensors");
    assert_memory_equal(&a.probability, &b.probability, sizeof a.probability);
    assert_ok(train("parts", "mobilenet_v2", on, &second));
    assert_non_null(strstr(second.said, "going on after epoch 1, batch 1"));
    pc_module *left = pc__arch_new("mobilenet_v2", (pc__frame){SIZE, SIZE, 3}, 3, PC_INIT_GLOROT);
    pc_module *right = pc__arch_new("mobilenet_v2", (pc__frame){SIZE, SIZE, 3}, 3, PC_INIT_GLOROT);
    static pc_parameter x[PARTS_MAX], y[PARTS_MAX];
    assert_ok(pc_weights_load(left, joined(root.s, "whole/model.safetensors").s, (pc_weights_options){0}));
    assert_ok(pc_weights_load(right, joined(root.s, "parts/model.safetensors").s, (pc_weights_options){0}));
    const int count = pc_module_state_list(left, x, PARTS_MAX);
    assert_int_equal(pc_module_state_list(right, y, PARTS_MAX), count);
    PC_SCOPE {
        for (int i = 0; i < count; i++)
            assert_int_equal(pc_item(pc_all(pc_eq(x[i].tensor, y[i].tensor))), 1);
    }
    pc_module_free(left);
    pc_module_free(right);
}

/* --- weights to begin with --- */

/* A file as of torchvision's with that many classes. */
static test_path given(const char *name, int classes)
{
    const test_path path = placed(root.s, name);
    pc_seed(11);
    pc_module *net = pc_picture_network("mobilenet_v2", classes, .height = SIZE, .width = SIZE);
    assert_not_null_ok(net);
    assert_ok(pc_weights_save(net, path.s));
    pc_module_free(net);
    return path;
}

/* How many tensors of the run's network are those of the file. */
static int kept(const char *run, const char *file)
{
    int same = 0;
    pc_weights *a = pc_weights_open(joined(joined(root.s, run).s, "model.safetensors").s), *b = pc_weights_open(file);
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    for (int i = 0; i < pc_weights_count(a); i++)
        PC_SCOPE {
            pc_weights_entry entry, other;
            assert_ok(pc_weights_query(a, i, &entry));
            assert_ok(pc_weights_find(b, entry.name, &other));
            if (entry.shape.ndim != other.shape.ndim || (entry.shape.ndim && entry.shape.dim[0] != other.shape.dim[0]))
                break;
            pc_tensor *x = pc_weights_read(a, entry.name, PC_DEVICE_CPU),
                      *y = pc_weights_read(b, entry.name, PC_DEVICE_CPU);
            same += pc_item(pc_all(pc_eq(x, y))) == 1;
        }
    pc_weights_free(a);
    pc_weights_free(b);
    return same;
}

/* The tensors of a file again, each once with each of these in front. */
static test_path given_again(const char *name, const char *file, const char *const *prefixes, int count)
{
    enum { MOST = 640 };
    static pc_parameter list[MOST];
    const test_path path = placed(root.s, name);
    pc_weights *whole = pc_weights_open(file);
    assert_not_null_ok(whole);
    const int each = pc_weights_count(whole);
    assert_true(each * count <= MOST);
    PC_SCOPE {
        for (int i = 0; i < each * count; i++) {
            pc_weights_entry entry;
            assert_ok(pc_weights_query(whole, i % each, &entry));
            snprintf(list[i].name, sizeof list[i].name, "%s%s", prefixes[i / each], entry.name);
            list[i].tensor = pc_weights_read(whole, entry.name, PC_DEVICE_CPU);
        }
        assert_ok(pc_weights_write(path.s, list, each * count, NULL));
    }
    pc_weights_free(whole);
    return path;
}

/* As DataParallel names them, with a last layer that fits and one that does not. */
static void weights_are_found_in_a_part_of_a_file(void **state)
{
    (void)state;
    static const char *const names[] = {"module.", "ema.module."};
    listener l = {.stop_at = 0};
    const test_path same = given("same.safetensors", 3), more = given("more.safetensors", 7),
                    in = given_again("in.safetensors", same.s, names, 1),
                    more_in = given_again("more-in.safetensors", more.s, names, 1),
                    two = given_again("two.safetensors", same.s, names, 2);
    assert_ok(train("in", "mobilenet_v2", (pc_train_options){.init_from = in.s, .freeze = "backbone"}, &l));
    assert_non_null(strstr(l.said, "in.safetensors, those of \"module\""));
    assert_null(strstr(l.said, "but for the last layer"));
    assert_int_equal(kept("in", same.s), 314 - 2);
    assert_ok(train("more-in", "mobilenet_v2", (pc_train_options){.init_from = more_in.s, .freeze = "backbone"}, &l));
    assert_non_null(strstr(l.said, "but for the last layer, classifier.1: it has 7 outputs there and 3 here"));
    assert_int_equal(kept("more-in", more.s), 314 - 2);
    assert_fails(train("two", "mobilenet_v2", (pc_train_options){.init_from = two.s}, &l), PC_ERR_NOT_FOUND,
                 "has several networks, such as that of \"ema.module.features.0.0.weight\"");
}

static void a_frozen_backbone_stays(void **state)
{
    (void)state;
    listener l = {.stop_at = 0};
    const test_path same = given("same.safetensors", 3), more = given("more.safetensors", 7);
    assert_ok(train("frozen", "mobilenet_v2", (pc_train_options){.init_from = same.s, .freeze = "backbone"}, &l));
    assert_non_null(strstr(l.said, "all but classifier.1 frozen"));
    assert_non_null(strstr(l.said, "\nweights from "));
    assert_null(strstr(l.said, "but for the last layer"));
    assert_int_equal(kept("frozen", same.s), 314 - 2); /* running statistics, too */
    assert_ok(train("other", "mobilenet_v2", (pc_train_options){.init_from = more.s, .freeze = "backbone"}, &l));
    assert_non_null(strstr(l.said, "but for the last layer, classifier.1: it has 7 outputs there and 3 here"));
    assert_int_equal(kept("other", more.s), 314 - 2);
    assert_ok(train("tuned", "mobilenet_v2", (pc_train_options){.init_from = more.s}, &l));
    assert_true(kept("tuned", more.s) < 20);
    /* where there is no checkpoint yet */
    assert_ok(train("late", "mobilenet_v2",
                    (pc_train_options){.init_from = same.s, .freeze = "backbone", .resume = true}, &l));
    assert_int_equal(kept("late", same.s), 314 - 2);
    assert_fails(train("late", "mobilenet_v2", (pc_train_options){.init_from = same.s, .resume = true}, &l),
                 PC_ERR_STATE, "--freeze backbone");
}

static void what_cannot_begin_is_told(void **state)
{
    (void)state;
    listener l = {.stop_at = 0};
    const test_path same = given("same.safetensors", 3), none = placed(root.s, "none");
    assert_fails(train("no", "mobilenet_v2", (pc_train_options){.freeze = "backbone"}, &l), PC_ERR_ARGUMENT,
                 "give weights that were trained");
    assert_fails(train("no", "mobilenet_v2", (pc_train_options){.freeze = "all"}, &l), PC_ERR_ARGUMENT,
                 "there is no way to freeze \"all\"");
    assert_fails(train("no", "mobilenet_v2", (pc_train_options){.init_from = none.s}, &l), PC_ERR_FILE, "none");
    assert_fails(train("no", "resnet18", (pc_train_options){.init_from = same.s}, &l), PC_ERR_NOT_FOUND,
                 "has no tensor \"conv1.weight\"");
    assert_fails(train("no", "alexnet", (pc_train_options){0}, &l), PC_ERR_ARGUMENT, "mobilenet_v2");
    assert_fails(train("no", "vit_tiny", (pc_train_options){.height = 30, .width = 32}, &l), PC_ERR_SHAPE,
                 "multiples of 16");
    assert_fails(
        train("no", "mobilenet_v2", (pc_train_options){.batch = 14}, &l), PC_ERR_SHAPE,
        "the last batch of 15 pictures by 14 is one picture, which the norms of mobilenet_v2 cannot go by at 32 x "
        "32 pixels: choose another --batch, or a larger --size (64x64 will do)");
    assert_false(is_there("no", "metrics.jsonl"));
}

/* Norms of numbers, of means over places, and of places: of one picture the first two have one number a channel at any size. */
static void one_picture_in_a_batch(void **state)
{
    (void)state;
    static const char
        flat[] = "{\"network\": [{\"layer\": \"flatten\"}, {\"layer\": \"linear\", \"out\": 4}, "
                 "{\"layer\": \"batch_norm\"}, {\"layer\": \"linear\", \"out\": \"classes\"}]}",
        means[] = "{\"network\": [{\"layer\": \"conv\", \"out\": 4, \"kernel\": 3, \"stride\": 4}, "
                  "{\"layer\": \"global_avg_pool\"}, {\"layer\": \"batch_norm\"}, {\"layer\": \"flatten\"}, "
                  "{\"layer\": \"linear\", \"out\": \"classes\"}]}",
        places[] = "{\"network\": [{\"layer\": \"conv\", \"out\": 4, \"kernel\": 3}, {\"layer\": \"batch_norm\"}, "
                   "{\"layer\": \"flatten\"}, {\"layer\": \"linear\", \"out\": \"classes\"}]}";
    listener l = {.stop_at = 0};
    assert_fails(train("flat", flat, (pc_train_options){.batch = 14}, &l), PC_ERR_SHAPE,
                 "the last batch of 15 pictures by 14 is one picture");
    assert_true(train("means", means, (pc_train_options){.batch = 14}, &l) == PC_ERR_SHAPE);
    assert_null(strstr(pc_error_last()->message, "--size"));
    pc_error_clear();
    assert_fails(train("parts", means, (pc_train_options){.batch = 5, .accumulate = 3}, &l), PC_ERR_SHAPE,
                 "in 3 parts some part is one picture");
    assert_ok(train("parts", means, (pc_train_options){.batch = 5, .accumulate = 2}, &l));
    assert_ok(train("places", places, (pc_train_options){.batch = 14}, &l));
    assert_ok(train("places", places, (pc_train_options){.batch = 5, .accumulate = 5}, &l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_a_classifier),
        cmocka_unit_test(what_is_set_is_noted),
        cmocka_unit_test(weights_alone_are_no_classifier),
        cmocka_unit_test(goes_on_as_if_it_had_not_stopped),
        cmocka_unit_test(weights_are_found_in_a_part_of_a_file),
        cmocka_unit_test(a_frozen_backbone_stays),
        cmocka_unit_test(what_cannot_begin_is_told),
        cmocka_unit_test(one_picture_in_a_batch),
    };
    return cmocka_run_group_tests_name("train.networks", tests, prepare, tidy);
}
