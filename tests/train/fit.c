/* pc_fit, pc_evaluate and pc_predict: the loop for programs, stopping, and going on from a checkpoint. */
#include <paracord-tools/draw.h>
#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

static char folder[64], checkpoint[96];

static int draw(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/paracord-fit-%d", (int)getpid());
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", folder);
#ifdef PC_HAVE_JPEG
    return pc_draw_picture_set(folder, PC_OPTIONS(pc_draw_options, .train = 24, .test = 8, .size = 40)) != PC_OK;
#else
    return 0;
#endif
}

static int remove_all(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void needs_jpeg(void)
{
#ifndef PC_HAVE_JPEG
    skip();
#endif
}

typedef struct job {
    pc_module *net;
    pc_optimizer *adam;
    pc_loader *train, *test;
} job;

static job start(void)
{
    char train[96], test[96];
    snprintf(train, sizeof train, "%s/train", folder);
    snprintf(test, sizeof test, "%s/test", folder);
    pc_seed(3);
    job j;
    j.net = on_device(pc_sequential(pc_conv2d(3, 8, 3, .stride = 2, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                    pc_batch_norm2d(8), pc_flatten(), pc_dropout(0.2), pc_linear(8 * 3 * 3, 1)));
    j.adam = pc_adam(j.net, .lr = 3e-3);
    j.train =
        pc_loader(train, .size = 16, .batch = 7, .shuffle = true, .flip = true, .seed = 1, .device = test_device());
    j.test = pc_loader(test, .size = 16, .batch = 5, .device = test_device());
    assert_not_null_ok(j.train);
    assert_not_null_ok(j.test);
    return j;
}

static void finish(job *j)
{
    pc_loader_free(j->train);
    pc_loader_free(j->test);
    pc_optimizer_free(j->adam);
    pc_module_free(j->net);
}

static bool same_weights(const pc_module *a, const pc_module *b)
{
    pc_parameter x[16], y[16];
    int n = pc_module_state_list(a, x, 16), different = 0;
    pc_module_state_list(b, y, 16);
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            different += pc_item(pc_sum(pc_ne(x[i].tensor, y[i].tensor))) != 0;
        }
    return !different;
}

static int polls;

static bool stop_later(void *context)
{
    return ++polls == *(int *)context;
}

static void a_stopped_training_goes_on_to_the_same_bits(void **state)
{
    (void)state;
    needs_jpeg();
    pc_epoch_result last, last_again;
    job whole = start();
    assert_ok(
        pc_fit(whole.net, whole.adam, whole.train, PC_OPTIONS(pc_fit_options, .epochs = 3, .test = whole.test), &last));
    assert_int_equal(last.epoch, 3);
    assert_true(last.has_test);

    int after = 10; /* batches: in the middle of the second epoch */
    pc_train_callbacks callbacks = {.context = &after, .stop = stop_later};
    pc_fit_options options = {.epochs = 3, .callbacks = &callbacks, .checkpoint = checkpoint, .settings = "lr=0.003\n"};
    job first = start();
    options.test = first.test;
    assert_ok(pc_fit(first.net, first.adam, first.train, options, &last_again));
    assert_int_equal(last_again.epoch, 1);
    assert_false(same_weights(first.net, whole.net));
    finish(&first);

    job second = start();
    pc_seed(99); /* the checkpoint brings the generator back */
    options.resume = true;
    options.callbacks = NULL;
    options.test = second.test;
    assert_ok(pc_fit(second.net, second.adam, second.train, options, &last_again));
    assert_true(same_weights(second.net, whole.net));
    assert_true(last_again.loss == last.loss && last_again.test_accuracy == last.test_accuracy);
    options.settings = "lr=0.1\n";
    assert_fails(pc_fit(second.net, second.adam, second.train, options, NULL), PC_ERR_STATE, "lr=0.1");
    finish(&second);
    finish(&whole);
}

static void evaluate_and_predict_agree(void **state)
{
    (void)state;
    needs_jpeg();
    job j = start();
    assert_ok(pc_fit(j.net, j.adam, j.train, PC_OPTIONS(pc_fit_options, .epochs = 2), NULL));
    pc_score score;
    assert_ok(pc_evaluate(j.net, j.test, &score));
    assert_int_equal(score.count, 16);
    int64_t right = 0;
    pc_batch batch;
    assert_ok(pc_loader_seek(j.test, 0, 0));
    while (pc_loader_next(j.test, &batch))
        PC_SCOPE {
            pc_tensor *p = pc_predict(j.net, batch.x);
            pc_tensor *named = pc_cast(pc_ge(p, pc_scalar(0.5, PC_F32, test_device())), PC_F32);
            right += (int64_t)pc_item(pc_sum(pc_eq(named, batch.y)));
            assert_false(pc_requires_grad(p));
        }
    assert_int_equal(right, score.correct);
    assert_true(pc_module_is_training(j.net));
    assert_fails(pc_fit(j.net, j.adam, j.train, PC_OPTIONS(pc_fit_options, .mixed = (pc_mixed)7), NULL),
                 PC_ERR_ARGUMENT, "mixed precision 7");
    assert_fails(pc_fit(NULL, j.adam, j.train, PC_OPTIONS(pc_fit_options, .epochs = 1), NULL), PC_ERR_ARGUMENT,
                 "pc_fit");
    assert_ok(pc_module_to(j.net, test_device(), PC_F64));
    assert_fails(pc_fit(j.net, j.adam, j.train, PC_OPTIONS(pc_fit_options, .epochs = 1), NULL), PC_ERR_ARGUMENT,
                 "has no parameter of the network");
    finish(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_training_goes_on_to_the_same_bits),
        cmocka_unit_test(evaluate_and_predict_agree),
    };
    return cmocka_run_group_tests_name("train.fit", tests, draw, remove_all);
}
