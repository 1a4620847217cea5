/* Label smoothing and mixup: shares and blends, losses by hand, what is refused; and a whole run of normalised pictures,
 * whose file says what was done to them. That both go on exactly from a checkpoint is tested in resume.c. */
#include "group.h"

#include "device.h"
#include "io/file.h"
#include "train/mix.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/classifier.h>
#include <paracord/loss.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/samples.h>
#include <paracord/threads.h>

enum { PICTURES = 9, BATCH = 4 };

static int prepare(void **state)
{
    open_folder(state);
    put_classes(placed(root.s, "two/train/").s, (const char *[]){"cat", "dog"}, 2, PICTURES);
    put_classes(placed(root.s, "two/test/").s, (const char *[]){"cat", "dog"}, 2, PICTURES);
    put_classes(placed(root.s, "three/").s, (const char *[]){"ant", "bee", "cow"}, 3, PICTURES);
    return 0;
}

/* --- shares --- */

/* Shares of many batches, from the smallest. */
static void draw(double alpha, double *shares, int n)
{
    pc__mix mix;
    pc_seed(3);
    assert_ok(pc__mix_open(&mix, 0, (double[]){alpha, 0}, test_device()));
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            const pc_batch batch = {.x = pc_ones(PC_SHAPE(2, 1), PC_F32, test_device()),
                                    .y = pc_zeros(PC_SHAPE(2), PC_I64, test_device()),
                                    .n = 2,
                                    .tensors = 2};
            pc__blended blended;
            assert_ok(pc__mix_batch(&mix, &batch, &blended));
            shares[i] = pc_item(blended.share);
        }
    pc__mix_close(&mix);
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && shares[k] < shares[k - 1]; k--) {
            const double low = shares[k];
            shares[k] = shares[k - 1], shares[k - 1] = low;
        }
}

/* The lesser of l and 1 - l, l of Beta(alpha, alpha): quartiles, which torch.distributions.Beta has too. */
static void shares_are_of_the_beta_distribution(void **state)
{
    (void)state;
    enum { N = 1500 };
    static const struct {
        double alpha, quartile, median, upper;
    } want[] = {{1, 0.125, 0.25, 0.375},
                {0.2, 0.000756, 0.023815, 0.163421},
                {8, 0.357014, 0.414987, 0.459609},
                {32, 0.428197, 0.457755, 0.480015},
                {100, 0.459346, 0.476137, 0.488722}};
    for (int i = 0; i < PC__COUNT(want); i++) {
        double shares[N];
        draw(want[i].alpha, shares, N);
        assert_true(shares[0] >= 0 && shares[N - 1] <= 0.5);
        const double near = want[i].alpha > 8 ? 0.005 : 0.025;
        assert_close(shares[N / 4], want[i].quartile, near);
        assert_close(shares[N / 2], want[i].median, near);
        assert_close(shares[3 * N / 4], want[i].upper, near);
    }
}

/* --- a batch --- */

static void assert_blend(pc_tensor *x, pc_tensor *blended, double share)
{
    enum { MOST = 64 };
    float was[MOST], is[MOST];
    const int64_t n = pc_tensor_size(x, 0), all = pc_tensor_count(x), row = all / n;
    assert_in_range(all, 1, MOST);
    assert_ok(pc_read(x, was, (size_t)all * sizeof *was));
    assert_ok(pc_read(blended, is, (size_t)all * sizeof *is));
    for (int64_t i = 0; i < all; i++)
        assert_close(is[i], (1 - share) * was[i] + share * was[(i + all - row) % all], 1e-6);
}

static void batches_are_blended_with_themselves(void **state)
{
    (void)state;
    pc__mix mix;
    assert_ok(pc__mix_open(&mix, 0, (double[]){1, 0}, test_device()));
    for (int64_t n = 1; n <= BATCH; n++)
        PC_SCOPE {
            pc_tensor *plain = pc_rand(PC_SHAPE(n, 2, 2, 3), PC_F32, test_device());
            pc_tensor *x[] = {pc_permute(plain, PC_SHAPE(0, 3, 1, 2)), plain,
                              pc_rand(PC_SHAPE(n, 5), PC_F32, test_device())};
            pc_tensor *y = pc_arange(0, (double)n, 1, PC_I64, test_device());
            for (int i = 0; i < PC__COUNT(x); i++) {
                const pc_batch batch = {.x = x[i], .y = y, .n = n, .tensors = 2, .tensor = {x[i], y}};
                pc__blended blended;
                int64_t partner[BATCH];
                assert_ok(pc__mix_batch(&mix, &batch, &blended));
                assert_blend(x[i], blended.batch.x, pc_item(blended.share));
                for (int k = 0; k < pc_tensor_ndim(x[i]); k++)
                    assert_int_equal(pc_tensor_stride(blended.batch.x, k), pc_tensor_stride(x[i], k));
                assert_ok(pc_read(blended.partner, partner, (size_t)n * sizeof *partner));
                for (int64_t k = 0; k < n; k++)
                    assert_int_equal(partner[k], (k + n - 1) % n);
            }
        }
    pc__mix_close(&mix);
}

/* Of pictures that each have one colour: a rectangle is the partner's, and the share is its area. With `both`, half of the
 * batches are blended everywhere. Returns the mean share of the others. */
static double cut_pictures(double alpha, bool both, int batches)
{
    enum { N = 3, HEIGHT = 10, WIDTH = 14, SIZE = HEIGHT * WIDTH };
    pc__mix mix;
    int cuts = 0;
    double sum = 0;
    pc_seed(5);
    assert_ok(pc__mix_open(&mix, 0, (double[]){both ? 1 : 0, alpha}, test_device()));
    for (int i = 0; i < batches; i++)
        PC_SCOPE {
            float is[N * SIZE];
            pc_tensor *y = pc_arange(0, N, 1, PC_F32, test_device());
            pc_tensor *x = pc_add(pc_reshape(y, PC_SHAPE(N, 1, 1, 1)),
                                  pc_zeros(PC_SHAPE(1, 1, HEIGHT, WIDTH), PC_F32, test_device()));
            const pc_batch batch = {.x = x, .y = y, .n = N, .tensors = 2, .tensor = {x, y}};
            pc__blended blended;
            assert_ok(pc__mix_batch(&mix, &batch, &blended));
            const double share = pc_item(blended.share);
            assert_ok(pc_read(blended.batch.x, is, sizeof is));
            int top = HEIGHT, bottom = -1, left = WIDTH, right = -1, cut = 0;
            bool whole = true;
            for (int k = 0; k < SIZE; k++) {
                const bool partner = is[SIZE + k] == 0,
                           own = is[SIZE + k] == 1; /* the second picture's partner is the first */
                whole = whole && (partner || own);
                for (int p = 0; p < N && (partner || own); p++)
                    assert_true(is[p * SIZE + k] == (float)(partner ? (p + N - 1) % N : p));
                if (!partner)
                    continue;
                cut++;
                top = k / WIDTH < top ? k / WIDTH : top, bottom = k / WIDTH > bottom ? k / WIDTH : bottom;
                left = k % WIDTH < left ? k % WIDTH : left, right = k % WIDTH > right ? k % WIDTH : right;
            }
            if (!whole)
                continue;
            assert_close(share, (double)cut / SIZE, 1e-6);
            assert_int_equal(cut, cut ? (bottom - top + 1) * (right - left + 1) : 0);
            sum += share;
            cuts++;
        }
    pc__mix_close(&mix);
    assert_close(cuts, both ? batches / 2.0 : batches, both ? 60 : 0);
    return sum / cuts;
}

static void parts_are_cut_out(void **state)
{
    (void)state;
    enum { BATCHES = 700 };
    assert_close(cut_pictures(1, false, BATCHES), 0.260,
                 0.03); /* means of torchvision's v2.CutMix, of 10 x 14 pixels */
    assert_close(cut_pictures(0.2, true, BATCHES), 0.234, 0.05);
    PC_SCOPE {
        pc__mix mix;
        pc_tensor *x = pc_ones(PC_SHAPE(2, 3), PC_F32, test_device()),
                  *y = pc_zeros(PC_SHAPE(2), PC_I64, test_device());
        const pc_batch batch = {.x = x, .y = y, .n = 2, .tensors = 2, .tensor = {x, y}};
        pc__blended blended;
        assert_ok(pc__mix_open(&mix, 0, (double[]){0, 1}, test_device()));
        assert_fails(pc__mix_batch(&mix, &batch, &blended) == PC_OK, PC_ERR_SHAPE, "takes pictures");
        pc__mix_close(&mix);
    }
}

/* --- losses --- */

/* Of smoothed and blended targets as probabilities, by the op that takes those. */
static void the_loss_is_that_of_blended_targets(void **state)
{
    (void)state;
    enum { CLASSES = 3 };
    static const int64_t labels[BATCH] = {2, 0, 1, 1};
    const double smoothing = 0.2;
    pc__mix mix;
    assert_ok(pc__mix_open(&mix, smoothing, (double[]){1, 0}, test_device()));
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(BATCH, CLASSES), PC_F32, test_device());
        pc_tensor *y = pc_from_data(labels, PC_SHAPE(BATCH), PC_I64, test_device());
        const pc_batch batch = {.x = x, .y = y, .n = BATCH, .tensors = 2, .tensor = {x, y}};
        const pc__judge judge = {.named = true};
        pc__blended blended;
        float target[BATCH][CLASSES];
        assert_ok(pc__mix_batch(&mix, &batch, &blended));
        const double share = pc_item(blended.share);
        for (int i = 0; i < BATCH; i++)
            for (int k = 0; k < CLASSES; k++) {
                const double own = labels[i] == k, other = labels[(i + BATCH - 1) % BATCH] == k;
                target[i][k] = (float)((1 - smoothing) * ((1 - share) * own + share * other) + smoothing / CLASSES);
            }
        pc_tensor *targets = pc_from_data(target, PC_SHAPE(BATCH, CLASSES), PC_F32, test_device());
        const double want = pc_item(pc_fn_cross_entropy(x, targets, (pc_fn_cross_entropy_options){.ignore = false}));
        assert_close(pc_item(pc__mix_loss(&mix, &judge, x, &blended, NULL)), want, 1e-5);
    }
    pc__mix_close(&mix);
}

static double epoch_loss;

static void epoch(void *context, const pc_epoch_result *result)
{
    (void)context;
    epoch_loss = result->loss;
}

static pc_train_summary train(const char *data, const char *out, pc_train_options s)
{
    static const pc_train_callbacks callbacks = {.epoch = epoch};
    pc_train_summary summary;
    s.data = joined(root.s, data).s;
    s.out = out;
    s.device = test_device_name();
    s.batch = BATCH;
    s.size = s.height ? 0 : 8;
    s.arch = "mlp";
    s.callbacks = &callbacks;
    assert_ok(pc_train_folder(s, &summary));
    return summary;
}
#define TRAIN(data, out, ...) train((data), (out), (pc_train_options){.reserved_ = 0, __VA_ARGS__})

static double minus_log(double p, double target)
{
    return -target * log(p);
}

/* The mean over a folder's training pictures of the loss with smoothing, from what the saved network says. */
static double loss_by_hand(const char *out, const char *folder, const char *const *classes, int count, double smoothing)
{
    double sum = 0;
    pc_classifier *c = pc_classifier_open(out, test_device_name());
    assert_not_null_ok(c);
    for (int class = 0; class < count; class ++)
        for (int i = 0; i < PICTURES; i++) {
            char name[64];
            float p[3];
            pc_prediction told;
            snprintf(name, sizeof name, "%s/%s/%c%02d.%s", folder, classes[class], 'a' + i % 3, i,
                     i % 2 ? "png" : "jpg");
            assert_ok(pc_classifier_predict_all(c, joined(root.s, name).s, &told, p));
            for (int k = 0; k < count; k++)
                sum += minus_log(p[k], (1 - smoothing) * (k == class) + smoothing / count);
        }
    pc_classifier_free(c);
    return sum / (count * PICTURES);
}

/* With weights that do not move. */
static void smoothed_losses_of_runs(void **state)
{
    (void)state;
    static const char *const two[] = {"cat", "dog"}, *const three[] = {"ant", "bee", "cow"};
    test_path out = joined(root.s, "still");
    pc_train_summary s = TRAIN("two", out.s, .epochs = 1, .lr = 1e-30, .label_smoothing = 0.3, .normalise = "0.4,0.3");
    assert_close(epoch_loss, loss_by_hand(out.s, "two/train", two, 2, 0.3), 1e-5);
    assert_close(s.test_loss, loss_by_hand(out.s, "two/test", two, 2, 0), 1e-5); /* what is measured is not smoothed */
    (void)TRAIN("three", out.s, .epochs = 1, .lr = 1e-30, .label_smoothing = 0.1, .normalise = "imagenet");
    assert_close(epoch_loss, loss_by_hand(out.s, "three", three, 3, 0.1), 1e-5);
    const double smoothed = epoch_loss;
    (void)TRAIN("three", out.s, .epochs = 1, .lr = 1e-30, .label_smoothing = 0.1, .normalise = "imagenet",
                .class_weights = "balanced"); /* classes of one size: weights of 1 */
    assert_close(epoch_loss, smoothed, 1e-5);
}

/* --- runs --- */

/* What the run measured at its end is what its file's network gives when it is asked as any model. */
static void files_tell_mean_and_std(void **state)
{
    (void)state;
    test_path out = joined(root.s, "normal");
    pc_evaluation e;
    pc_train_summary s = TRAIN("two", out.s, .epochs = 2, .normalise = "imagenet", .mixup = 0.4, .keep = "last");
    pc_classifier *c = pc_classifier_open(out.s, test_device_name());
    assert_not_null_ok(c);
    const pc_preparation p = pc_classifier_preparation(c);
    char *text = pc_preparation_text(&p);
    assert_string_equal(text, "8x8 RGB by nearest neighbour, pixels times 1/255, less 0.485,0.456,0.406, over "
                              "0.229,0.224,0.225 (noted in the file)");
    pc_text_free(text);
    assert_ok(pc_classifier_evaluate(c, joined(root.s, "two").s, BATCH, NULL, &e));
    assert_close(e.loss, s.test_loss, 1e-6);
    assert_true(e.accuracy == s.test_accuracy);
    pc_evaluation_free(&e);
    pc_classifier_free(c);
}

/* Prepared by the middle of the picture, in training, in evaluation, of a file and of a picture in memory. */
static void files_tell_the_middle(void **state)
{
    (void)state;
    test_path out = joined(root.s, "middle"), picture = joined(root.s, "two/test/cat/a00.jpg");
    pc_evaluation e;
    pc_prediction p;
    pc_image image;
    float of_file[2], of_image[2];
    pc_train_summary s = TRAIN("two", out.s, .epochs = 2, .shorter = 9, .height = 7, .width = 8, .keep = "last");
    pc_classifier *c = pc_classifier_open(out.s, test_device_name());
    assert_not_null_ok(c);
    const pc_preparation told = pc_classifier_preparation(c);
    assert_int_equal(told.shorter, 9);
    assert_ok(pc_classifier_evaluate(c, joined(root.s, "two").s, BATCH, NULL, &e));
    assert_close(e.loss, s.test_loss, 1e-6);
    pc_evaluation_free(&e);
    assert_ok(pc_classifier_predict_all(c, picture.s, &p, of_file));
    assert_ok(pc_image_read(picture.s, PC_OPTIONS(pc_image_options, .channels = 3), &image));
    assert_ok(pc_classifier_predict_images(c, &image, 1, 1, of_image));
    assert_memory_equal(of_file, of_image, sizeof of_file);
    pc_preparation other = told;
    other.shorter = 6;
    assert_fails(pc_classifier_set_preparation(c, &other) == PC_OK, PC_ERR_ARGUMENT, "shorter side of 6");
    other.shorter = 0;
    assert_ok(pc_classifier_set_preparation(c, &other));
    assert_ok(pc_classifier_predict_images(c, &image, 1, 1, of_image));
    assert_true(of_file[0] != of_image[0]);
    pc_image_free(&image);
    pc_classifier_free(c);
}

static void what_is_refused(void **state)
{
    (void)state;
    pc_train_summary summary;
    test_path data = joined(root.s, "two"), out = joined(root.s, "refused");
    const pc_train_options plain = {.data = data.s, .out = out.s, .size = 8, .epochs = 1, .device = test_device_name()};
    pc_train_options o = plain;
    o.label_smoothing = 1;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "label smoothing of 1");
    o = plain, o.mixup = -1;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "mixup of -1");
    o = plain, o.cutmix = 1000;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "cutmix of 1000");
    static const char *const words[] = {"imagnet",       "0.5",   "0.5,0", "0.5,", "1,2,3",
                                        "1,2,3,4,5,6,7", "nan,1", "",      "1,2x"};
    for (int i = 0; i < PC__COUNT(words); i++) {
        o = plain, o.normalise = words[i];
        assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "normalise \"");
    }
    o = plain, o.crop = 1.5;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "crop is 1.5");
    o = plain, o.fill = "white";
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "there is no fill \"white\"");
    o = plain, o.hue = 0.7;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "hues turned by up to 0.7");
    o = plain, o.normalise = "imagenet", o.channels = 1;
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_ARGUMENT, "grey");
    assert_ok(pc_train_folder(plain, &summary));
    o = plain, o.resume = true, o.mixup = 0.2; /* another training */
    assert_fails(pc_train_folder(o, &summary) == PC_OK, PC_ERR_STATE, "--mixup");
}

/* pc_fit takes both where there are labels, and mixup of other numbers too. */
static void fits_of_tensors(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(8, 3), PC_F32, PC_DEVICE_CPU);
        pc_tensor *labels = pc_from_data((int64_t[]){0, 1, 1, 0, 1, 0, 0, 1}, PC_SHAPE(8), PC_I64, PC_DEVICE_CPU);
        pc_tensor *prices = pc_randn(PC_SHAPE(8, 2), PC_F32, PC_DEVICE_CPU);
        pc_module *net = pc_linear(3, 2);
        pc_optimizer *sgd = pc_sgd(net, .lr = 0.01);
        pc_loader *a = pc_loader_from_tensors(x, labels, .batch = 3),
                  *b = pc_loader_from_tensors(x, prices, .batch = 3);
        assert_not_null_ok(a);
        assert_not_null_ok(b);
        pc_epoch_result last;
        assert_ok(pc_fit(net, sgd, a, (pc_fit_options){.epochs = 2, .mixup = 0.3, .label_smoothing = 0.1}, &last));
        assert_true(isfinite(last.loss));
        assert_ok(pc_fit(net, sgd, b, (pc_fit_options){.epochs = 2, .mixup = 0.3}, &last));
        assert_fails(pc_fit(net, sgd, b, (pc_fit_options){.label_smoothing = 0.1}, &last) == PC_OK, PC_ERR_ARGUMENT,
                     "y is no labels but float32");
        pc_loader_free(a);
        pc_loader_free(b);
        pc_optimizer_free(sgd);
        pc_module_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_are_of_the_beta_distribution),
                                       cmocka_unit_test(batches_are_blended_with_themselves),
                                       cmocka_unit_test(parts_are_cut_out),
                                       cmocka_unit_test(the_loss_is_that_of_blended_targets),
                                       cmocka_unit_test(smoothed_losses_of_runs),
                                       cmocka_unit_test(files_tell_mean_and_std),
                                       cmocka_unit_test(files_tell_the_middle),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(fits_of_tensors)};
    return cmocka_run_group_tests_name("train.mix", tests, prepare, tidy);
}
