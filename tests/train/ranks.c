/* pc_fit in several ranks: the weights and figures of one device with the whole batches, at any number of ranks; going on at
 * another number; one decision for all; one error for all. */
#include "device.h"

#include "../data/pictures.h"
#include "../dist/threads.h"

#include <math.h>

enum { COUNT = 25, BATCH = 6, WIDTH = 5, CLASSES = 3, TESTED = 7, EPOCHS = 3, MOST = 4096, NUMBER = 4, CALLS = 16 };

enum { NORMED = 9 }; /* batches that leave each rank more than one sample */

static test_path root;

static int set_up(void **state)
{
    (void)state;
    root = new_root();
    put_classes(placed(root.s, "data/").s, (const char *[]){"ant", "bee", "cow"}, 3, 3);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

typedef enum kind { TENSORS, PICTURES, PRICES, HOST } kind;

typedef struct job {
    kind kind;
    bool norm, adam, frozen;
    double mixup, dropout;
    int epochs, early_stop, batch;
    pc_mixed mixed;
    const char *checkpoint;
    bool resume, keep_best;
    int stop_rank, stop_after; /* this rank's callback says stop when it is asked that often; 0: never */
    int bad_sample;            /* it is NaN; 0: none */
    int fails_in, fails_at;    /* a rank, and the sample that its loader cannot make; 0: none */
    int other_batch_in;        /* a rank; 0: none */
    /* what came of it */
    pc_epoch_result want;
    float weights[MOST];
    int64_t numbers;
} job;

static pc_tensor *values(int n, int width, int bad)
{
    float x[COUNT * WIDTH];
    for (int i = 0; i < n * width; i++)
        x[i] = sinf((float)(i * i + n));
    if (bad)
        x[bad * width] = NAN;
    return pc_from_data(x, PC_SHAPE(n, width), PC_F32, PC_DEVICE_CPU);
}

static pc_tensor *labels(int n)
{
    int64_t y[COUNT];
    for (int i = 0; i < n; i++)
        y[i] = (i * 7 / 3) % CLASSES;
    return pc_from_data(y, PC_SHAPE(n), PC_I64, PC_DEVICE_CPU);
}

static pc_status write_sample(void *context, int64_t sample, int64_t epoch, void *const *to)
{
    const int *failing = context;
    (void)epoch;
    if (*failing && sample == *failing)
        return pc_fail(PC_ERR_FILE, "sample %d cannot be made", *failing);
    for (int i = 0; i < WIDTH; i++)
        ((float *)to[0])[i] = sinf((float)(sample * WIDTH + i));
    *(int64_t *)to[1] = sample % CLASSES;
    return PC_OK;
}

/* 9 pictures by 4: the last batch is one. */
static pc_loader *pictures(pc_device device, bool training)
{
    return pc_loader(joined(root.s, "data").s, .size = 8, .batch = 4, .shuffle = training, .seed = 2, .flip = training,
                     .device = device);
}

static pc_loader *samples(const job *j, pc_device device, bool training, const int *failing, int batch)
{
    pc_loader *loader = NULL;
    const int n = training ? COUNT : TESTED;
    const pc_samples made = {.count = n,
                             .fields = 2,
                             .field = {{PC_F32, PC_SHAPE(WIDTH)}, {PC_I64}},
                             .sample = write_sample,
                             .by_epoch = true,
                             .context = (void *)failing};
    if (j->kind == HOST)
        return pc_loader_from_samples(&made, .batch = batch, .shuffle = training, .seed = 4, .device = device);
    PC_SCOPE {
        loader = pc_loader_from_tensors(values(n, WIDTH, training ? j->bad_sample : 0),
                                        j->kind == PRICES ? values(n, 1, 0) : labels(n), .batch = batch,
                                        .shuffle = training, .seed = 4, .device = device);
    }
    return loader;
}

/* Other weights in each rank: the first one's are what counts. */
static pc_module *network(const job *j, int rank)
{
    pc_seed(3 + (uint64_t)rank);
    if (j->kind == PICTURES)
        return pc_sequential(pc_conv2d(3, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                             pc_linear(4 * 3 * 3, CLASSES));
    pc_module *first = pc_linear(WIDTH, 8, .activation = PC_ACTIVATION_RELU);
    pc_module *last = pc_linear(8, j->kind == PRICES ? 1 : CLASSES);
    if (j->dropout > 0)
        return pc_sequential(first, pc_dropout(j->dropout), last);
    return j->norm ? pc_sequential(first, pc_batch_norm1d(8), last) : pc_sequential(first, last);
}

typedef struct watcher {
    const job *job;
    int rank, asked, epochs, progressed;
    double loss;
    int64_t done;
} watcher;

static void progressed(void *context, const pc_progress *p)
{
    watcher *w = context;
    w->progressed++;
    w->loss = p->loss;
    w->done = p->done;
}

static void epoch_ended(void *context, const pc_epoch_result *r)
{
    watcher *w = context;
    (void)r;
    w->epochs++;
}

static bool stops(void *context)
{
    watcher *w = context;
    return w->job->stop_after && w->rank == w->job->stop_rank && ++w->asked >= w->job->stop_after;
}

static pc_status read_weights(const pc_module *net, float *to, int64_t *n)
{
    pc_parameter list[16];
    const int count = pc_module_state_list(net, list, 16);
    *n = 0;
    for (int i = 0; i < count; i++)
        if (pc_tensor_dtype(list[i].tensor) == PC_F32) {
            PC_SCOPE {
                pc_tensor *t = pc_clone(list[i].tensor);
                const int64_t numbers = pc_tensor_count(t);
                const pc_status status = pc_read(t, to + *n, (size_t)numbers * sizeof *to);
                if (status != PC_OK)
                    return status;
                *n += numbers;
            }
        }
    return PC_OK;
}

static pc_status train(const job *j, pc_group *group, int rank, pc_device device, watcher *w, pc_epoch_result *last,
                       float *weights, int64_t *n)
{
    const int failing = j->fails_at && rank == j->fails_in ? j->fails_at : 0, fine = 0;
    const int batch = j->other_batch_in && rank == j->other_batch_in ? BATCH + 1 : j->batch ? j->batch : BATCH;
    pc_loader *training = j->kind == PICTURES ? pictures(device, true) : samples(j, device, true, &failing, batch);
    pc_loader *test = j->kind == PICTURES ? pictures(device, false) : samples(j, device, false, &fine, 4);
    pc_module *net = network(j, rank);
    pc_status status = training && test && net ? pc_module_to(net, device, PC_F32) : pc_error_last()->status;
    if (status == PC_OK && j->frozen)
        status = pc_module_freeze(net, "0.*");
    pc_optimizer *optimizer = j->adam ? pc_adam(net, .lr = 1e-3) : pc_sgd(net, .lr = 0.05, .momentum = 0.9);
    const pc_train_callbacks callbacks = {.context = w, .progress = progressed, .epoch = epoch_ended, .stop = stops};
    *w = (watcher){.job = j, .rank = rank};
    const pc_fit_options options = {.epochs = j->epochs,
                                    .test = test,
                                    .callbacks = &callbacks,
                                    .checkpoint = j->checkpoint,
                                    .resume = j->resume,
                                    .keep_best = j->keep_best,
                                    .early_stop = j->early_stop,
                                    .mixed = j->mixed,
                                    .mixup = j->mixup,
                                    .group = group};
    if (status == PC_OK)
        status = pc_fit(net, optimizer, training, options, last);
    const bool refused = status == PC_ERR_RANGE; /* then weights are those that the step began with */
    if (status == PC_OK || refused)
        status = read_weights(net, weights, n);
    for (int64_t i = 0; i < *n && refused && status == PC_OK; i++)
        if (!j->norm && !isfinite(weights[i]))
            status = pc_fail(PC_ERR_STATE, "weights are no numbers");
    status = refused && status == PC_OK ? PC_ERR_RANGE : status;
    pc_optimizer_free(optimizer);
    pc_module_free(net);
    pc_loader_free(training);
    pc_loader_free(test);
    return status;
}

static bool near(double a, double b, double tolerance)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b));
}

/* All ranks have the weights and the figures that the job has. */
static void work(rank_work *r)
{
    const job *j = r->context;
    static float got[RANKS_MAX][MOST];
    float *weights = got[r->rank];
    pc_epoch_result last;
    int64_t n = 0;
    watcher w;
    RANK_OK(train(j, r->group, r->rank, r->device, &w, &last, weights, &n));
    RANK_TRUE(n == j->numbers);
    for (int64_t i = 0; i < n; i++)
        RANK_TRUE(near((double)weights[i], (double)j->weights[i], 1e-5));
    RANK_TRUE(last.epoch == j->want.epoch);
    RANK_TRUE(near(last.loss, j->want.loss, 1e-5) && near(last.accuracy, j->want.accuracy, 1e-12));
    RANK_TRUE(near(last.test_loss, j->want.test_loss, 1e-5) && near(last.test_accuracy, j->want.test_accuracy, 1e-12));
    RANK_TRUE(r->rank ? !w.epochs && !w.progressed : w.epochs > 0 && w.progressed > 0);
    if (!r->rank) {
        RANK_TRUE(near(w.loss, j->want.loss, 1e-5));
        RANK_TRUE(w.done == (j->kind == PICTURES ? 9 : COUNT));
    }
}

static void alone(job *j)
{
    watcher w;
    assert_ok(train(j, NULL, 0, test_device(), &w, &j->want, j->weights, &j->numbers));
    assert_true(j->numbers > 20);
}

static void ranks_learn_what_one_learns(job j)
{
    j.epochs = j.epochs ? j.epochs : EPOCHS;
    alone(&j);
    const int most = ranks_most();
    for (int n = 1; n <= NUMBER && n <= most; n++)
        ranks_work(n, work, &j);
}

static void labelled(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS});
    ranks_learn_what_one_learns((job){.kind = HOST, .adam = true});
    ranks_learn_what_one_learns((job){.kind = TENSORS, .frozen = true});
}

static void priced(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = PRICES});
}

static void pictured(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = PICTURES});
}

static void chosen(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS, .keep_best = true, .early_stop = 2, .epochs = 8});
}

/* --- going on --- */

static void run_in(int n, job *j)
{
    rank_work ranks[RANKS_MAX];
    ranks_run(n, ranks, work, j);
    for (int i = 0; i < n; i++)
        if (ranks[i].error.status != PC_OK)
            fail_msg("rank %d of %d: %s", i, n, ranks[i].error.message);
}

/* Only that nothing fails. */
static void plain_work(rank_work *r)
{
    float weights[MOST];
    pc_epoch_result last;
    int64_t n = 0;
    watcher w;
    RANK_OK(train(r->context, r->group, r->rank, r->device, &w, &last, weights, &n));
}

static void at_another_number(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "checkpoint");
    const int most = ranks_most();
    static const int numbers[][2] = {{2, 3}, {4, 2}, {3, 1}, {1, 4}};
    for (int i = 0; i < 4 && most >= NUMBER; i++) {
        job j = {.kind = TENSORS, .epochs = EPOCHS};
        alone(&j);
        j.checkpoint = path.s;
        j.epochs = 1;
        ranks_work(numbers[i][0], plain_work, &j);
        j.epochs = EPOCHS;
        j.resume = true;
        run_in(numbers[i][1], &j);
        assert_int_equal(unlink(path.s), 0);
    }
}

/* One rank says stop, and all do, behind the same batch; from there another number goes on. */
static void stopped(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "checkpoint");
    const int most = ranks_most();
    for (int after = 1; after < 9 && most >= NUMBER; after += 3) {
        job j = {.kind = after == 4 ? PICTURES : TENSORS, .epochs = after == 1 ? 1 : 20, .batch = after == 1 ? 2 : 0};
        alone(&j);
        j.checkpoint = path.s;
        j.stop_rank = 1;
        j.stop_after = after;
        ranks_work(2, plain_work, &j);
        assert_int_equal(access(path.s, F_OK), 0);
        j.stop_after = 0;
        j.resume = true;
        run_in(3, &j);
        assert_int_equal(unlink(path.s), 0);
    }
}

/* --- what ranks do not compute as one does, but alike --- */

typedef struct together {
    job job;
    float weights[RANKS_MAX][MOST];
    pc_epoch_result last[RANKS_MAX];
    int64_t numbers;
} together;

static void keep(rank_work *r)
{
    together *t = r->context;
    int64_t n = 0;
    watcher w;
    RANK_OK(train(&t->job, r->group, r->rank, r->device, &w, &t->last[r->rank], t->weights[r->rank], &n));
    if (!r->rank)
        t->numbers = n;
}

static void come_to_the_same_bits(job j)
{
    static together t;
    t = (together){.job = j};
    const int most = ranks_most(), n = most < 3 ? most : 3;
    ranks_work(n, keep, &t);
    for (int i = 1; i < n; i++) {
        assert_memory_equal(t.weights[i], t.weights[0], (size_t)t.numbers * sizeof(float));
        assert_memory_equal(&t.last[i], &t.last[0], sizeof t.last[0]);
    }
    for (int64_t i = 0; i < t.numbers; i++)
        assert_true(isfinite(t.weights[0][i]));
}

static void alike(void **state)
{
    (void)state;
    come_to_the_same_bits((job){.kind = TENSORS, .norm = true, .batch = NORMED, .epochs = EPOCHS});
    come_to_the_same_bits((job){.kind = TENSORS, .mixup = 0.4, .dropout = 0.3, .epochs = EPOCHS});
    come_to_the_same_bits((job){.kind = TENSORS, .mixed = PC_MIXED_F16, .epochs = EPOCHS});
    come_to_the_same_bits(
        (job){.kind = PRICES, .mixed = PC_MIXED_BF16, .norm = true, .batch = NORMED, .epochs = 2, .keep_best = true});
}

/* --- errors --- */

static void fails_with(job j, int n, pc_status status, const char *words)
{
    rank_work ranks[RANKS_MAX];
    j.epochs = 30;
    ranks_run(n, ranks, plain_work, &j);
    for (int i = 0; i < n; i++) {
        assert_int_equal(ranks[i].error.status, status);
        if (!strstr(ranks[i].error.message, words))
            fail_msg("rank %d of %d: %s", i, n, ranks[i].error.message);
        assert_string_equal(ranks[i].error.message, ranks[0].error.message);
    }
}

static void no_number(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    fails_with((job){.kind = TENSORS, .bad_sample = 11}, 3, PC_ERR_RANGE, "x is NaN, in ");
    fails_with((job){.kind = PRICES, .bad_sample = 11, .norm = true, .batch = NORMED}, 2, PC_ERR_RANGE, "step ");
}

static void other_data(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    fails_with((job){.kind = TENSORS, .other_batch_in = 2}, 3, PC_ERR_STATE,
               "rank 0 on 25 samples in 5 batches, rank 2 on 25 in 4");
}

static void one_fails(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    rank_work ranks[RANKS_MAX];
    job j = {.kind = HOST, .epochs = 30, .fails_in = 1, .fails_at = 13};
    ranks_run(3, ranks, plain_work, &j);
    for (int i = 0; i < 3; i++) {
        const bool told = i == 1 ? ranks[i].error.status == PC_ERR_FILE && !strstr(ranks[i].error.message, "rank 1")
                                 : strstr(ranks[i].error.message, "rank 1 failed: sample 13 cannot be made") != NULL;
        if (!told)
            fail_msg("rank %d: %s", i, ranks[i].error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labelled),  cmocka_unit_test(priced),    cmocka_unit_test(pictured),
        cmocka_unit_test(chosen),    cmocka_unit_test(alike),     cmocka_unit_test(at_another_number),
        cmocka_unit_test(stopped),   cmocka_unit_test(no_number), cmocka_unit_test(other_data),
        cmocka_unit_test(one_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
