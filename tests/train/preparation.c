/* How pictures become numbers: what a model file says of it, what is assumed, what is given; and what the answers are
 * then. Keras drops our notes when it saves a model again: names of layers stay. */
#include "group.h"
#include "io/file.h"
#include "io/keras.h"
#include "train/label_layer.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/keras.h>
#include <paracord/nn.h>
#include <paracord/train.h>

enum { SIZE = 6 };

/* A file as another program would write it: without our notes. `classes` outputs; 1: a sigmoid. */
static test_path foreign(const char *name, int classes)
{
    test_path path = placed(root.s, name);
    pc_seed(7);
    pc_module *net =
        pc_sequential(pc_conv2d(3, 4, 3, .activation = PC_ACTIVATION_RELU), pc_flatten(), pc_linear(64, classes));
    assert_ok(pc_keras_save(
        path.s, net,
        (pc_keras_options){
            .height = SIZE, .width = SIZE, .channels = 3, .head = classes == 1 ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX}));
    pc_module_free(net);
    return path;
}

static pc_classifier *opened(test_path path)
{
    pc_classifier *c = pc_classifier_open(path.s, test_device_name());
    assert_not_null_ok(c);
    return c;
}

static pc_image noise(int width, int height, int channels, unsigned seed)
{
    pc_image image;
    assert_ok(pc_image_new(width, height, channels, &image));
    for (int i = 0; i < width * height * channels; i++)
        image.pixels[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    return image;
}

static void assert_text(const pc_classifier *c, const char *words)
{
    pc_preparation p = pc_classifier_preparation(c);
    char *text = pc_preparation_text(&p);
    assert_string_equal(text, words);
    pc_text_free(text);
}

static void what_the_file_does_not_say_is_assumed_and_told(void **state)
{
    (void)state;
    pc_classifier *c = opened(foreign("silent.h5", 3));
    assert_int_equal(pc_classifier_preparation(c).source, PC_PREPARATION_ASSUMED);
    assert_text(c, "6x6 RGB by nearest neighbour, pixels times 1/255 (assumed: the file does not say)");
    pc_classifier_free(c);
}

/* The network by hand on (p * rescale - mean) / std. */
static void by_hand(test_path path, const pc_image *image, const pc_preparation *p, float *probabilities, int classes)
{
    float x[SIZE * SIZE * 3];
    for (int i = 0; i < SIZE * SIZE; i++)
        for (int c = 0; c < 3; c++)
            x[c * SIZE * SIZE + i] = (float)((image->pixels[3 * i + c] * p->rescale - p->mean[c]) / p->std[c]);
    pc_module *net = pc_keras_load(path.s, NULL);
    assert_non_null(net);
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *y = pc_forward(net, pc_from_data(x, PC_SHAPE(1, 3, SIZE, SIZE), PC_F32, PC_DEVICE_CPU));
            assert_ok(pc_read(pc_softmax(y, 1), probabilities, (size_t)classes * sizeof *probabilities));
        }
    }
    pc_module_free(net);
}

static void what_is_given_is_done(void **state)
{
    (void)state;
    test_path path = foreign("given.h5", 3);
    pc_classifier *c = opened(path);
    pc_image image = noise(SIZE, SIZE, 3, 3);
    pc_preparation p = pc_classifier_preparation(c);
    float got[3], want[3], assumed[3];
    assert_ok(pc_classifier_predict_images(c, &image, 1, 0, assumed));
    p.rescale = 1;
    for (int i = 0; i < 3; i++)
        p.mean[i] = 100 + 10 * i, p.std[i] = 50 + i;
    assert_ok(pc_classifier_set_preparation(c, &p));
    assert_text(c, "6x6 RGB by nearest neighbour, raw pixels (0 to 255), less 100,110,120, over 50,51,52 (given)");
    assert_ok(pc_classifier_predict_images(c, &image, 1, 0, got));
    by_hand(path, &image, &p, want, 3);
    for (int i = 0; i < 3; i++)
        assert_close(got[i], want[i], 1e-5);
    assert_true(fabsf(got[0] - assumed[0]) > 1e-3f);
    pc_image_free(&image);
    pc_classifier_free(c);
}

#define GOLDEN PC_TEST_GOLDEN "/keras_preparation/"

/* Keras's pictures and answers for a file of tests/golden/keras_preparation.py. */
static void asked_keras(const char *file, pc_image images[2], float answers[6])
{
    char name[64], path[512];
    float pixels[2 * SIZE * SIZE * 3];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    snprintf(path, sizeof path, GOLDEN "%s_y.npy", name);
    PC_SCOPE {
        assert_ok(pc_read(pc_npy_load(path, PC_DEVICE_CPU), answers, 6 * sizeof *answers));
        assert_ok(pc_read(pc_npy_load(GOLDEN "x.npy", PC_DEVICE_CPU), pixels, sizeof pixels));
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(pc_image_new(SIZE, SIZE, 3, &images[i]));
        for (int k = 0; k < SIZE * SIZE * 3; k++)
            images[i].pixels[k] = (uint8_t)pixels[i * SIZE * SIZE * 3 + k];
    }
}

static void assert_answers(pc_classifier *c, const pc_image images[2], const float answers[6])
{
    float got[6];
    assert_ok(pc_classifier_predict_images(c, images, 2, 0, got));
    for (int i = 0; i < 6; i++)
        assert_close(got[i], answers[i], 1e-5);
}

/* What a network's own first layers do to the picture is told, and done once, in whatever way it is written. */
static void layers_in_front(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words;
    } ways[] = {
        {"divided.h5", "pixels times 1/127.5, less 1"},
        {"centred.keras", "pixels times 1/127.5, less 1"},
        {"turned.keras", "pixels times 1/-255, less -1"},
        {"channels.h5", "raw pixels (0 to 255), less 120,110,100, over 60,50,40"},
        {"functions.keras", "raw pixels (0 to 255), less 120,110,100, over 60,50,40"},
        {"offset.keras", "pixels times 1/127.5, less 1"},
        {"lists.keras", "raw pixels (0 to 255), less 120,110,100, over 60,50,40"},
        {"statistics.h5", "raw pixels (0 to 255), less 120,110,100, over 60,50,40"},
        {"both.keras", "pixels times 1/255, less 0.4,0.5,0.6, over 0.2,0.223607,0.244949"},
        {"tf.keras", "pixels times 1/127.5, less 1"},
        {"torch.keras", "pixels times 1/255, less 0.485,0.456,0.406, over 0.229,0.224,0.225"},
        {"caffe.keras", "raw pixels (0 to 255)"},
        {"reversed.keras", "raw pixels (0 to 255)"},
        {"flipped.keras", "raw pixels (0 to 255)"},
        {"branches.keras", "raw pixels (0 to 255)"},
    };
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
        char path[512], words[200];
        pc_image images[2];
        float answers[6];
        snprintf(path, sizeof path, GOLDEN "%s", ways[i].file);
        asked_keras(ways[i].file, images, answers);
        pc_classifier *c = pc_classifier_open(path, test_device_name());
        assert_not_null_ok(c);
        snprintf(words, sizeof words, "6x6 RGB by nearest neighbour, %s (a layer in the file)", ways[i].words);
        assert_text(c, words);
        assert_answers(c, images, answers);
        pc_preparation p = pc_classifier_preparation(c); /* given as it is: the same */
        assert_ok(pc_classifier_set_preparation(c, &p));
        assert_answers(c, images, answers);
        pc_classifier_free(c);
        pc_image_free(&images[0]);
        pc_image_free(&images[1]);
    }
}

/* Two branches of which one takes the picture as it is: nothing is known of it. */
static void a_layer_in_one_branch_says_nothing(void **state)
{
    (void)state;
    static const int both[] = {0, PC__KERAS_PICTURE};
    test_path path = placed(root.s, "half.h5");
    pc__keras_model model = {.input_rank = 3, .input_shape = {SIZE, SIZE, 3}};
    pc__keras_layer *layer = pc__keras_add(&model, PC__KERAS_RESCALING);
    assert_not_null_ok(layer);
    layer->scale = 1.0 / 255;
    assert_not_null_ok(pc__keras_add_layer(&model, PC__KERAS_ADD));
    assert_ok(pc__keras_add_node(&model, 1, both, 2));
    assert_not_null_ok(pc__keras_add(&model, PC__KERAS_FLATTEN));
    layer = pc__keras_add(&model, PC__KERAS_DENSE);
    assert_not_null_ok(layer);
    layer->units = 3, layer->activation = PC__KERAS_SOFTMAX;
    assert_ok(pc__keras_weight_make(layer, "kernel", 2, (int64_t[]){SIZE * SIZE * 3, 3}));
    assert_ok(pc__keras_write(path.s, &model));
    pc__keras_free(&model);
    pc_classifier *c = opened(path);
    assert_text(c, "6x6 RGB by nearest neighbour, pixels times 1/255 (assumed: the file does not say)");
    pc_classifier_free(c);
}

/* The picture and the answers of any.keras for one size. */
static pc_image picture_of_size(int height, int width, float answers[3])
{
    char path[512];
    float pixels[14 * 14 * 3];
    pc_image image;
    assert_ok(pc_image_new(width, height, 3, &image));
    PC_SCOPE {
        snprintf(path, sizeof path, GOLDEN "any_%d_y.npy", height);
        assert_ok(pc_read(pc_npy_load(path, PC_DEVICE_CPU), answers, 3 * sizeof *answers));
        snprintf(path, sizeof path, GOLDEN "any_%d_x.npy", height);
        assert_ok(pc_read(pc_npy_load(path, PC_DEVICE_CPU), pixels, (size_t)(height * width * 3) * sizeof *pixels));
    }
    for (int k = 0; k < height * width * 3; k++)
        image.pixels[k] = (uint8_t)pixels[k];
    return image;
}

static void pictures_of_any_size(void **state)
{
    (void)state;
    float answers[4][3], got[4][3], one[3];
    pc_image images[4];
    for (int i = 0; i < 4; i++)
        images[i] = picture_of_size(i % 3 ? 9 : 6, i % 3 ? 14 : 6, answers[i]);
    pc_classifier *c = pc_classifier_open(GOLDEN "any.keras", test_device_name());
    assert_not_null_ok(c);
    assert_text(c, "any size, RGB by nearest neighbour, pixels times 1/255 (a layer in the file)");
    assert_ok(pc_classifier_predict_images(c, images, 4, 0, got[0]));
    for (int i = 0; i < 12; i++)
        assert_close(got[i / 3][i % 3], answers[i / 3][i % 3], 1e-5);
    pc_prediction named; /* a file, too, keeps its own size */
    test_path file = placed(root.s, "wide.png");
    assert_ok(pc_image_write(&images[1], file.s));
    assert_ok(pc_classifier_predict_all(c, file.s, &named, one));
    assert_close(one[0], answers[1][0], 1e-5);

    pc_evaluation evaluation;
    assert_fails(pc_classifier_evaluate(c, root.s, 0, NULL, &evaluation), PC_ERR_ARGUMENT,
                 "takes pictures of any size");
    char *text, *json;
    assert_ok(pc_classifier_summary(c, &text, &json));
    assert_non_null(strstr(text, "4 x ? x ?"));
    assert_non_null(strstr(json, "\"height\": null"));
    assert_non_null(strstr(json, "\"output\": [4, null, null]"));
    pc_text_free(text);
    pc_text_free(json);

    pc_preparation p = pc_classifier_preparation(c);
    p.height = p.width = 6;
    assert_ok(pc_classifier_set_preparation(c, &p));
    assert_text(c, "6x6 RGB by nearest neighbour, pixels times 1/255 (a layer in the file)");
    assert_ok(pc_classifier_predict_images(c, images, 4, 0, got[0]));
    assert_close(got[3][1], answers[3][1], 1e-5);
    assert_true(fabsf(got[1][1] - answers[1][1]) > 1e-5f); /* brought to 6 x 6 */
    p.width = 0;
    assert_fails(pc_classifier_set_preparation(c, &p), PC_ERR_ARGUMENT, "both 0");
    pc_classifier_free(c);
    for (int i = 0; i < 4; i++)
        pc_image_free(&images[i]);
    assert_fails(pc_classifier_open(GOLDEN "reshaped.keras", "cpu"), PC_ERR_UNSUPPORTED,
                 "layer 'squares' (Reshape) needs pictures of one size");
}

/* Notes say all of it, and those of 0.1 the factor in front alone: the rest of the layers goes on. */
static void notes_over_layers_in_front(void **state)
{
    (void)state;
    pc_image images[2];
    float answers[6];
    asked_keras("divided.h5", images, answers);
    test_path path = placed(root.s, "divided.h5");
    static const char *const notes[] = {NULL, "{\"resize\": \"area\", \"rescale\": 0.00784313725490196}"};
    for (int i = 0; i < 2; i++) {
        uint8_t *bytes;
        size_t n;
        assert_ok(pc__file_read(GOLDEN "divided.h5", &bytes, &n));
        assert_ok(pc__file_write(path.s, bytes, n));
        pc__free(bytes);
        char note[100];
        snprintf(note, sizeof note, "%s", notes[i] ? notes[i] : "");
        pc_classifier *c = opened(path);
        pc_preparation p = pc_classifier_preparation(c);
        p.resize = PC_RESIZE_AREA;
        assert_ok(pc_classifier_set_preparation(c, &p));
        assert_ok(notes[i] ? pc__keras_note(path.s, &(pc__keras_model){.note = note}) : pc_classifier_note(c));
        pc_classifier_free(c);
        c = opened(path);
        assert_text(c, notes[i] ? "6x6 RGB by area, pixels times 1/127.5 (noted in the file)"
                                : "6x6 RGB by area, pixels times 1/127.5, less 1 (noted in the file)");
        assert_answers(c, images, answers);
        pc_classifier_free(c);
    }
    pc_image_free(&images[0]);
    pc_image_free(&images[1]);
}

static void noting_writes_it_into_the_file(void **state)
{
    (void)state;
    test_path path = foreign("noted.h5", 3);
    pc_classifier *c = opened(path);
    pc_image image = noise(9, 8, 3, 4);
    pc_preparation p = pc_classifier_preparation(c);
    float before[3], after[3];
    p.rescale = 1 / 127.5, p.resize = PC_RESIZE_AREA, p.no_exif = true;
    p.mean[0] = p.mean[1] = p.mean[2] = 1;
    assert_ok(pc_classifier_set_preparation(c, &p));
    assert_ok(pc_classifier_set_class_names(c, (const char *const[]){"stop", "yield, please", "30 km/h"}, 3));
    assert_ok(pc_classifier_predict_images(c, &image, 1, 0, before));
    assert_ok(pc_classifier_note(c));
    assert_ok(pc_classifier_note(c)); /* over the first notes */
    pc_classifier_free(c);
    c = opened(path);
    assert_text(c, "6x6 RGB by area, pixels times 1/127.5, less 1, not turned upright (noted in the file)");
    assert_string_equal(pc_classifier_class_name(c, 1), "yield, please");
    assert_string_equal(pc_classifier_class_name(c, 2), "30 km/h");
    assert_ok(pc_classifier_predict_images(c, &image, 1, 0, after));
    assert_memory_equal(before, after, sizeof before);
    pc_image_free(&image);
    pc_classifier_free(c);
}

/* What --set writes into a file of Keras, of both kinds, and what is left of it where Keras saves the model again: it
 * drops attributes and metadata, and keeps the model's name. */
static void notes_in_files_of_keras(void **state)
{
    (void)state;
    static const char *const files[] = {"channels.h5", "torch.keras"};
    for (int i = 0; i < 2; i++) {
        char from[512];
        uint8_t *bytes;
        size_t n;
        pc_image images[2];
        float answers[6], before[6];
        test_path path = placed(root.s, files[i]);
        snprintf(from, sizeof from, GOLDEN "%s", files[i]);
        asked_keras(files[i], images, answers);
        assert_ok(pc__file_read(from, &bytes, &n));
        assert_ok(pc__file_write(path.s, bytes, n));
        pc__free(bytes);
        pc_classifier *c = opened(path);
        pc_preparation p = pc_classifier_preparation(c);
        p.rescale = 1 / 100.0, p.no_exif = true, p.shorter = 6, p.std[1] = 0.3, p.mean[2] = -1e-5;
        assert_ok(pc_classifier_set_preparation(c, &p));
        assert_ok(pc_classifier_set_class_names(c,
                                                (const char *const[]){"a",
                                                                      "Gr\xc3\xbc\xc3\x9f"
                                                                      "e, b",
                                                                      "c.d"},
                                                3));
        assert_ok(pc_classifier_predict_images(c, images, 2, 0, before));
        for (int turn = 0; turn < 3; turn++) {
            if (turn < 2)
                assert_ok(pc_classifier_note(c)); /* the second over the first */
            else
                assert_ok(pc__keras_note(path.s, &(pc__keras_model){.note = NULL})); /* as Keras does */
            pc_classifier_free(c);
            c = opened(path);
            const pc_preparation again = pc_classifier_preparation(c);
            assert_int_equal(again.source, PC_PREPARATION_NOTED);
            assert_true(again.rescale == p.rescale && again.no_exif && again.shorter == 6);
            assert_memory_equal(again.mean, p.mean, sizeof p.mean);
            assert_memory_equal(again.std, p.std, sizeof p.std);
            assert_string_equal(pc_classifier_class_name(c, 1), "Gr\xc3\xbc\xc3\x9f"
                                                                "e, b");
            assert_answers(c, images, before);
        }
        pc_classifier_free(c);
        pc_image_free(&images[0]);
        pc_image_free(&images[1]);
    }
}

/* What paracord train wrote, after a program has taken our attributes away, as Keras does. */
static void a_rescaling_layer_keeps_it(void **state)
{
    (void)state;
    const char *const classes[] = {"St. Bernard-2", "c\xc3\xb4te d'Azur"};
    put_picture(root.s, "kept/train/St. Bernard-2/a.png", 1);
    put_picture(root.s, "kept/train/c\xc3\xb4te d'Azur/b.png", 2);
    test_path data = joined(root.s, "kept"), out = joined(root.s, "kept/out"), model = joined(out.s, "model.h5");
    pc_train_options settings = {.data = joined(data.s, "train").s,
                                 .out = out.s,
                                 .arch = "mlp",
                                 .resize = "area",
                                 .no_exif = true,
                                 .shorter = 9,
                                 .device = "cpu",
                                 .epochs = 1,
                                 .size = 8};
    test_path folder = joined(data.s, "train");
    settings.data = folder.s;
    pc_train_summary summary;
    assert_ok(pc_train_folder(settings, &summary));
    pc__keras_model nothing = {0};
    assert_ok(pc__keras_note(model.s, &nothing));
    pc_classifier *c = opened(model);
    assert_text(c, "8x8 RGB by area, the middle of a shorter side of 9, pixels times 1/255, not turned upright (a "
                   "layer in the file)");
    for (int i = 0; i < 2; i++)
        assert_string_equal(pc_classifier_class_name(c, i), classes[i]);
    pc_classifier_free(c);
}

static void names_that_do_not_fit_are_left_out(void **state)
{
    (void)state;
    char name[PC__KERAS_NAME_MAX], names[4][PC_CLASS_NAME_MAX];
    const char *long_ones[8];
    char text[200];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    for (int i = 0; i < 8; i++)
        long_ones[i] = text;
    pc_preparation p = {.resize = PC_RESIZE_AREA}, read = {0};
    pc__label_layer_print(&p, long_ones, 8, name);
    assert_string_equal(name, "prepare.area");
    assert_int_equal(pc__label_layer_classes(name, names, 4), 0);
    pc__label_layer_print(&p, (const char *const[]){"classes", "a.classes.b", ".stored", ""}, 4, name);
    assert_true(pc__label_layer_read(name, &read));
    assert_false(read.no_exif);
    assert_int_equal(pc__label_layer_classes(name, names, 4), 4);
    assert_string_equal(names[1], "a.classes.b");
    assert_string_equal(names[2], ".stored");
    assert_string_equal(names[3], "");
    assert_int_equal(pc__label_layer_classes(name, names, 1), 4);
    assert_false(pc__label_layer_read("rescaling_1", &read));
}

/* Batches of pictures of all sizes and channels have the answers of one at a time, and of the same files. */
static void pictures_in_memory(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    pc_classifier *c = opened(foreign("many.h5", 3));
    pc_image images[COUNT];
    float all[COUNT * 3], one[3], file[3];
    for (int i = 0; i < COUNT; i++)
        images[i] = noise(4 + 3 * i, 9 - i, i % 2 ? 1 : 3, (unsigned)i);
    assert_ok(pc_classifier_predict_images(c, images, COUNT, 2, all));
    for (int i = 0; i < COUNT; i++) {
        pc_prediction p;
        test_path path = placed(root.s, "one.png");
        assert_ok(pc_image_write(&images[i], path.s));
        assert_ok(pc_classifier_predict_images(c, &images[i], 1, 0, one));
        assert_ok(pc_classifier_predict_all(c, path.s, &p, file));
        for (int k = 0; k < 3; k++) {
            assert_close(all[3 * i + k], one[k], 1e-6);
            assert_close(file[k], one[k], 1e-6);
        }
        assert_close(p.probability, fmax(fmax(file[0], file[1]), file[2]), 0);
        assert_true(isnan(p.sigmoid));
    }
    assert_ok(pc_classifier_predict_images(c, NULL, 0, 0, NULL));
    assert_fails(pc_classifier_predict_images(c, NULL, 1, 0, one), PC_ERR_ARGUMENT, "NULL");
    for (int i = 0; i < COUNT; i++)
        pc_image_free(&images[i]);
    pc_classifier_free(c);
}

/* 0.1768 of a sigmoid is 0.8232 for the first class. */
static void the_probability_is_that_of_the_named_class(void **state)
{
    (void)state;
    pc_classifier *c = opened(foreign("two.h5", 1));
    const float first[2] = {0.75f, 0.25f}, second[2] = {0.5f, 0.5f};
    pc_prediction p = pc_classifier_decide(c, first);
    assert_int_equal(p.label, 0);
    assert_close(p.probability, 0.75, 0);
    assert_close(p.sigmoid, 0.25, 0);
    assert_int_equal(pc_classifier_decide(c, second).label, 1);
    pc_image image = noise(6, 6, 3, 1);
    float got[2];
    assert_ok(pc_classifier_predict_images(c, &image, 1, 0, got));
    assert_close(got[0] + got[1], 1, 1e-6);
    pc_image_free(&image);
    pc_classifier_free(c);
}

static void weights_that_are_no_numbers_name_no_class(void **state)
{
    (void)state;
    test_path path = placed(root.s, "nan.h5");
    pc_module *net = pc_sequential(pc_flatten(), pc_linear(SIZE * SIZE * 3, 1));
    PC_NO_GRAD {
        assert_ok(pc_fill(pc_module_parameter(net, "1.bias"), NAN));
    }
    assert_ok(pc_keras_save(
        path.s, net, (pc_keras_options){.height = SIZE, .width = SIZE, .channels = 3, .head = PC_KERAS_SIGMOID}));
    pc_module_free(net);
    pc_classifier *c = opened(path);
    pc_image image = noise(6, 6, 3, 1);
    float got[2];
    assert_fails(pc_classifier_predict_images(c, &image, 1, 0, got), PC_ERR_FORMAT, "not a number");
    pc_image_free(&image);
    pc_classifier_free(c);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    pc_classifier *c = opened(foreign("refuse.h5", 3));
    pc_preparation p = pc_classifier_preparation(c);
    p.rescale = NAN;
    assert_fails(pc_classifier_set_preparation(c, &p), PC_ERR_ARGUMENT, "rescale nan");
    p.rescale = 1, p.std[2] = 0;
    assert_fails(pc_classifier_set_preparation(c, &p), PC_ERR_ARGUMENT, "channel 2");
    assert_fails(pc_classifier_set_preparation(c, NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_classifier_set_class_names(c, (const char *const[]){"a", "b"}, 2), PC_ERR_ARGUMENT, "3 classes");
    assert_fails(pc_classifier_set_class_names(c, (const char *const[]){"a", "b", "a"}, 3), PC_ERR_ARGUMENT, "both");
    assert_fails(pc_classifier_set_class_names(c, (const char *const[]){"a", "", "b"}, 3), PC_ERR_ARGUMENT, "empty");
    assert_text(c, "6x6 RGB by nearest neighbour, pixels times 1/255 (assumed: the file does not say)");
    assert_null(pc_classifier_class_name(c, 3));
    pc_classifier_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_does_not_say_is_assumed_and_told),
        cmocka_unit_test(what_is_given_is_done),
        cmocka_unit_test(layers_in_front),
        cmocka_unit_test(a_layer_in_one_branch_says_nothing),
        cmocka_unit_test(pictures_of_any_size),
        cmocka_unit_test(notes_over_layers_in_front),
        cmocka_unit_test(noting_writes_it_into_the_file),
        cmocka_unit_test(notes_in_files_of_keras),
        cmocka_unit_test(a_rescaling_layer_keeps_it),
        cmocka_unit_test(names_that_do_not_fit_are_left_out),
        cmocka_unit_test(pictures_in_memory),
        cmocka_unit_test(the_probability_is_that_of_the_named_class),
        cmocka_unit_test(weights_that_are_no_numbers_name_no_class),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("train.preparation", tests, open_folder, tidy);
}
