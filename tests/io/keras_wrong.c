/* Keras files that are wrong, and models that cannot be written: one line of error each, and never a crash. */
#include "support.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_support.h"

#include <paracord/memory.h>

/* Damaged files make HDF5 ask for absurd sizes, where malloc says no and so should the sanitizer's; and HDF5 loses some
 * blocks of its own over them. */
#define SANITIZER_HOOK __attribute__((visibility("default"))) const char *
SANITIZER_HOOK __asan_default_options(void);
SANITIZER_HOOK __asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

SANITIZER_HOOK __lsan_default_suppressions(void);
SANITIZER_HOOK __lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    pc__keras_model model;
    assert_ok(pc__keras_read(golden("keras3_adam.h5"), &model));
    const char *out = in_folder("refused.h5");
    pc__keras_layer *conv = &model.layers[0];
    conv->weights[0].shape[2] = 5;
    assert_fails(pc__keras_write(out, &model), PC_ERR_SHAPE,
                 "the kernel of layer 'conv2d' has the shape (3, 3, 5, 2) and needs (3, 3, 2, 2)");
    conv->weights[0].shape[2] = 2;
    snprintf(conv->name, sizeof conv->name, "dense");
    assert_fails(pc__keras_write(out, &model), PC_ERR_ARGUMENT, "two layers have the name 'dense'");
    snprintf(conv->name, sizeof conv->name, "conv2d");
    conv->window[0] = 9, conv->same = false;
    assert_fails(pc__keras_write(out, &model), PC_ERR_SHAPE, "needs at least 9 rows and gets 8");
    conv->window[0] = 3, conv->same = true;
    model.training.optimizer = PC__KERAS_OTHER_OPTIMIZER;
    assert_fails(pc__keras_write(out, &model), PC_ERR_UNSUPPORTED, "is none of Adam, AdamW, SGD, RMSprop, Lion");
    model.training.optimizer = PC__KERAS_ADAM;
    float *values = conv->weights[1].slot[1];
    conv->weights[1].slot[1] = NULL;
    assert_fails(pc__keras_write(out, &model), PC_ERR_ARGUMENT, "lacks a slot of the optimizer");
    conv->weights[1].slot[1] = values;
    assert_fails(pc__keras_write(in_folder("no/such/folder.h5"), &model), PC_ERR_FILE, "no/such/folder.h5");
    assert_int_equal(access(out, F_OK), -1);
    pc__keras_free(&model);
}

/* A copy of a golden file with another text as one attribute; NULL takes it away. */
static const char *with_text(const char *file, const char *attribute, const char *text)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(golden(file), &bytes, &n));
    const char *path = in_folder("wrong.h5");
    assert_ok(pc__file_write(path, bytes, n));
    pc__free(bytes);
    hid_t id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(id >= 0 && H5Adelete(id, attribute) >= 0);
    if (text) {
        hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
        H5Tset_size(type, strlen(text) + 1);
        hid_t made = H5Acreate2(id, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0 && H5Awrite(made, type, text) >= 0);
        H5Aclose(made), H5Sclose(space), H5Tclose(type);
    }
    H5Fclose(id);
    return path;
}

#define SEQUENTIAL(layers) "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" layers "]}}"
#define LAYER(class, fields) "{\"class_name\": \"" class "\", \"config\": {\"name\": \"it\"" fields "}}"
#define INPUT(shape)                                                                                                   \
    "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"in\", \"batch_shape\": [null" shape "]}}"
#define CALLED(class, name, fields, from)                                                                              \
    "{\"class_name\": \"" class "\", \"name\": \"" name "\", \"config\": {\"name\": \"" name "\"" fields               \
                                "}, \"inbound_nodes\": [[" from "]]}"
#define FUNCTIONAL(layers, output)                                                                                     \
    "{\"class_name\": \"Functional\", \"config\": {\"layers\": [{\"class_name\": \"InputLayer\", \"name\": \"in\", "   \
    "\"config\": {\"name\": \"in\", \"batch_shape\": [null, 8, 8, 3]}, \"inbound_nodes\": []}, " layers                \
    "], \"input_layers\": [\"in\", 0, 0], \"output_layers\": [\"" output "\", 0, 0]}}"
#define CONV ", \"filters\": 2, \"kernel_size\": 3"

static const struct {
    const char *config;
    pc_status status;
    const char *words;
} wrong_configs[] = {
    {NULL, PC_ERR_FORMAT, "has no model_config"},
    {"", PC_ERR_FORMAT, "not valid JSON"},
    {"{\"class_name\": \"Sequ", PC_ERR_FORMAT, "not valid JSON"},
    {"[]", PC_ERR_UNSUPPORTED, "of class (none)"},
    {"{\"class_name\": \"Custom\", \"config\": {}}", PC_ERR_UNSUPPORTED, "of class Custom"},
    {"{\"class_name\": \"Sequential\", \"config\": {}}", PC_ERR_FORMAT, "no list of"},
    {"{\"class_name\": \"Functional\", \"config\": {\"layers\": []}}", PC_ERR_FORMAT, "not one of its input_layers"},
    {SEQUENTIAL("7"), PC_ERR_FORMAT, "layer 0 in model_config has no class_name"},
    {SEQUENTIAL("{\"class_name\": \"Dense\", \"config\": {}}"), PC_ERR_FORMAT, "layer 0 has no name"},
    {SEQUENTIAL(LAYER("LSTM", "")), PC_ERR_UNSUPPORTED, "layer 'it' of class LSTM is not supported"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," INPUT(", 8")), PC_ERR_UNSUPPORTED, "second input"},
    {SEQUENTIAL(INPUT(", 8, 8, 2, 2, 2")), PC_ERR_UNSUPPORTED, "5 dimensions"},
    {SEQUENTIAL(INPUT(", 8, -8, 2")), PC_ERR_FORMAT, "whole numbers"},
    {SEQUENTIAL(INPUT(", 8, 1e300, 2")), PC_ERR_FORMAT, "whole numbers"},
    {SEQUENTIAL(LAYER("Dense", "")), PC_ERR_FORMAT, "layer 'it' needs a whole number from 1 to 16777216 as units"},
    {SEQUENTIAL(LAYER("Dense", ", \"units\": 1.5")), PC_ERR_FORMAT, "as units"},
    {SEQUENTIAL(LAYER("Dense", ", \"units\": 2e9")), PC_ERR_FORMAT, "as units"},
    {SEQUENTIAL(LAYER("Dense", ", \"units\": 2, \"use_bias\": 1")), PC_ERR_FORMAT, "true or false as use_bias"},
    {SEQUENTIAL(LAYER("Dense", ", \"units\": 2, \"activation\": \"my_own\"")), PC_ERR_UNSUPPORTED,
     "activation 'my_own', which is not supported"},
    {SEQUENTIAL(LAYER("Dense", ", \"units\": 2, \"activation\": 7")), PC_ERR_UNSUPPORTED, "activation '?'"},
    {SEQUENTIAL(INPUT(", 8, 2") "," LAYER("Conv2D", CONV)), PC_ERR_UNSUPPORTED, "gets 2 dimensions instead of 3"},
    {SEQUENTIAL(INPUT(", 2, 8, 2") "," LAYER("Conv2D", CONV)), PC_ERR_SHAPE, "at least 3 rows and gets 2"},
    {SEQUENTIAL(LAYER("Conv2D", CONV ", \"data_format\": \"channels_first\"")), PC_ERR_UNSUPPORTED, "channels_first"},
    {SEQUENTIAL(LAYER("Conv2D", CONV ", \"dilation_rate\": [2, 2000]")), PC_ERR_UNSUPPORTED, "dilation_rate"},
    {SEQUENTIAL(INPUT(", 8, 8, 3") "," LAYER("Conv2D", CONV ", \"groups\": 2")), PC_ERR_FORMAT, "has 2 groups"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Cropping2D", ", \"cropping\": 4")), PC_ERR_SHAPE, "leaves nothing"},
    {SEQUENTIAL(LAYER("ZeroPadding2D", ", \"padding\": [1, 2, 3]")), PC_ERR_FORMAT, "two pairs"},
    {SEQUENTIAL(LAYER("UpSampling2D", ", \"interpolation\": \"bilinear\"")), PC_ERR_UNSUPPORTED, "bilinear"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Reshape", ", \"target_shape\": [5, -1]")), PC_ERR_SHAPE, "target shape"},
    {SEQUENTIAL(LAYER("Reshape", ", \"target_shape\": [-1, -1]")), PC_ERR_UNSUPPORTED, "target_shape"},
    {SEQUENTIAL(LAYER("Permute", ", \"dims\": [1, 1]")), PC_ERR_FORMAT, "no order"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("BatchNormalization", ", \"axis\": 1")), PC_ERR_UNSUPPORTED, "axis 1"},
    {SEQUENTIAL(LAYER("BatchNormalization", ", \"renorm\": true")), PC_ERR_UNSUPPORTED, "renorm"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Add", "")), PC_ERR_FORMAT, "at least two inputs"},
    {FUNCTIONAL(CALLED("Add", "a", "", "[\"in\", 0, 0, {}], [\"b\", 0, 0, {}]"), "a"), PC_ERR_FORMAT, "'a'"},
    {FUNCTIONAL(CALLED("Conv2D", "a", CONV, "[\"in\", 0, 0, {}]") "," CALLED("Add", "b", "",
                                                                             "[\"in\", 0, 0, {}], [\"a\", 0, 0, {}]"),
                "b"),
     PC_ERR_SHAPE, "joins sizes"},
    {FUNCTIONAL(CALLED("Flatten", "a", "", "[\"in\", 0, 1, {}]"), "a"), PC_ERR_FORMAT, "'a'"},
    {FUNCTIONAL(CALLED("Flatten", "a", "", "[\"in\", 0, 0, [1]]"), "a"), PC_ERR_UNSUPPORTED, "more than tensors"},
    {FUNCTIONAL(CALLED("TrueDivide", "a", "", "[\"in\", 0, 0, {\"y\": 0}]"), "a"), PC_ERR_UNSUPPORTED, "number"},
    {FUNCTIONAL(CALLED("Activation", "a", ", \"activation\": \"relu\"", "[\"in\", 0, 0, {\"what\": 1}]"), "a"),
     PC_ERR_UNSUPPORTED, "more than tensors"},
    {SEQUENTIAL(LAYER("Conv2D", CONV ", \"strides\": [1]")), PC_ERR_FORMAT, "two whole numbers"},
    {SEQUENTIAL(LAYER("Conv2D", CONV ", \"strides\": [0, 1]")), PC_ERR_FORMAT, "two whole numbers"},
    {SEQUENTIAL(LAYER("Conv2D", CONV ", \"padding\": \"causal\"")), PC_ERR_UNSUPPORTED, "padding"},
    {SEQUENTIAL(LAYER("Dropout", ", \"rate\": 1.5")), PC_ERR_FORMAT, "as rate"},
    {SEQUENTIAL(LAYER("ReLU", ", \"max_value\": -6")), PC_ERR_UNSUPPORTED, "max_value"},
    {SEQUENTIAL(LAYER("Softmax", ", \"axis\": 1")), PC_ERR_UNSUPPORTED, "axis"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Rescaling", ", \"scale\": [1, 2, 3]")), PC_ERR_SHAPE,
     "has 3 numbers as scale for 2"},
    {SEQUENTIAL(LAYER("Rescaling", ", \"scale\": [1, \"2\"]")), PC_ERR_UNSUPPORTED, "no numbers as scale"},
    {SEQUENTIAL(LAYER("Rescaling", ", \"scale\": [1, 2], \"offset\": [1, 2, 3]")), PC_ERR_FORMAT,
     "do not fit each other"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Conv2D", CONV)), PC_ERR_FORMAT,
     "weights for a layer 'dense' that model_config does not have"},
    {SEQUENTIAL(INPUT(", 8, 8, 4") "," LAYER("Conv2D", CONV)), PC_ERR_FORMAT,
     "the kernel of layer 'it' has the shape (3, 3, 2, 2), but the model needs (3, 3, 4, 2)"},
    {SEQUENTIAL(INPUT(", 8, 8, 2") "," LAYER("Conv2D", CONV ", \"use_bias\": false")), PC_ERR_FORMAT,
     "layer 'it' needs 1 weights, but the file has 2"},
    {SEQUENTIAL(INPUT(", 2") "," LAYER("Dense", ", \"units\": 2")), PC_ERR_FORMAT,
     "has the shape (3, 3, 2, 2), but the model needs (2, 2)"},
};

static void wrong_descriptions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_configs / sizeof *wrong_configs; i++) {
        pc__keras_model model;
        const char *path = with_text("keras3_adam.h5", "model_config", wrong_configs[i].config);
        assert_fails(pc__keras_read(path, &model), wrong_configs[i].status, wrong_configs[i].words);
        assert_fails(pc__keras_read(path, &model), wrong_configs[i].status, "wrong.h5");
        assert_null(model.layers);
    }
}

static void deep_json_is_refused(void **state)
{
    (void)state;
    pc__keras_model model;
    enum { DEPTH = 30000 };
    char *deep = pc__alloc(DEPTH + 1);
    memset(deep, '[', DEPTH);
    deep[DEPTH] = 0;
    assert_fails(pc__keras_read(with_text("keras3_adam.h5", "model_config", deep), &model), PC_ERR_FORMAT,
                 "not valid JSON");
    pc__free(deep);
}

static void take_warning(void *context, pc_log_level level, const char *line)
{
    if (level == PC_LOG_WARNING)
        snprintf(context, 256, "%s", line);
}

static void training_that_is_odd(void **state)
{
    (void)state;
    pc__keras_model model;
    assert_fails(pc__keras_read(with_text("keras3_adam.h5", "training_config", "{"), &model), PC_ERR_FORMAT,
                 "training_config is not valid JSON");
    assert_ok(pc__keras_read(with_text("keras3_adam.h5", "training_config", NULL), &model));
    assert_int_equal(model.training.optimizer, PC__KERAS_NO_OPTIMIZER);
    pc__keras_free(&model);
    assert_ok(
        pc__keras_read(with_text("keras3_adam.h5", "training_config",
                                 "{\"loss\": [\"mse\"], \"optimizer_config\": {\"class_name\": \"keras>Adagrad\", "
                                 "\"config\": {\"learning_rate\": {\"class_name\": \"S\"}}}}"),
                       &model));
    assert_int_equal(model.training.optimizer, PC__KERAS_OTHER_OPTIMIZER);
    assert_string_equal(model.training.optimizer_class, "Adagrad");
    assert_string_equal(model.training.loss, "mean_squared_error");
    assert_true(model.training.learning_rate != model.training.learning_rate);
    pc__keras_free(&model);

    char warning[256] = "";
    pc_log_set(take_warning, warning, PC_LOG_WARNING);
    assert_ok(pc__keras_read(with_text("keras3_adam.h5", "training_config",
                                       "{\"optimizer_config\": {\"class_name\": \"SGD\", \"config\": {}}}"),
                             &model));
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
    assert_false(model.training.has_state);
    assert_null(model.layers[0].weights[0].slot[0]);
    assert_non_null(strstr(warning, "the optimizer's state does not fit"));
    pc__keras_free(&model);
}

/* A copy of a golden file after a change made with HDF5. */
static const char *changed(void (*change)(hid_t file))
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(golden("keras3_adam.h5"), &bytes, &n));
    const char *path = in_folder("wrong.h5");
    assert_ok(pc__file_write(path, bytes, n));
    pc__free(bytes);
    hid_t id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(id >= 0);
    change(id);
    H5Fclose(id);
    return path;
}

#define KERNEL "model_weights/conv2d/tiny/conv2d/kernel"

static void no_weights(hid_t file)
{
    H5Ldelete(file, "model_weights", H5P_DEFAULT);
}

static void no_layer(hid_t file)
{
    H5Ldelete(file, "model_weights/dense", H5P_DEFAULT);
}

static void no_kernel(hid_t file)
{
    H5Ldelete(file, KERNEL, H5P_DEFAULT);
}

static void no_names(hid_t file)
{
    H5Adelete_by_name(file, "model_weights", "layer_names", H5P_DEFAULT);
}

static void numbers_for_names(hid_t file)
{
    no_names(file);
    hid_t group = H5Gopen2(file, "model_weights", H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(group, "layer_names", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space), H5Gclose(group);
}

static void make_kernel(hid_t file, int rank, const hsize_t *shape, hid_t type, bool chunked)
{
    no_kernel(file);
    hid_t space = H5Screate_simple(rank, shape, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked)
        H5Pset_chunk(plist, rank, (hsize_t[]){1, 1, 1, 1});
    hid_t id = H5Dcreate2(file, KERNEL, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(id), H5Pclose(plist), H5Sclose(space);
}

static void whole_numbers(hid_t file)
{
    make_kernel(file, 4, (hsize_t[]){3, 3, 2, 2}, H5T_STD_I32LE, false);
}

static void never_stored(hid_t file)
{
    make_kernel(file, 4, (hsize_t[]){3, 3, 2, 2}, H5T_IEEE_F32LE, true);
}

static void absurd(hid_t file)
{
    make_kernel(file, 4, (hsize_t[]){3, 3, 2, (hsize_t)1 << 40}, H5T_IEEE_F32LE, true);
}

static void five_dimensions(hid_t file)
{
    make_kernel(file, 5, (hsize_t[]){3, 3, 2, 2, 1}, H5T_IEEE_F32LE, false);
}

static void elsewhere(hid_t file)
{
    no_kernel(file);
    H5Lcreate_external(golden("keras3_adam.h5"), KERNEL, file, KERNEL, H5P_DEFAULT, H5P_DEFAULT);
}

static void round_and_round(hid_t file)
{
    no_layer(file);
    H5Lcreate_soft("/model_weights/dense", file, "model_weights/dense", H5P_DEFAULT, H5P_DEFAULT);
}

static const struct {
    void (*change)(hid_t file);
    const char *words;
} wrong_weights[] = {
    {no_weights, "the group 'model_weights' is missing"},
    {no_layer, "the group 'dense' is missing"},
    {no_kernel, "the kernel of layer 'conv2d' is missing"},
    {no_names, "'layer_names' is missing"},
    {numbers_for_names, "'layer_names' is not text"},
    {whole_numbers, "does not hold floating point numbers"},
    {never_stored, "should hold 36 numbers, but the file has 0 bytes of it"},
    {absurd, "claims the absurd shape (3, 3, 2, 1099511627776)"},
    {five_dimensions, "has the shape (no shape), but the model needs (3, 3, 2, 2)"},
    {elsewhere, "the kernel of layer 'conv2d' is missing"},
    {round_and_round, "the group 'dense' is missing"},
};

static void wrong_groups_and_datasets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_weights / sizeof *wrong_weights; i++) {
        pc__keras_model model;
        assert_fails(pc__keras_read(changed(wrong_weights[i].change), &model), PC_ERR_FORMAT, wrong_weights[i].words);
    }
}

static void what_is_no_hdf5_file(void **state)
{
    (void)state;
    pc__keras_model model;
    assert_fails(pc__keras_read(in_folder("nowhere.h5"), &model), PC_ERR_FILE, "cannot open");
    assert_fails(pc__keras_read(folder, &model), PC_ERR_FILE, "not a regular file");
    assert_ok(pc__file_write(in_folder("x.h5"), "", 0));
    assert_fails(pc__keras_read(in_folder("x.h5"), &model), PC_ERR_FORMAT, "x.h5 is empty");
    assert_ok(pc__file_write(in_folder("x.h5"), "hello, this is text", 19));
    assert_fails(pc__keras_read(in_folder("x.h5"), &model), PC_ERR_FORMAT, "x.h5 is not an HDF5 file");
    assert_ok(pc__file_write(in_folder("x.h5"), "PK\3\4..........", 14));
    assert_fails(pc__keras_read(in_folder("x.h5"), &model), PC_ERR_FORMAT, "zip archive is damaged");
    assert_ok(pc__file_write(in_folder("x.h5"),
                             "PK\3\4........PK\5\6\0\0\0\0\1\0\1\0\377\377\377\377\377\377\377\377\0\0", 34));
    assert_fails(pc__keras_read(in_folder("x.h5"), &model), PC_ERR_UNSUPPORTED, "over 2 GB");
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345678\n";
    assert_ok(pc__file_write(in_folder("x.h5"), pointer, sizeof pointer - 1));
    assert_fails(pc__keras_read(in_folder("x.h5"), &model), PC_ERR_FORMAT, "git lfs pull");
    uint8_t *bytes;
    size_t n;
    assert_fails(pc__file_read(in_folder("x.h5"), &bytes, &n), PC_ERR_FORMAT, "git lfs pull");
}

static void read_damaged(const uint8_t *bytes, size_t n)
{
    pc__keras_model model;
    const char *path = in_folder("damaged.h5");
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fwrite(bytes, 1, n, out);
    fclose(out);
    pc_status status = pc__keras_read(path, &model);
    assert_int_equal(status, pc_error_last()->status);
    if (status == PC_OK)
        pc__keras_free(&model);
    else if (!strstr(pc_error_last()->message, "damaged.h5"))
        fail_msg("the file is not named: %s", pc_error_last()->message);
    pc_error_clear();
}

static void damaged_files_never_crash(void **state)
{
    (void)state;
    static const char *const files[] = {"keras3_adam.h5", "keras_old.h5", "keras_zoo/005.keras"};
    uint32_t random = 12345;
    int64_t before = pc_allocator_live();
    setenv("PARACORD_JAIL", "off", 1); /* here a crash would be seen */
    for (int f = 0; f < 3; f++) {
        uint8_t *bytes;
        size_t n;
        pc__keras_model model;
        assert_ok(pc__file_read(golden(files[f]), &bytes, &n));
        for (size_t cut = 0; cut < n; cut += 97)
            read_damaged(bytes, cut);
        assert_ok(pc__file_write(in_folder("cut.h5"), bytes, n - 1));
        assert_fails(pc__keras_read(in_folder("cut.h5"), &model), PC_ERR_FORMAT, "damaged or truncated");
        for (int i = 0; i < 500; i++) {
            random = random * 1664525 + 1013904223;
            size_t at = (random >> 8) % n;
            uint8_t kept = bytes[at];
            bytes[at] ^= (uint8_t)(1 + (random >> 3) % 255);
            read_damaged(bytes, n);
            bytes[at] = kept;
        }
        pc__free(bytes);
    }
    unsetenv("PARACORD_JAIL");
    assert_int_equal(pc_allocator_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_written),    cmocka_unit_test(wrong_descriptions),
        cmocka_unit_test(deep_json_is_refused),      cmocka_unit_test(training_that_is_odd),
        cmocka_unit_test(wrong_groups_and_datasets), cmocka_unit_test(what_is_no_hdf5_file),
        cmocka_unit_test(damaged_files_never_crash),
    };
    return cmocka_run_group_tests_name("io.keras_wrong", tests, make_folder, remove_folder);
}

#else

int main(void)
{
    return 0; /* io.keras has the one test of a build without the libraries */
}

#endif
