/* regression.c: numbers from numbers: a network learns the strength of concrete-like mixtures from tensors, with a rate
 * that warms up and falls along a cosine, clipped gradients, early stopping, and the best epoch's weights at the end.
 * peers/regression.py is the same in PyTorch. */
#include <paracord.h>

enum { SAMPLES = 2000, INPUTS = 8 };

static pc_tensor *mean_absolute_error(void *context, pc_tensor *outputs, const pc_batch *batch)
{
    (void)context;
    return pc_mean(pc_abs(pc_sub(outputs, batch->y)));
}

static void tell(void *context, const pc_epoch_result *r)
{
    (void)context;
    if (r->epoch % 10 == 0)
        printf("epoch %3d  loss %.4f  test loss %.4f  mae %.4f\n", r->epoch, r->loss, r->test_loss, r->metric[0]);
}

int main(void)
{
    pc_seed(1);
    pc_tensor *x = pc_randn(PC_SHAPE(SAMPLES, INPUTS), PC_F32, PC_DEVICE_CPU), *y = NULL;
    PC_SCOPE { /* y = sin(a) + b c - |d| + noise */
        pc_tensor *a = pc_slice(x, 1, 0, 1, 1), *b = pc_slice(x, 1, 1, 2, 1), *c = pc_slice(x, 1, 2, 3, 1);
        pc_tensor *clean = pc_sub(pc_add(pc_sin(a), pc_mul(b, c)), pc_abs(pc_slice(x, 1, 3, 4, 1)));
        pc_tensor *noise = pc_mul_scalar(pc_randn(PC_SHAPE(SAMPLES, 1), PC_F32, PC_DEVICE_CPU), 0.1);
        y = pc_keep(pc_add(clean, noise));
    }
    pc_batch_options part = {.batch = 64, .shuffle = true, .split = PC_SPLIT_TRAINING, .validation_share = 0.2};
    pc_loader *train = pc_loader_new_pair(x, y, part);
    part.split = PC_SPLIT_VALIDATION;
    pc_loader *test = pc_loader_new_pair(x, y, part);

    pc_module *net = pc_sequential(pc_linear(INPUTS, 64, .activation = PC_ACTIVATION_RELU),
                                   pc_linear(64, 64, .activation = PC_ACTIVATION_RELU), pc_linear(64, 1));
    pc_optimizer *adam = pc_adamw(net, .lr = 3e-3);
    const pc_metric error = {"mae", mean_absolute_error, false};
    const pc_train_callbacks callbacks = {.epoch = tell};
    pc_fit_options options = {.epochs = 100,
                              .test = test,
                              .schedule = {.kind = PC_SCHEDULE_COSINE, .warmup = 50},
                              .early_stop = 15,
                              .keep_best = true,
                              .metrics = &error,
                              .metric_count = 1,
                              .callbacks = &callbacks};
    pc_score best;
    if (pc_optimizer_set_clip(adam, PC_CLIP_NORM, 1) != PC_OK || pc_fit(net, adam, train, options, NULL) != PC_OK ||
        pc_evaluate_by(net, test, options, &best) != PC_OK)
        return pc_report(stderr);
    printf("kept: test loss %.4f  mae %.4f\n", best.loss, best.metric[0]);

    pc_optimizer_free(adam);
    pc_module_free(net);
    pc_loader_free(train);
    pc_loader_free(test);
    pc_tensor_free(x);
    pc_tensor_free(y);
    return pc_failed() ? pc_report(stderr) : 0;
}
