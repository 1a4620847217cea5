/* classifier_predict.c: asking a trained network about pictures. */
#include "io/codec.h"
#include "train/classifier.h"
#include "train/score.h"

#include <math.h>
#include <paracord/augment.h>
#include <paracord/autograd.h>

enum { BATCH = 32 };

/* The size that a picture is brought to. Where the network takes any and none was set, it keeps its own. */
static pc__frame frame_of(const pc_classifier *c, const pc_image *image)
{
    const pc_preparation *p = &c->model.file.preparation;
    return (pc__frame){p->height ? p->height : image->height, p->width ? p->width : image->width, p->channels};
}

static size_t size_of(pc__frame frame)
{
    return (size_t)frame.height * (size_t)frame.width * (size_t)frame.channels;
}

/* One picture as numbers: height x width x channels floats. `fits`: it has been brought to the size. */
static pc_status prepare(const pc_classifier *c, const pc_image *image, pc__frame frame, bool fits, float *out)
{
    const pc_preparation *p = &c->model.file.preparation;
    pc_image fitting;
    PC__TRY(pc__image_cover(image, frame.width, frame.height, fits ? 0 : p->shorter, p->resize, &fitting));
    pc_status status = pc__image_set_channels(&fitting, frame.channels);
    pc_augment plan = {.rescale = p->rescale};
    pc_augment_values neutral = pc_augment_neutral();
    if (status == PC_OK)
        status = pc_augment_apply(&plan, &neutral, fitting.pixels, frame.height, frame.width, frame.channels, out);
    pc_image_free(&fitting);
    return status;
}

pc_status pc__classifier_check_answers(const pc_classifier *c, const float *answers, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(answers[i]))
            return pc__fail(
                PC_ERR_FORMAT,
                "%s: the network's answer is not a number: its weights hold NaN or overflow; train it again "
                "with a lower learning rate",
                c->path);
    return PC_OK;
}

/* The network's answers as probabilities of all classes; with one output, of the second. */
static pc_status answer(const pc_classifier *c, const float *pixels, int64_t n, pc__frame frame, float *probabilities)
{
    const int64_t classes = c->model.file.class_count;
    pc_status status = PC_OK;
    int64_t width = 0;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *x =
                pc_from_data(pixels, PC_SHAPE(n, frame.height, frame.width, frame.channels), PC_F32, c->device);
            pc_tensor *logits = pc_forward(c->net, pc_permute(x, PC_SHAPE(0, 3, 1, 2)));
            width = logits ? pc_tensor_size(logits, 1) : 0;
            pc_tensor *answers = width == 1 ? pc_sigmoid(logits) : pc_softmax(logits, 1);
            status = pc_read(answers, probabilities, (size_t)(n * width) * sizeof *probabilities);
        }
    }
    PC__TRY(status);
    PC__TRY(pc__classifier_check_answers(c, probabilities, n * width));
    for (int64_t i = n; width == 1 && classes == 2 && i-- > 0;) {
        float second = probabilities[i];
        probabilities[2 * i] = 1 - second, probabilities[2 * i + 1] = second;
    }
    return PC_OK;
}

/* How many of the first pictures are brought to the same size. */
static int64_t alike(const pc_classifier *c, const pc_image *images, int64_t n)
{
    const pc__frame first = frame_of(c, images);
    int64_t count = 1;
    for (; count < n; count++) {
        const pc__frame next = frame_of(c, &images[count]);
        if (next.height != first.height || next.width != first.width)
            break;
    }
    return count;
}

static pc_status predict_alike(const pc_classifier *c, const pc_image *images, int64_t n, bool fit,
                               float *probabilities)
{
    const pc__frame frame = frame_of(c, images);
    const size_t each = size_of(frame);
    float *pixels = pc__alloc((size_t)n * each * sizeof *pixels);
    pc_status status = pixels ? PC_OK : PC_ERR_MEMORY;
    for (int64_t i = 0; i < n && status == PC_OK; i++)
        status = prepare(c, &images[i], frame, fit, pixels + (size_t)i * each);
    if (status == PC_OK)
        status = answer(c, pixels, n, frame, probabilities);
    pc__free(pixels);
    return status;
}

pc_status pc_classifier_predict_images(pc_classifier *c, const pc_image *images, int64_t n, int batch,
                                       float *probabilities)
{
    PC__NEED(c);
    if (n < 0 || batch < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_classifier_predict_images: %lld pictures in batches of %d", (long long)n,
                        batch);
    if (n) {
        PC__NEED(images);
        PC__NEED(probabilities);
    }
    for (int64_t i = 0; i < n; i++)
        if (!images[i].pixels)
            return pc__fail(PC_ERR_ARGUMENT, "a picture to predict has no pixels");
    const int64_t room = PC__MIN(n, batch ? batch : BATCH);
    for (int64_t from = 0, count; from < n; from += count) {
        count = alike(c, images + from, PC__MIN(n - from, room));
        PC__TRY(predict_alike(c, images + from, count, false, probabilities + from * c->model.file.class_count));
    }
    return PC_OK;
}

pc_prediction pc_classifier_decide(const pc_classifier *c, const float *probabilities)
{
    pc_prediction p = {.sigmoid = NAN, .probability = NAN, .label = -1};
    PC__NEED_OR(p, c);
    PC__NEED_OR(p, probabilities);
    const int classes = c->model.file.class_count;
    for (int i = 0; i < classes; i++)
        if (!isfinite(probabilities[i]))
            return p;
    const bool sigmoid = c->model.file.head == PC_KERAS_SIGMOID;
    /* A sigmoid of 0.5 names the second class. */
    p.label = sigmoid ? probabilities[1] >= 0.5f : pc__named_class(probabilities, classes);
    p.sigmoid = sigmoid ? (double)probabilities[1] : NAN;
    p.probability = (double)probabilities[p.label];
    p.name = c->model.names[p.label];
    return p;
}

static pc_status predict_file(pc_classifier *c, const char *picture, float *probabilities, pc_image_damage *damage)
{
    const pc_preparation *p = &c->model.file.preparation;
    pc_image_options options = {.channels = p->channels,
                                .width = p->height ? p->width : 0, /* both, or its own size */
                                .height = p->width ? p->height : 0,
                                .shorter = p->width && p->height ? p->shorter : 0,
                                .resize = p->resize,
                                .no_exif = p->no_exif,
                                .damage = damage};
    pc_image image;
    PC__TRY(pc_image_read(picture, options, &image));
    pc_status status = predict_alike(c, &image, 1, options.width > 0, probabilities);
    pc_image_free(&image);
    return status;
}

pc_status pc_classifier_predict_all(pc_classifier *c, const char *picture, pc_prediction *prediction,
                                    float *probabilities)
{
    PC__NEED(prediction);
    *prediction = (pc_prediction){.label = -1, .probability = NAN, .sigmoid = NAN};
    PC__NEED(c);
    PC__NEED(picture);
    float *row = pc__alloc((size_t)c->model.file.class_count * sizeof *row);
    if (!row)
        return PC_ERR_MEMORY;
    pc_image_damage damage;
    pc_status status = predict_file(c, picture, row, &damage);
    if (status == PC_OK) {
        *prediction = pc_classifier_decide(c, row);
        memcpy(prediction->damage, damage.words, sizeof prediction->damage);
    }
    if (status == PC_OK && probabilities)
        memcpy(probabilities, row, (size_t)c->model.file.class_count * sizeof *row);
    pc__free(row);
    return status;
}

pc_status pc_classifier_predict(pc_classifier *c, const char *picture, pc_prediction *prediction)
{
    PC__NEED(c);
    PC__NEED(picture);
    PC__NEED(prediction);
    return pc_classifier_predict_all(c, picture, prediction, NULL);
}
