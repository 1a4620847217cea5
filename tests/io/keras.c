/* Keras files: what real Keras wrote reads right, and what we write reads back. Golden files come from
 * tests/golden/keras_files.py. */
#include "support.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_support.h"

#include <paracord/memory.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* Element i of weight n in the golden files. */
static float number(int64_t i, int n)
{
    return (float)((31 * i + 17 * n) % 64 - 32) / 64;
}

static void assert_numbers(const pc__keras_weight *weight, const float *values, int n)
{
    assert_non_null(values);
    for (int64_t i = 0; i < pc__keras_weight_size(weight); i++)
        assert_close(values[i], number(i, n), 0);
}

static void assert_weight(const pc__keras_weight *weight, int n, int slots, int slot_n)
{
    assert_numbers(weight, weight->value, n);
    for (int slot = 0; slot < 2; slot++) {
        if (slot < slots)
            assert_numbers(weight, weight->slot[slot], 100 * (slot + 1) + slot_n);
        else
            assert_null(weight->slot[slot]);
    }
}

static void assert_shape(const pc__keras_weight *weight, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[] = {a, b, c, d};
    assert_int_equal(weight->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(weight->shape[i], want[i]);
}

/* The network that keras_files.py calls "tiny". */
static void assert_tiny(const pc__keras_model *model, int slots)
{
    static const pc__keras_kind kinds[] = {PC__KERAS_CONV2D, PC__KERAS_MAX_POOL2D, PC__KERAS_FLATTEN, PC__KERAS_DROPOUT,
                                           PC__KERAS_DENSE};
    assert_int_equal(model->layer_count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(model->layers[i].kind, kinds[i]);
    assert_int_equal(model->input_rank, 3);
    assert_int_equal(model->input_shape[0], 8);
    assert_int_equal(model->input_shape[1], 8);
    assert_int_equal(model->input_shape[2], 2);
    const pc__keras_layer *conv = &model->layers[0], *pool = &model->layers[1], *dense = &model->layers[4];
    assert_true(conv->same && conv->use_bias && !conv->frozen);
    assert_int_equal(conv->units, 2);
    assert_int_equal(conv->window[0], 3);
    assert_int_equal(conv->stride[1], 1);
    assert_int_equal(conv->activation, PC__KERAS_RELU);
    assert_true(!pool->same);
    assert_int_equal(pool->window[1], 2);
    assert_int_equal(pool->stride[0], 2);
    assert_close(model->layers[3].rate, 0.25, 0);
    assert_int_equal(dense->units, 3);
    assert_int_equal(dense->activation, PC__KERAS_SIGMOID);
    assert_shape(&conv->weights[0], 4, 3, 3, 2, 2);
    assert_shape(&dense->weights[0], 2, 32, 3, 0, 0);
    assert_weight(&conv->weights[0], 0, slots, 0);
    assert_weight(&conv->weights[1], 1, slots, 1);
    assert_weight(&dense->weights[0], 2, slots, 2);
    assert_weight(&dense->weights[1], 3, slots, 3);
}

static void assert_adam(const pc__keras_training *training)
{
    assert_int_equal(training->optimizer, PC__KERAS_ADAM);
    assert_string_equal(training->optimizer_class, "Adam");
    assert_close(training->learning_rate, 0.002, 1e-9);
    assert_close(training->beta_1, 0.8, 0);
    assert_close(training->beta_2, 0.999, 0);
    assert_close(training->epsilon, 1e-7, 0);
    assert_string_equal(training->loss, "binary_crossentropy");
    assert_true(!training->from_logits && training->has_state);
    assert_int_equal(training->iterations, 7);
}

static void sequential_models_of_all_ages(void **state)
{
    (void)state;
    static const char *const files[] = {"keras3_adam.h5", "keras2_adam.h5", "keras_old.h5"};
    for (int i = 0; i < 3; i++) {
        pc__keras_model model;
        assert_ok(pc__keras_read(golden(files[i]), &model));
        assert_tiny(&model, 2);
        assert_adam(&model.training);
        assert_string_equal(model.layers[0].name, i == 2 ? "conv2d_1" : "conv2d");
        assert_string_equal(model.name, i == 2 ? "" : "tiny");
        assert_int_equal(model.class_count, 0);
        assert_null(model.note);
        pc__keras_free(&model);
    }
}

static void a_functional_chain(void **state)
{
    (void)state;
    static const pc__keras_kind kinds[] = {PC__KERAS_RESCALING,  PC__KERAS_CONV2D,  PC__KERAS_ACTIVATION,
                                           PC__KERAS_AVG_POOL2D, PC__KERAS_FLATTEN, PC__KERAS_DENSE,
                                           PC__KERAS_ACTIVATION};
    pc__keras_model model;
    assert_ok(pc__keras_read(golden("keras3_chain.h5"), &model));
    assert_int_equal(model.layer_count, 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(model.layers[i].kind, kinds[i]);
    assert_close(model.layers[0].scale, 1 / 255., 1e-17);
    assert_close(model.layers[0].offset, -0.5, 0);
    const pc__keras_layer *conv = &model.layers[1], *pool = &model.layers[3], *dense = &model.layers[5];
    assert_true(conv->frozen && !conv->use_bias && !conv->same);
    assert_int_equal(conv->window[0], 2);
    assert_int_equal(conv->window[1], 1);
    assert_int_equal(conv->stride[0], 1);
    assert_int_equal(conv->stride[1], 2);
    assert_int_equal(conv->weights[1].rank, 0);
    assert_int_equal(model.layers[2].activation, PC__KERAS_RELU);
    assert_true(pool->same);
    assert_int_equal(pool->stride[0], 1);
    assert_int_equal(model.layers[6].activation, PC__KERAS_SOFTMAX);
    assert_weight(&conv->weights[0], 0, 0, 0);
    assert_weight(&dense->weights[0], 1, 1, 0);
    assert_weight(&dense->weights[1], 2, 1, 1);
    assert_int_equal(model.training.optimizer, PC__KERAS_SGD);
    assert_true(model.training.nesterov && model.training.from_logits);
    assert_close(model.training.momentum, 0.9, 0);
    assert_string_equal(model.training.loss, "sparse_categorical_crossentropy");
    pc__keras_free(&model);
}

static void weights_alone(void **state)
{
    (void)state;
    static const char *const files[] = {"keras3.weights.h5", "keras2_weights.h5", "keras_old.h5"};
    for (int i = 0; i < 3; i++) {
        pc__keras_model model;
        assert_fails(i < 2 ? pc__keras_read(golden(files[i]), &model) : pc__fail(PC_ERR_FORMAT, "no model_config"),
                     PC_ERR_FORMAT, "no model_config");
        assert_ok(pc__keras_read(golden("keras3_adam.h5"), &model));
        memset(model.layers[0].weights[0].value, 0, sizeof(float) * 36);
        memset(model.layers[4].weights[1].value, 0, sizeof(float) * 3);
        assert_ok(pc__keras_read_weights(golden(files[i]), &model));
        assert_tiny(&model, 2);
        pc__keras_free(&model);
    }
}

static void assert_same_file(const char *a, const char *b)
{
    uint8_t *bytes[2];
    size_t n[2];
    assert_ok(pc__file_read(a, &bytes[0], &n[0]));
    assert_ok(pc__file_read(b, &bytes[1], &n[1]));
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    pc__free(bytes[0]);
    pc__free(bytes[1]);
}

static bool has_text(const char *path, const char *text)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(path, &bytes, &n));
    bool has = memmem(bytes, n, text, strlen(text)) != NULL;
    pc__free(bytes);
    return has;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    pc__keras_model model, again;
    assert_ok(pc__keras_read(golden("keras3_adam.h5"), &model));
    model.class_count = 2;
    model.class_names = pc__calloc(2, sizeof *model.class_names);
    model.class_names[0] = pc__strdup("cat");
    model.class_names[1] = pc__strdup("Grüße \"dog\"");
    model.note = pc__strdup("{\"rescale\": 0.00392}");
    snprintf(model.layers[1].name, sizeof model.layers[1].name, "quo\"te\\\n");
    model.training.learning_rate = 0.1234567890123;
    model.training.iterations = (int64_t)1 << 40;
    assert_ok(pc__keras_write(in_folder("a.h5"), &model));
    assert_ok(pc__keras_read(in_folder("a.h5"), &again));
    assert_tiny(&again, 2);
    assert_string_equal(again.layers[1].name, "quo\"te\\\n");
    assert_string_equal(again.class_names[1], "Grüße \"dog\"");
    assert_int_equal(again.class_count, 2);
    assert_string_equal(again.note, "{\"rescale\": 0.00392}");
    assert_close(again.training.learning_rate, 0.1234567890123, 0);
    assert_true(again.training.iterations == (int64_t)1 << 40);
    assert_ok(pc__keras_write(in_folder("b.h5"), &again));
    assert_same_file(in_folder("a.h5"), in_folder("b.h5"));
    pc__keras_free(&model);
    pc__keras_free(&again);

    assert_ok(pc__keras_read(golden("keras3_chain.h5"), &model));
    assert_ok(pc__keras_write(in_folder("a.h5"), &model));
    pc__keras_free(&model);
    assert_ok(pc__keras_read(in_folder("a.h5"), &again));
    assert_true(again.layers[1].frozen && again.training.from_logits && again.training.nesterov);
    assert_weight(&again.layers[5].weights[0], 1, 1, 0);
    assert_string_equal(again.training.loss, "sparse_categorical_crossentropy");
    pc__keras_free(&again);
}

/* Numbers that Dense(activation=LeakyReLU(0.1)) has; a name where they are its own. */
static void activations_with_numbers(void **state)
{
    (void)state;
    static const struct {
        pc__keras_activation activation;
        double slope, limit, threshold;
        const char *text;
    } all[] = {{PC__KERAS_LEAKY_RELU, 0.1, 0, 0, "\"class_name\": \"LeakyReLU\""},
               {PC__KERAS_LEAKY_RELU, 0.2, 0, 0, "\"activation\": \"leaky_relu\""},
               {PC__KERAS_ELU, 0.3, 0, 0, "\"class_name\": \"ELU\""},
               {PC__KERAS_ELU, 1, 0, 0, "\"activation\": \"elu\""},
               {PC__KERAS_RELU, 0, 0, 0.5, "\"class_name\": \"ReLU\""},
               {PC__KERAS_RELU, 0.1, 6, 0.5, "\"class_name\": \"ReLU\""},
               {PC__KERAS_RELU, 0, 0, 0, "\"activation\": \"relu\""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int conv = 0; conv < 2; conv++) {
            pc__keras_model model = {.input_rank = conv ? 3 : 1, .input_shape = {2, 2, 2}};
            pc__keras_layer *layer = pc__keras_add(&model, conv ? PC__KERAS_CONV2D : PC__KERAS_DENSE);
            assert_not_null_ok(layer);
            layer->units = 2;
            layer->window[0] = layer->window[1] = layer->stride[0] = layer->stride[1] = 1;
            layer->activation = all[i].activation;
            layer->slope = all[i].slope, layer->limit = all[i].limit, layer->threshold = all[i].threshold;
            assert_ok(conv ? pc__keras_weight_make(layer, "kernel", 4, (int64_t[]){1, 1, 2, 2})
                           : pc__keras_weight_make(layer, "kernel", 2, (int64_t[]){2, 2}));
            assert_ok(pc__keras_write(in_folder("a.h5"), &model));
            pc__keras_free(&model);
            assert_true(has_text(in_folder("a.h5"), all[i].text));
            assert_ok(pc__keras_read(in_folder("a.h5"), &model));
            assert_int_equal(model.layers[0].activation, all[i].activation);
            assert_close(model.layers[0].slope, all[i].slope, 0);
            assert_close(model.layers[0].limit, all[i].limit, 0);
            assert_close(model.layers[0].threshold, all[i].threshold, 0);
            pc__keras_free(&model);
        }
}

/* 900 layers: names get numbers; lists stay readable. */
static void many_layers_without_names(void **state)
{
    (void)state;
    pc__keras_model model = {.input_rank = 1, .input_shape = {2}};
    for (int i = 0; i < 900; i++) {
        pc__keras_layer *layer = pc__keras_add(&model, PC__KERAS_DENSE);
        assert_not_null_ok(layer);
        layer->units = 2;
        assert_ok(pc__keras_weight_make(layer, "kernel", 2, (int64_t[]){2, 2}));
        layer->weights[0].value[0] = (float)i;
    }
    model.class_count = 5000;
    model.class_names = pc__calloc(5000, sizeof *model.class_names);
    for (int i = 0; i < 5000; i++)
        model.class_names[i] = pc__strdup("some class");
    assert_ok(pc__keras_write(in_folder("many.h5"), &model));
    assert_string_equal(model.layers[0].name, "dense");
    assert_string_equal(model.layers[899].name, "dense_899");
    pc__keras_free(&model);
    assert_ok(pc__keras_read(in_folder("many.h5"), &model));
    assert_int_equal(model.layer_count, 900);
    assert_int_equal(model.class_count, 5000);
    for (int i = 0; i < 900; i++)
        assert_close(model.layers[i].weights[0].value[0], i, 0);
    pc__keras_free(&model);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    pc__keras_model model;
    struct rlimit before, small;
    assert_ok(pc__keras_read(golden("keras3_adam.h5"), &model));
    assert_ok(pc__keras_write(in_folder("full.h5"), &model));
    assert_ok(pc__keras_write(in_folder("old.h5"), &model));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    pc_status status = pc__keras_write(in_folder("full.h5"), &model);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, PC_ERR_FILE);
    assert_non_null(strstr(pc_error_last()->message, "full.h5"));
    pc_error_clear();
    assert_same_file(in_folder("full.h5"), in_folder("old.h5"));
    assert_int_equal(access(in_folder("full.h5.paracord-0.tmp"), F_OK), -1);
    pc__keras_free(&model);
}

/* ---- failing allocations, threads */

static long long allocations_left;

static void *rationed_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context, (void)alignment;
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static void *rationed_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

static void plain_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static pc_status there_and_back(const char *from, const char *to)
{
    pc__keras_model model;
    PC__TRY(pc__keras_read(from, &model));
    pc_status status = pc__keras_write(to, &model);
    pc__keras_free(&model);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const pc_allocator rationed = {rationed_alloc, rationed_resize, plain_free, NULL};
    const char *to = in_folder("rationed.h5");
    static const char *const files[] = {"keras3_adam.h5", "keras_old.h5", "keras3_chain.h5"};
    assert_ok(pc_allocator_set(&rationed));
    for (int f = 0; f < 3; f++) {
        pc_status status = PC_ERR_MEMORY;
        int n = 0;
        for (; status != PC_OK; n++) {
            assert_true(n < 5000);
            unlink(to);
            allocations_left = n;
            status = there_and_back(golden(files[f]), to);
            assert_int_equal(pc_allocator_live(), 0);
            assert_true(status == PC_OK || status == PC_ERR_MEMORY);
            assert_int_equal(status, pc_error_last()->status);
            assert_int_equal(access(to, F_OK), status == PC_OK ? 0 : -1);
            pc_error_clear();
        }
        assert_true(n > 20);
    }
    assert_ok(pc_allocator_set(NULL));
}

static void *read_often(void *context)
{
    for (int i = 0; i < 20; i++) {
        pc__keras_model model;
        if (pc__keras_read(golden("keras3_adam.h5"), &model) != PC_OK)
            return context;
        pc__keras_free(&model);
    }
    return NULL;
}

static void several_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *failed;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, threads), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_models_of_all_ages),
        cmocka_unit_test(a_functional_chain),
        cmocka_unit_test(weights_alone),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(activations_with_numbers),
        cmocka_unit_test(many_layers_without_names),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(several_threads),
    };
    return cmocka_run_group_tests_name("io.keras", tests, make_folder, remove_folder);
}

#else

#include "io/keras.h"

static void the_missing_library_is_named(void **state)
{
    (void)state;
    pc__keras_model model;
    assert_fails(pc__keras_read("model.h5", &model), PC_ERR_UNSUPPORTED, "libhdf5-dev");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_missing_library_is_named)};
    return cmocka_run_group_tests_name("io.keras", tests, NULL, NULL);
}

#endif
