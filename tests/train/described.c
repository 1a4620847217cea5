/* Networks that a JSON file describes: what they are made of, what is wrong with a description, and a training of one. */
#include "group.h"

#include "device.h"
#include "faults.h"
#include "train/described.h"

#include <math.h>
#include <paracord/models.h>
#include <paracord/train.h>
#include <paracord/weights.h>
#include <string.h>

static const pc__frame frame = {16, 20, 3};

static const char all[] =
    "{\"network\": [\n"
    " {\"layer\": \"conv\", \"out\": 8, \"kernel\": 3, \"padding\": \"same\", \"bias\": false, \"name\": \"stem\"},\n"
    " {\"layer\": \"batch_norm\"}, {\"layer\": \"relu\"},\n"
    " {\"layer\": \"residual\", \"activation\": \"silu\",\n"
    "  \"body\": [{\"kernel\": 3, \"out\": 12, \"layer\": \"conv\", \"stride\": 2, \"padding\": 1, \"groups\": 1},\n"
    "    {\"layer\": \"gelu\"}, {\"layer\": \"conv\", \"out\": 12, \"kernel\": 3, \"padding\": \"same\", \"groups\": "
    "4}],\n"
    "  \"shortcut\": [{\"layer\": \"avg_pool\", \"kernel\": 2}, {\"layer\": \"conv\", \"out\": 12, \"kernel\": 1}]},\n"
    " {\"layer\": \"residual\", \"body\": [{\"layer\": \"tanh\"}]},\n"
    " {\"layer\": \"sequence\", \"name\": \"end\", \"body\": [\n"
    "   {\"layer\": \"max_pool\", \"kernel\": 3, \"stride\": 2, \"padding\": 1},\n"
    "   {\"layer\": \"sigmoid\"}, {\"layer\": \"global_avg_pool\"}, {\"layer\": \"flatten\"}]},\n"
    " {\"layer\": \"batch_norm\"}, {\"layer\": \"dropout\", \"p\": 0.25},\n"
    " {\"layer\": \"linear\", \"out\": 6, \"activation\": \"tanh\"},\n"
    " {\"layer\": \"linear\", \"out\": \"classes\", \"name\": \"head\"}]}";

static void every_layer_is_made(void **state)
{
    (void)state;
    static const char *const names[] = {"stem.weight",         "1.bias",   "3.body.0.weight", "3.body.2.bias",
                                        "3.shortcut.1.weight", "6.weight", "8.bias",          "head.bias"};
    pc__arch_size size;
    pc_module *net = pc__described_new(all, frame, 5, PC_INIT_HE);
    assert_not_null_ok(net);
    assert_ok(pc__described_measure(all, frame, 5, &size));
    assert_true(size.parameters == (double)pc_module_parameter_elements(net));
    assert_true(size.activations > 8 * 16 * 20 * 4);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_not_null_ok(pc_module_parameter(net, names[i]));
    pc_module_set_training(net, false);
    PC_SCOPE {
        pc_tensor *y = pc_forward(net, pc_ones(PC_SHAPE(2, 3, 16, 20), PC_F32, PC_DEVICE_CPU));
        assert_not_null_ok(y);
        assert_int_equal(pc_tensor_size(y, 1), 5);
    }
    pc_module_free(net);
    assert_no_leak();
}

/* The same layers by hand, from the same seed. */
static void they_are_the_layers_of_the_library(void **state)
{
    (void)state;
    static const char text[] =
        "{\"network\": [{\"layer\": \"conv\", \"out\": 4, \"kernel\": 3, \"stride\": 2, \"activation\": \"relu\"},"
        "{\"layer\": \"max_pool\", \"kernel\": 2}, {\"layer\": \"flatten\"},"
        "{\"layer\": \"linear\", \"out\": \"classes\"}]}";
    pc_seed(5);
    pc_module *described = pc__described_new(text, frame, 3, PC_INIT_GLOROT);
    pc_seed(5);
    pc_module *made =
        pc_sequential(pc_conv2d(3, 4, 3, .stride = 2, .activation = PC_ACTIVATION_RELU, .init = PC_INIT_GLOROT),
                      pc_max_pool2d(2), pc_flatten(), pc_linear(4 * 3 * 4, 3, .init = PC_INIT_GLOROT));
    assert_not_null_ok(described);
    assert_not_null_ok(made);
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(2, 3, 16, 20), PC_F32, PC_DEVICE_CPU);
        assert_true(pc_item(pc_all(pc_eq(pc_forward(described, x), pc_forward(made, x)))) == 1);
    }
    pc_module_free(described);
    pc_module_free(made);
}

#define NETWORK(layers) "{\"network\": [\n" layers "\n]}"
#define CONV "{\"layer\": \"conv\", \"out\": 4, \"kernel\": 3}"
#define END ", {\"layer\": \"flatten\"}, {\"layer\": \"linear\", \"out\": \"classes\"}"

static void what_is_wrong_has_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"{}", "line 1: this is not the JSON"},
        {"{\"network\": []}", "line 1: a list without layers"},
        {"{\"net\": []}", "line 1: there is no key \"net\"; it is {\"network\": [...]}"},
        {NETWORK("{\"layer\": \"conv\", \"kernal\": 3}"), "line 2: there is no key \"kernal\""},
        {NETWORK("{\"layer\": \"conv\", \"out\": 3}"), "line 2: a layer \"conv\" needs \"kernel\""},
        {NETWORK("{\"layer\": \"relu\", \"out\": 3}"), "line 2: a layer \"relu\" has no \"out\""},
        {NETWORK("{\"out\": 3}"), "line 2: an object without \"layer\""},
        {NETWORK("{\"layer\": \"lstm\"}"), "line 2: there is no layer \"lstm\"; there are conv, linear, "},
        {NETWORK("{\"layer\": \"linear\", \"out\": 3, \"out\": 4}"), "line 2: \"out\" is there twice"},
        {NETWORK("{\"layer\": \"linear\", \"out\": \"all\"}"), "line 2: \"out\" is a number, or \"classes\""},
        {NETWORK("{\"layer\": \"conv\", \"out\": 0}"), "line 2: \"out\" is 0; it must be 1 to"},
        {NETWORK("{\"layer\": \"conv\", \"out\": -1}"), "line 2: this is not the JSON"},
        {NETWORK(CONV ",\n" CONV ",\n{\"layer\": \"conv\", \"out\": 4, \"kernel\": 13}" END),
         "line 4: 12 x 16 places are too few for a layer \"conv\" of kernel 13"},
        {NETWORK("{\"layer\": \"linear\", \"out\": 3}"), "line 2: a linear layer takes rows of numbers"},
        {NETWORK("{\"layer\": \"flatten\"}, " CONV),
         "line 2: a layer \"conv\" takes pictures, and comes behind flatten"},
        {NETWORK("{\"layer\": \"residual\",\n\"body\": [" CONV "]}" END),
         "line 2: what a residual's body gives, 4 channels of"},
        {NETWORK("{\"layer\": \"conv\", \"out\": 4, \"kernel\": 3, \"groups\": 2}"),
         "line 2: 2 groups do not share 3 channels"},
        {NETWORK("{\"layer\": \"conv\", \"out\": 4, \"kernel\": 2, \"padding\": \"same\"}"),
         "\"same\" is for odd kernels"},
        {NETWORK("{\"layer\": \"max_pool\", \"kernel\": 2, \"padding\": 2}"),
         "the \"padding\" of pooling is 0 to half"},
        {NETWORK("{\"layer\": \"dropout\", \"p\": 2}"), "the \"p\" of dropout is 0 to 1"},
        {NETWORK("{\"layer\": \"conv\", \"activation\": \"cos\"}"), "line 2: there is no activation \"cos\""},
        {NETWORK("{\"name\": \"a.b\", \"layer\": \"relu\"}" END), "is no name for a part of a module"},
        {NETWORK("{\"layer\": \"relu\"}"), "ends in 960 numbers for each picture, and there must be 5"},
        {NETWORK(CONV END) " x", "line 3: this is not the JSON"},
        {NETWORK(CONV " " CONV), "line 2: this is not the JSON"},
        {NETWORK("{\"layer\": \"sequence\", \"body\": [" CONV ", {\"layer\": \"sequence\"}]}"), "needs \"body\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pc_module *net = pc__described_new(wrong[i].text, frame, 5, PC_INIT_TORCH);
        if (net || !strstr(pc_error_last()->message, wrong[i].words))
            fail_msg("description %zu: %s", i, net ? "made" : pc_error_last()->message);
        pc_error_clear();
    }
    char deep[4096] = "{\"network\": [";
    for (int i = 0; i < 40; i++)
        strcat(deep, "{\"layer\": \"sequence\", \"body\": [");
    assert_null(pc__described_new(deep, frame, 5, PC_INIT_TORCH));
    assert_non_null(strstr(pc_error_last()->message, "more than 32 lists inside each other"));
    pc_error_clear();
    assert_no_leak();
}

static bool describe(void *unused)
{
    (void)unused;
    pc_module *net = pc__described_new(all, frame, 5, PC_INIT_TORCH);
    pc_module_free(net);
    return net != NULL;
}

static bool name(void *network)
{
    pc_module *net = pc_picture_network(network, 3, .height = 32, .width = 32);
    pc_module_free(net);
    return net != NULL;
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    fail_each("describe", describe, NULL, false);
    fail_some("mobilenet_v2", name, "mobilenet_v2", false, 17); /* its blocks are alike, its weights dear */
}

/* --- a training --- */

static int batches, stop_at;

static bool stop(void *context)
{
    (void)context;
    return ++batches == stop_at;
}

static pc_status train(const char *out, const char *description, pc_train_options more)
{
    const test_path data = joined(root.s, "data"), to = joined(root.s, out), file = placed(root.s, "net.json");
    const pc_train_callbacks callbacks = {.stop = stop};
    pc_train_summary summary;
    FILE *f = fopen(file.s, "wb");
    assert_non_null(f);
    fputs(description, f);
    fclose(f);
    batches = 0;
    more.data = data.s, more.out = to.s, more.arch = file.s, more.device = test_device_name();
    more.size = 16, more.batch = 4, more.epochs = 2, more.val_split = 0.3, more.keep = "last";
    more.callbacks = &callbacks;
    const pc_status status = pc_train_folder(more, &summary);
    if (status == PC_OK)
        assert_string_equal(summary.model, "model.safetensors");
    return status;
}

static double probability(const char *model)
{
    pc_prediction p;
    pc_classifier *c = pc_classifier_open(joined(root.s, model).s, test_device_name());
    assert_not_null_ok(c);
    assert_string_equal(pc_classifier_class_name(c, 2), "owl");
    assert_ok(pc_classifier_predict(c, joined(root.s, "data/owl/a00.jpg").s, &p));
    pc_classifier_free(c);
    return p.probability;
}

static double same(const char *one, const char *other, const char *name)
{
    double share = -1;
    pc_weights *a = pc_weights_open(joined(joined(root.s, one).s, "model.safetensors").s);
    pc_weights *b = pc_weights_open(joined(joined(root.s, other).s, "model.safetensors").s);
    PC_SCOPE {
        pc_tensor *x = pc_weights_read(a, name, PC_DEVICE_CPU), *y = pc_weights_read(b, name, PC_DEVICE_CPU);
        share = pc_item(pc_all(pc_eq(x, y)));
    }
    pc_weights_free(a);
    pc_weights_free(b);
    return share;
}

static void is_trained_and_used(void **state)
{
    (void)state;
    stop_at = 0;
    assert_ok(train("whole", all, (pc_train_options){0}));
    stop_at = 5;
    assert_ok(train("parts", all, (pc_train_options){0}));
    assert_true(probability("parts/checkpoint") == probability("parts/model.safetensors"));
    stop_at = 0;
    assert_fails(train("parts", NETWORK(CONV END), (pc_train_options){.resume = true}), PC_ERR_STATE,
                 "the description ");
    assert_ok(train("parts", all, (pc_train_options){.resume = true}));
    assert_true(probability("parts") == probability("whole"));
    const test_path weights = joined(root.s, "whole/model.safetensors");
    assert_ok(train("frozen", all, (pc_train_options){.init_from = weights.s, .freeze = "backbone"}));
    assert_true(same("whole", "frozen", "stem.weight") == 1);
    assert_true(same("whole", "frozen", "head.weight") == 0);
    assert_fails(train("no", "[]", (pc_train_options){0}), PC_ERR_FORMAT, "net.json describes no network");
    assert_fails(train("no", NETWORK(CONV), (pc_train_options){0}), PC_ERR_SHAPE, "for the classes");
}

static int prepare(void **state)
{
    open_folder(state);
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog", "owl"}, 3, 6);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_runs_out), /* while nothing else is alive */
        cmocka_unit_test(every_layer_is_made),        cmocka_unit_test(they_are_the_layers_of_the_library),
        cmocka_unit_test(what_is_wrong_has_its_line), cmocka_unit_test(is_trained_and_used),
    };
    return cmocka_run_group_tests_name("train.described", tests, prepare, tidy);
}
