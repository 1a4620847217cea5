/* ranks_job.h: small networks trained by pc_fit alone and in ranks: all that a job says, and what comes of it. */
#ifndef PC_TEST_RANKS_JOB_H
#define PC_TEST_RANKS_JOB_H

#include "device.h"

#include "../data/pictures.h"
#include "../dist/threads.h"

#include <math.h>

enum { COUNT = 25, BATCH = 6, WIDTH = 5, CLASSES = 3, TESTED = 7, EPOCHS = 3, MOST = 4096, NUMBER = 4, CALLS = 16 };

enum { NORMED = 9 }; /* batches that leave each rank more than one sample */

static test_path root;

static inline int set_up(void **state)
{
    (void)state;
    root = new_root();
    put_classes(placed(root.s, "data/").s, (const char *[]){"ant", "bee", "cow"}, 3, 3);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

typedef enum kind { TENSORS, PICTURES, PRICES, HOST } kind;

typedef struct job {
    kind kind;
    bool norm, adam, frozen;
    bool sync;    /* norms are by the samples of all ranks */
    bool ignored; /* labels count for nothing here and there, and in all of some batches' parts */
    double mixup, dropout;
    int epochs, early_stop, batch;
    int count; /* of samples that are no pictures, 0: COUNT */
    pc_mixed mixed;
    pc_dtype dtype; /* of the network, 0: float32; of PRICES its data's, too */
    const char *checkpoint;
    bool resume, keep_best;
    int stop_rank, stop_after; /* this rank's callback says stop when it is asked that often; 0: never */
    int bad_sample;            /* it is NaN; 0: none */
    int fails_in, fails_at;    /* a rank, and the sample that its loader cannot make; 0: none */
    int other_batch_in;        /* a rank; 0: none */
    int other_order_in;
    int other_rate_in;
    bool halves;          /* the epoch callback halves the rate */
    bool wide;            /* a network that ZeRO has a part of for every rank */
    int zero, accumulate; /* the stage, 0: none; parts of a batch */
    int other_parts_in;   /* a rank; 0: none */
    /* what came of it */
    pc_epoch_result want;
    float weights[MOST];
    int64_t numbers;
} job;

static inline pc_tensor *values(int n, int width, int bad)
{
    float x[COUNT * WIDTH];
    for (int i = 0; i < n * width; i++)
        x[i] = sinf((float)(i * i + n));
    if (bad)
        x[bad * width] = NAN;
    return pc_from_data(x, PC_SHAPE(n, width), PC_F32, PC_DEVICE_CPU);
}

static inline int count_of(const job *j)
{
    return j->kind == PICTURES ? 9 : j->count ? j->count : COUNT;
}

static inline pc_dtype dtype_of(const job *j)
{
    return j->dtype ? j->dtype : PC_F32;
}

static inline pc_tensor *labels(int n, bool ignored)
{
    int64_t y[COUNT];
    for (int i = 0; i < n; i++)
        y[i] = ignored && i % 5 < 2 ? -100 : (i * 7 / 3) % CLASSES;
    return pc_from_data(y, PC_SHAPE(n), PC_I64, PC_DEVICE_CPU);
}

static inline pc_status write_sample(void *context, int64_t sample, int64_t epoch, void *const *to)
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
static inline pc_loader *pictures(pc_device device, bool training)
{
    return pc_loader(joined(root.s, "data").s, .size = 8, .batch = 4, .shuffle = training, .seed = 2, .flip = training,
                     .device = device);
}

static inline pc_loader *samples(const job *j, pc_device device, bool training, const int *failing, int batch,
                                 uint64_t seed)
{
    pc_loader *loader = NULL;
    const int n = training ? count_of(j) : TESTED;
    const pc_samples made = {.count = n,
                             .fields = 2,
                             .field = {{PC_F32, PC_SHAPE(WIDTH)}, {.dtype = PC_I64}},
                             .sample = write_sample,
                             .by_epoch = true,
                             .context = (void *)failing};
    if (j->kind == HOST)
        return pc_loader_from_samples(&made, .batch = batch, .shuffle = training, .seed = seed, .device = device);
    PC_SCOPE {
        pc_tensor *x = values(n, WIDTH, training ? j->bad_sample : 0);
        pc_tensor *y = j->kind == PRICES ? pc_cast(values(n, 1, 0), dtype_of(j)) : labels(n, j->ignored);
        loader = pc_loader_from_tensors(pc_cast(x, dtype_of(j)), y, .batch = batch, .shuffle = training, .seed = seed,
                                        .device = device);
    }
    return loader;
}

/* Other weights in each rank: the first one's are what counts. */
static inline pc_module *network(const job *j, int rank)
{
    pc_seed(3 + (uint64_t)rank);
    const int channels = j->wide ? 24 : 4, inside = j->wide ? 160 : 8;
    if (j->kind == PICTURES)
        return pc_sequential(pc_conv2d(3, channels, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                             pc_flatten(), pc_linear(channels * 3 * 3, CLASSES));
    pc_module *first = pc_linear(WIDTH, inside, .activation = PC_ACTIVATION_RELU);
    pc_module *last = pc_linear(inside, j->kind == PRICES ? 1 : CLASSES);
    if (j->dropout > 0)
        return pc_sequential(first, pc_dropout(j->dropout), last);
    return j->norm ? pc_sequential(first, pc_batch_norm1d(inside), last) : pc_sequential(first, last);
}

typedef struct watcher {
    const job *job;
    pc_optimizer *optimizer;
    int rank, asked, epochs, progressed;
    double loss;
    int64_t done;
} watcher;

static inline void progressed(void *context, const pc_progress *p)
{
    watcher *w = context;
    w->progressed++;
    w->loss = p->loss;
    w->done = p->done;
}

static inline void epoch_ended(void *context, const pc_epoch_result *r)
{
    watcher *w = context;
    (void)r;
    w->epochs++;
    if (w->job->halves)
        pc_optimizer_set_lr(w->optimizer, pc_optimizer_lr(w->optimizer) / 2);
}

static inline bool stops(void *context)
{
    watcher *w = context;
    return w->job->stop_after && w->rank == w->job->stop_rank && ++w->asked >= w->job->stop_after;
}

static inline pc_status read_weights(const pc_module *net, float *to, int64_t *n)
{
    pc_parameter list[16];
    const int count = pc_module_state_list(net, list, 16);
    *n = 0;
    for (int i = 0; i < count; i++)
        if (pc_tensor_dtype(list[i].tensor) != PC_I64) {
            PC_SCOPE {
                pc_tensor *t = pc_clone(pc_cast(list[i].tensor, PC_F32));
                const int64_t numbers = pc_tensor_count(t);
                const pc_status status = pc_read(t, to + *n, (size_t)numbers * sizeof *to);
                if (status != PC_OK)
                    return status;
                *n += numbers;
            }
        }
    return PC_OK;
}

static inline pc_status train(const job *j, pc_group *group, int rank, pc_device device, watcher *w,
                              pc_epoch_result *last, float *weights, int64_t *n)
{
    const int failing = j->fails_at && rank == j->fails_in ? j->fails_at : 0, fine = 0;
    const uint64_t seed = j->other_order_in && rank == j->other_order_in ? 5 : 4;
    const int batch = j->other_batch_in && rank == j->other_batch_in ? BATCH + 1 : j->batch ? j->batch : BATCH;
    pc_loader *training =
        j->kind == PICTURES ? pictures(device, true) : samples(j, device, true, &failing, batch, seed);
    pc_loader *test = j->kind == PICTURES ? pictures(device, false) : samples(j, device, false, &fine, 4, 4);
    pc_module *net = network(j, rank);
    pc_status status = training && test && net ? pc_module_to(net, device, dtype_of(j)) : pc_error_last()->status;
    if (status == PC_OK && j->frozen)
        status = pc_module_freeze(net, "0.*");
    if (status == PC_OK && j->sync && group)
        status = pc_sync_batch_norm(net, group) == 1 ? PC_OK : PC_ERR_STATE;
    pc_zero *zero = NULL;
    if (status == PC_OK && j->zero && group && !(zero = pc_zero(net, group, .stage = j->zero, .bucket_mb = 1e-4)))
        status = pc_error_last()->status;
    if (zero && status == PC_OK) /* what is wrong is told behind what the ranks do together */
        status = pc_device_synchronize(device);
    pc_module *of = zero ? pc_zero_part(zero) : net;
    const bool other_rate = j->other_rate_in && rank == j->other_rate_in;
    pc_optimizer *optimizer =
        j->adam ? pc_adam(of, .lr = 1e-3) : pc_sgd(of, .lr = other_rate ? 0.04 : 0.05, .momentum = 0.9);
    const pc_train_callbacks callbacks = {.context = w, .progress = progressed, .epoch = epoch_ended, .stop = stops};
    *w = (watcher){.job = j, .optimizer = optimizer, .rank = rank};
    const pc_fit_options options = {.epochs = j->epochs,
                                    .test = test,
                                    .callbacks = &callbacks,
                                    .checkpoint = j->checkpoint,
                                    .resume = j->resume,
                                    .keep_best = j->keep_best,
                                    .early_stop = j->early_stop,
                                    .mixed = j->mixed,
                                    .mixup = j->mixup,
                                    .accumulate = j->accumulate + (j->other_parts_in && rank == j->other_parts_in),
                                    .zero = zero,
                                    .group = group};
    if (status == PC_OK)
        status = pc_fit(net, optimizer, training, options, last);
    const bool refused = status == PC_ERR_RANGE; /* then weights are those that the step began with */
    if (zero && (status == PC_OK || refused))
        status = pc_zero_gather(zero);
    if (status == PC_OK || (refused && !zero))
        status = read_weights(net, weights, n);
    for (int64_t i = 0; i < *n && refused && status == PC_OK; i++)
        if (!j->norm && !isfinite(weights[i]))
            status = pc_fail(PC_ERR_STATE, "weights are no numbers");
    status = refused && status == PC_OK ? PC_ERR_RANGE : status;
    pc_optimizer_free(optimizer);
    pc_zero_free(zero);
    pc_module_free(net);
    pc_loader_free(training);
    pc_loader_free(test);
    return status;
}

static inline bool near(double a, double b, double tolerance)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b));
}

/* All ranks have the weights and the figures that the job has. */
static inline void work(rank_work *r)
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
        RANK_TRUE(w.done == count_of(j));
    }
}

/* In whole batches. */
static inline void alone(job *j)
{
    watcher w;
    job plain = *j;
    plain.accumulate = 0;
    assert_ok(train(&plain, NULL, 0, test_device(), &w, &j->want, j->weights, &j->numbers));
    assert_true(j->numbers > 20);
}

static inline void ranks_learn_what_one_learns(job j)
{
    j.epochs = j.epochs ? j.epochs : EPOCHS;
    alone(&j);
    const int most = ranks_most();
    for (int n = 1; n <= NUMBER && n <= most; n++)
        ranks_work(n, work, &j);
}

static inline void run_in(int n, job *j)
{
    rank_work ranks[RANKS_MAX];
    ranks_run(n, ranks, work, j);
    for (int i = 0; i < n; i++)
        if (ranks[i].error.status != PC_OK)
            fail_msg("rank %d of %d: %s", i, n, ranks[i].error.message);
}

/* Only that nothing fails. */
static inline void plain_work(rank_work *r)
{
    float weights[MOST];
    pc_epoch_result last;
    int64_t n = 0;
    watcher w;
    RANK_OK(train(r->context, r->group, r->rank, r->device, &w, &last, weights, &n));
}

typedef struct together {
    job job;
    float weights[RANKS_MAX][MOST];
    pc_epoch_result last[RANKS_MAX];
    int64_t numbers;
} together;

static inline void keep(rank_work *r)
{
    together *t = r->context;
    int64_t n = 0;
    watcher w;
    RANK_OK(train(&t->job, r->group, r->rank, r->device, &w, &t->last[r->rank], t->weights[r->rank], &n));
    if (!r->rank)
        t->numbers = n;
}

static inline void come_to_the_same_bits(job j)
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

static inline void fails_with(job j, int n, pc_status status, const char *words)
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

#endif
