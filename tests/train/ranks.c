/* pc_fit in several ranks: the weights and figures of one device with the whole batches, at any number of ranks; going on at
 * another number; one decision for all; one error for all. */
#include "device.h"

#include "ranks_job.h"

#include "dist/group.h"

#include <paracord/tensor_parallel.h>

static void labelled(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS});
    ranks_learn_what_one_learns((job){.kind = HOST, .adam = true});
    ranks_learn_what_one_learns((job){.kind = TENSORS, .frozen = true});
    ranks_learn_what_one_learns((job){.kind = TENSORS, .ignored = true});
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

/* Batches have fewer samples than there are ranks: the last one, or all (in float64: norms of so few carry rounding far). */
static void normed_together(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS, .norm = true, .sync = true, .batch = 11});
    ranks_learn_what_one_learns(
        (job){.kind = PRICES, .norm = true, .sync = true, .batch = 3, .count = 24, .dtype = PC_F64});
}

static void chosen(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS, .keep_best = true, .early_stop = 2, .epochs = 8});
}

/* A rate that the epoch callback sets, in rank 0 alone, is all ranks'. */
static void slowed(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.kind = TENSORS, .halves = true});
    come_to_the_same_bits((job){.kind = TENSORS, .halves = true, .epochs = EPOCHS});
}

/* --- going on --- */

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

static void no_number(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    fails_with((job){.kind = TENSORS, .bad_sample = 11}, 3, PC_ERR_RANGE, "x is NaN, in ");
    fails_with((job){.kind = TENSORS, .bad_sample = 11, .mixed = PC_MIXED_F16}, 3, PC_ERR_RANGE, "x is NaN, in ");
    fails_with((job){.kind = PRICES, .bad_sample = 11, .norm = true, .batch = NORMED}, 2, PC_ERR_RANGE, "step ");
}

static void other_data(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    fails_with((job){.kind = TENSORS, .other_batch_in = 2}, 3, PC_ERR_STATE,
               "rank 0 on 25 samples in 5 batches, rank 2 on 25 in 4");
    fails_with((job){.kind = TENSORS, .other_order_in = 1}, 3, PC_ERR_STATE,
               "rank 0 shuffled with seed 4, rank 1 shuffled with 5");
    fails_with((job){.kind = TENSORS, .other_rate_in = 2}, 3, PC_ERR_STATE,
               "ranks learn at other rates: rank 0 at 0.05 and rank 2 at 0.04; give");
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

/* --- networks that are cut up --- */

enum { CUT_WIDE = 8, CUT_NUMBERS = CUT_WIDE * (WIDTH + 1) + CLASSES * (CUT_WIDE + 1), CUT_SECONDS = 20 };

typedef struct cut_job {
    bool outside; /* of the module that pc_fit gets: a forward of its own asks the network */
    int epochs;
    uint64_t seed;
    job data; /* kind, bad_sample, fails_in and fails_at */
    const char *checkpoint;
    const char *settings[2];
    float spoils;  /* rank 1's part of the last weight is full of it; 0: nothing */
    double within; /* seconds that ranks wait for each other; 0: CUT_SECONDS */
    int stops_after
        [2]; /* rank 0's and rank 1's callback say stop from the time on that they are asked that often; 0: never */
    /* what came of it */
    int asked[2], last[2];      /* epochs */
    bool goes_on[2];            /* the group does, behind an error */
    float weights[CUT_NUMBERS]; /* whole, as rank 0 has them at the end */
} cut_job;

typedef struct cut_rank {
    cut_job *job;
    int rank;
} cut_rank;

static bool stops_cut(void *context)
{
    const cut_rank *r = context;
    const int asked = ++r->job->asked[r->rank], after = r->job->stops_after[r->rank];
    return after && asked >= after;
}

static pc_module *cut_network(uint64_t seed, pc_group *parts)
{
    pc_seed(seed);
    return parts ? pc_sequential(pc_column_linear(WIDTH, CUT_WIDE, parts, .activation = PC_ACTIVATION_TANH),
                                 pc_row_linear(CUT_WIDE, CLASSES, parts))
                 : pc_sequential(pc_linear(WIDTH, CUT_WIDE, .activation = PC_ACTIVATION_TANH),
                                 pc_linear(CUT_WIDE, CLASSES));
}

static pc_tensor *ask_outside(void *context, pc_module *net, const pc_batch *batch)
{
    (void)net;
    return pc_forward(context, batch->x);
}

static pc_status read_whole(pc_module *net, pc_group *parts, float *to)
{
    int64_t n;
    pc_module *whole = parts ? cut_network(1, NULL) : net;
    pc_status status = parts ? pc_tensor_parallel_join(net, whole) : PC_OK;
    if (status == PC_OK)
        status = read_weights(whole, to, &n);
    if (parts)
        pc_module_free(whole);
    return status;
}

static pc_status fit_cut(cut_job *c, pc_group *parts, int rank, pc_device device, float *weights)
{
    cut_rank own = {c, rank};
    const pc_train_callbacks callbacks = {.context = &own, .stop = stops_cut};
    pc_epoch_result last;
    const int failing = c->data.fails_at && rank == c->data.fails_in ? c->data.fails_at : 0;
    pc_module *net = cut_network(c->seed, parts), *front = pc_activation(PC_ACTIVATION_TANH);
    pc_status status = pc_module_to(net, device, PC_F32);
    if (status == PC_OK && c->spoils && rank == 1)
        PC_NO_GRAD {
            status = pc_fill(pc_module_parameter(net, "1.weight"), (double)c->spoils);
        }
    pc_optimizer *adam = pc_adam(net, .lr = 0.02);
    pc_loader *loader = samples(&c->data, device, true, &failing, BATCH, 4);
    const pc_fit_options options = {.epochs = c->epochs,
                                    .checkpoint = c->checkpoint,
                                    .settings = c->settings[rank],
                                    .resume = true,
                                    .callbacks = &callbacks,
                                    .forward = c->outside ? ask_outside : NULL,
                                    .context = net};
    if (status == PC_OK)
        status = pc_fit(c->outside ? front : net, adam, loader, options, &last);
    c->last[rank] = status == PC_OK ? last.epoch : 0;
    if (status == PC_OK)
        status = read_whole(net, parts, weights);
    pc_optimizer_free(adam);
    pc_module_free(net);
    pc_module_free(front);
    pc_loader_free(loader);
    return status;
}

static void cut_work(rank_work *r)
{
    cut_job *c = r->context;
    float others[CUT_NUMBERS];
    RANK_OK(pc_group_set_timeout(r->group, CUT_SECONDS));
    RANK_OK(fit_cut(c, r->size > 1 ? r->group : NULL, r->rank, r->device, r->rank ? others : c->weights));
}

/* The file has whole parameters, whether or not the module that pc_fit gets has them. */
static void cut_outside(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "cut outside");
    static const int parts[][2] = {{2, 2}, {2, 1}, {1, 2}};
    for (int i = 0; i < 3 && ranks_most() >= 2; i++) {
        cut_job straight = {.outside = true, .epochs = 4, .seed = 3}, first = straight, second;
        ranks_work(1, cut_work, &straight);
        first.epochs = 2;
        first.checkpoint = path.s;
        ranks_work(parts[i][0], cut_work, &first);
        second = first;
        second.epochs = 4;
        second.seed = 5;
        ranks_work(parts[i][1], cut_work, &second);
        for (int k = 0; k < CUT_NUMBERS; k++)
            assert_close(second.weights[k], straight.weights[k], 1e-5);
        assert_int_equal(unlink(path.s), 0);
    }
}

/* Both are asked as often, whoever said stop first, and from there it goes on. */
static void cut_stopped(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "cut stopped");
    static const int after[][2] = {{5, 6}, {7, 3}, {0, 4}};
    for (int i = 0; i < 6 && ranks_most() >= 2; i++) {
        cut_job straight = {.epochs = 6, .seed = 3}, first = straight, second;
        ranks_work(1, cut_work, &straight);
        memcpy(first.stops_after, after[i / 2], sizeof first.stops_after);
        first.checkpoint = i % 2 ? path.s : NULL;
        ranks_work(2, cut_work, &first);
        assert_true(first.last[0] < first.epochs);
        assert_int_equal(first.last[1], first.last[0]);
        assert_int_equal(first.asked[1], first.asked[0]);
        if (!first.checkpoint)
            continue;
        second = (cut_job){.epochs = 6, .seed = 5, .checkpoint = path.s};
        ranks_work(2, cut_work, &second);
        for (int k = 0; k < CUT_NUMBERS; k++)
            assert_close(second.weights[k], straight.weights[k], 1e-5);
        assert_int_equal(unlink(path.s), 0);
    }
}

static void cut_failing(rank_work *r)
{
    cut_job *c = r->context;
    float weights[CUT_NUMBERS];
    char mine = 0, all[RANKS_MAX];
    RANK_OK(pc_group_set_timeout(r->group, c->within > 0 ? c->within : CUT_SECONDS));
    if (fit_cut(c, r->group, r->rank, r->device, weights) == PC_OK)
        return;
    r->error = *pc_error_last();
    pc_error_clear();
    c->goes_on[r->rank] = pc__group_exchange(r->group, &mine, sizeof mine, all) == PC_OK;
    pc_error_clear();
}

static void cut_fails(cut_job c, pc_status own, const char *words, pc_status other, const char *other_words,
                      bool goes_on)
{
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 2)
        skip();
    c.epochs = 2;
    ranks_run(2, ranks, cut_failing, &c);
    if (ranks[1].error.status != own || !strstr(ranks[1].error.message, words))
        fail_msg("rank 1: %s", ranks[1].error.message);
    if (ranks[0].error.status != other || !strstr(ranks[0].error.message, other_words))
        fail_msg("rank 0: %s", ranks[0].error.message);
    assert_int_equal(c.goes_on[0], goes_on);
    assert_int_equal(c.goes_on[1], goes_on);
}

/* Before anything is learnt. */
static void cut_refused(void **state)
{
    (void)state;
    char much[2000];
    memset(much, 'a', sizeof much - 1);
    much[sizeof much - 1] = 0;
    cut_fails((cut_job){.settings = {"a", much}}, PC_ERR_ARGUMENT, "pc_fit: 2 epochs and settings of 1999",
              PC_ERR_ARGUMENT, "rank 1: pc_fit: 2 epochs and settings of 1999", true);
}

static void cut_where_one_fails(void **state)
{
    (void)state;
    cut_fails((cut_job){.data = {.kind = HOST, .fails_in = 1, .fails_at = 13}}, PC_ERR_FILE, "sample 13 cannot be made",
              PC_ERR_STATE, "rank 1 failed: sample 13 cannot be made", false);
}

/* What makes a loss NaN may be in one part alone: all say so. */
static void cut_no_number(void **state)
{
    (void)state;
    cut_fails((cut_job){.data = {.kind = TENSORS, .bad_sample = 11}}, PC_ERR_RANGE, "x is NaN, in ", PC_ERR_RANGE,
              "x is NaN, in ", true);
    cut_fails((cut_job){.spoils = NAN}, PC_ERR_RANGE, "parameter 1.weight is NaN", PC_ERR_RANGE,
              "parameter 1.weight is NaN in the weights that training begins with (in part 1)", true);
    cut_fails((cut_job){.spoils = 3e38f, .within = 2}, PC_ERR_RANGE, "made an infinity", PC_ERR_RANGE,
              "first, layer 1 ", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labelled),
        cmocka_unit_test(priced),
        cmocka_unit_test(normed_together),
        cmocka_unit_test(pictured),
        cmocka_unit_test(chosen),
        cmocka_unit_test(alike),
        cmocka_unit_test(at_another_number),
        cmocka_unit_test(stopped),
        cmocka_unit_test(no_number),
        cmocka_unit_test(other_data),
        cmocka_unit_test(one_fails),
        cmocka_unit_test(slowed),
        cmocka_unit_test(cut_outside),
        cmocka_unit_test(cut_stopped),
        cmocka_unit_test(cut_refused),
        cmocka_unit_test(cut_where_one_fails),
        cmocka_unit_test(cut_no_number),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
