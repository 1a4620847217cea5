/* pc_fit with batches in parts and with parameters shared out over ranks: the weights and figures of one device with whole
 * batches; going on with another stage, another number of ranks, and alone; what norms see; errors. */
#include "device.h"

#include "ranks_job.h"
#include "dist/group.h"
#include "train/fit.h"

#include <paracord/tensor_parallel.h>

enum { STAGES = 3, PARTS = 4 };

/* Batches of 6 in up to more parts than they have samples; the last one is of 1. */
static void in_parts_alone(void **state)
{
    (void)state;
    static const kind kinds[] = {TENSORS, PICTURES, PRICES, HOST};
    for (int k = 0; k < 4; k++) {
        job want = {.kind = kinds[k], .epochs = EPOCHS, .adam = k == 3};
        alone(&want);
        for (int parts = 1; parts <= BATCH + 1; parts++) {
            job j = want;
            watcher w;
            j.accumulate = parts;
            assert_ok(train(&j, NULL, 0, test_device(), &w, &j.want, j.weights, &j.numbers));
            for (int64_t i = 0; i < want.numbers; i++)
                assert_close(j.weights[i], want.weights[i], parts == 1 ? 0 : 1e-5);
            assert_close(j.want.loss, want.want.loss, 1e-5);
            assert_true(near(j.want.accuracy, want.want.accuracy, 1e-12));
        }
    }
}

static void in_parts_in_ranks(void **state)
{
    (void)state;
    for (int parts = 2; parts <= PARTS; parts++) {
        ranks_learn_what_one_learns((job){.kind = TENSORS, .accumulate = parts});
        ranks_learn_what_one_learns((job){.kind = TENSORS, .ignored = true, .accumulate = parts});
        ranks_learn_what_one_learns((job){.kind = PICTURES, .accumulate = parts});
    }
    ranks_learn_what_one_learns((job){.kind = HOST, .adam = true, .accumulate = 2});
}

static void shared_out(void **state)
{
    (void)state;
    for (int zero = 1; zero <= STAGES; zero++) {
        ranks_learn_what_one_learns((job){.kind = TENSORS, .wide = true, .zero = zero});
        ranks_learn_what_one_learns((job){.kind = PICTURES, .wide = true, .zero = zero, .adam = true});
        ranks_learn_what_one_learns((job){.kind = TENSORS, .wide = true, .zero = zero, .frozen = true});
        ranks_learn_what_one_learns((job){.kind = PRICES, .wide = true, .zero = zero, .accumulate = 2});
        ranks_learn_what_one_learns(
            (job){.kind = TENSORS, .ignored = true, .wide = true, .zero = zero, .accumulate = 2});
        ranks_learn_what_one_learns((job){.kind = HOST, .wide = true, .zero = zero, .accumulate = 3, .adam = true});
    }
}

static void chosen(void **state)
{
    (void)state;
    for (int zero = 1; zero <= STAGES; zero++)
        ranks_learn_what_one_learns(
            (job){.kind = TENSORS, .wide = true, .zero = zero, .keep_best = true, .early_stop = 2, .epochs = 8});
}

/* --- going on --- */

typedef struct turn {
    int ranks, zero, accumulate;
} turn;

static void go_on(turn first, turn second, job j)
{
    const int most = ranks_most();
    const test_path path = joined(root.s, "checkpoint");
    if (first.ranks > most || second.ranks > most)
        return;
    j.wide = true;
    alone(&j);
    j.checkpoint = path.s;
    j.zero = first.zero;
    j.accumulate = first.accumulate;
    const int epochs = j.epochs;
    if (!j.stop_after)
        j.epochs = 1;
    ranks_work(first.ranks, plain_work, &j);
    assert_int_equal(access(path.s, F_OK), 0);
    j.epochs = epochs;
    j.stop_after = 0;
    j.resume = true;
    j.zero = second.zero;
    j.accumulate = second.accumulate;
    run_in(second.ranks, &j);
    assert_int_equal(unlink(path.s), 0);
}

static void with_another_stage(void **state)
{
    (void)state;
    static const turn turns[][2] = {{{3, 1, 1}, {2, 3, 1}}, {{2, 2, 2}, {1, 0, 1}}, {{4, 3, 1}, {1, 0, 2}},
                                    {{1, 0, 1}, {3, 1, 1}}, {{2, 0, 1}, {4, 2, 1}}, {{3, 3, 2}, {2, 0, 2}},
                                    {{1, 2, 1}, {3, 3, 1}}, {{1, 0, 3}, {2, 3, 1}}};
    for (int i = 0; i < PC__COUNT(turns); i++) {
        go_on(turns[i][0], turns[i][1], (job){.kind = TENSORS, .epochs = EPOCHS, .adam = i % 2});
        go_on(turns[i][0], turns[i][1], (job){.kind = PICTURES, .epochs = EPOCHS, .adam = true});
    }
    go_on((turn){3, 3, 1}, (turn){2, 1, 1}, (job){.kind = TENSORS, .epochs = EPOCHS, .frozen = true, .adam = true});
    go_on((turn){2, 2, 1}, (turn){3, 3, 1}, (job){.kind = TENSORS, .epochs = 8, .keep_best = true, .early_stop = 3});
}

/* In the middle of an epoch. */
static void stopped(void **state)
{
    (void)state;
    for (int zero = 1; zero <= STAGES; zero++)
        go_on((turn){2, zero, zero}, (turn){3, STAGES - zero, 1},
              (job){.kind = TENSORS, .epochs = 20, .stop_rank = 1, .stop_after = 4 + zero, .adam = true});
}

/* To the bits of a training that was never stopped, also where numbers have another width than float32's. */
static void in_other_dtypes(void **state)
{
    (void)state;
    enum { RANKS = 2 };
    static const pc_dtype dtypes[] = {PC_F64, PC_BF16};
    static together straight, resumed;
    const test_path path = joined(root.s, "checkpoint");
    if (ranks_most() < RANKS)
        skip();
    for (int i = 0; i < 2 * (STAGES + 1); i++) {
        job j = {.kind = PRICES, .dtype = dtypes[i % 2], .wide = true, .adam = true, .zero = i / 2, .epochs = 2};
        straight = (together){.job = j};
        ranks_work(RANKS, keep, &straight);
        j.checkpoint = path.s;
        j.epochs = 1;
        ranks_work(RANKS, plain_work, &j);
        j.epochs = 2;
        j.resume = true;
        resumed = (together){.job = j};
        ranks_work(RANKS, keep, &resumed);
        for (int rank = 0; rank < RANKS; rank++)
            assert_memory_equal(resumed.weights[rank], straight.weights[0], (size_t)straight.numbers * sizeof(float));
        assert_int_equal(unlink(path.s), 0);
    }
}

/* --- networks that are cut up --- */

enum { WIDE = 10, CUT_EPOCHS = 4, CUT_MOST = WIDE * (WIDTH + CLASSES) + WIDE + CLASSES + 2 * CLASSES * CLASSES };

/* So many copies of the network (2: each learns from a half of every batch), each cut into so many parts (1: whole), with a
 * frozen table behind which it learns. */
typedef struct cut_run {
    int copies, parts, zero, epochs;
    bool adam, keep_best, resume;
    const char *path;
    uint64_t seed; /* of the weights it begins with */
} cut_run;

static float cut_weights[2][CUT_MOST]; /* in one go, and what a run leaves */

static pc_module *cut_network(uint64_t seed, pc_group *parts)
{
    pc_seed(seed);
    return parts ? pc_sequential(pc_column_linear(WIDTH, WIDE, parts, .activation = PC_ACTIVATION_RELU),
                                 pc_row_linear(WIDE, CLASSES, parts),
                                 pc_column_linear(CLASSES, CLASSES * 2, parts, .no_bias = true, .gather_output = true,
                                                  .blocks = 3))
                 : pc_sequential(pc_linear(WIDTH, WIDE, .activation = PC_ACTIVATION_RELU), pc_linear(WIDE, CLASSES),
                                 pc_linear(CLASSES, CLASSES * 2, .no_bias = true));
}

static pc_loader *cut_loader(pc_device device, int n)
{
    pc_loader *loader = NULL;
    PC_SCOPE {
        loader = pc_loader_from_tensors(values(n, WIDTH, 0), labels(n, false), .batch = 4, .device = device);
    }
    return loader;
}

/* Whole, in every rank. */
static pc_status keep_weights(pc_module *net, float *to)
{
    pc_parameter list[8];
    pc_module *whole = cut_network(0, NULL);
    pc_status status = pc_tensor_parallel_join(net, whole);
    const int count = pc_module_parameter_list(whole, list, 8);
    for (int i = 0; i < count && status == PC_OK; i++) {
        const size_t n = (size_t)pc_tensor_count(list[i].tensor);
        status = pc_read(list[i].tensor, to, n * sizeof *to);
        to += n;
    }
    pc_module_free(whole);
    return status;
}

static pc_status run_cut(const cut_run *c, pc_group *parts, pc_group *copies, pc_device device, float *to)
{
    pc_module *net = cut_network(c->seed, parts);
    pc_status status = pc_module_to(net, device, PC_F32);
    if (status == PC_OK)
        status = pc_module_freeze(net, "2.*");
    pc_zero *zero = status == PC_OK && c->zero ? pc_zero(net, copies, .stage = c->zero) : NULL;
    pc_module *of = zero ? pc_zero_part(zero) : net;
    pc_optimizer *o = !of ? NULL : c->adam ? pc_adam(of, .lr = 0.02) : pc_sgd(of, .lr = 0.1, .momentum = 0.9);
    pc_loader *loader = cut_loader(device, 16), *test = cut_loader(device, 8);
    const pc_fit_options options = {.epochs = c->epochs,
                                    .test = test,
                                    .group = copies,
                                    .zero = zero,
                                    .keep_best = c->keep_best,
                                    .watch = "loss",
                                    .checkpoint = c->path,
                                    .resume = c->resume};
    status = o && loader && test ? pc_fit(net, o, loader, options, NULL) : pc_error_last()->status;
    if (status == PC_OK && zero)
        status = pc_zero_gather(zero);
    if (status == PC_OK)
        status = keep_weights(net, to);
    pc_optimizer_free(o);
    pc_zero_free(zero);
    pc_module_free(net);
    pc_loader_free(loader);
    pc_loader_free(test);
    return status;
}

static void cut_up(rank_work *r)
{
    const cut_run *c = r->context;
    float own[CUT_MOST];
    pc_group *parts = NULL, *copies = NULL;
    RANK_OK(pc_group_split(r->group, r->rank / c->parts, r->rank, &parts));
    RANK_OK(pc_group_split(r->group, r->rank % c->parts, r->rank, &copies));
    RANK_OK(run_cut(c, c->parts > 1 ? parts : NULL, copies, r->device, r->rank ? own : cut_weights[1]));
    RANK_OK(pc_device_synchronize(r->device));
    pc_group_free(parts);
    pc_group_free(copies);
}

static bool runs(cut_run c)
{
    if (c.copies * c.parts > ranks_most())
        return false;
    ranks_work(c.copies * c.parts, cut_up, &c);
    return true;
}

/* The file has the whole network, whoever wrote it: in one go, and by others from the middle on, who have other weights but for
 * the file's. */
static void goes_on_cut_otherwise(cut_run first, cut_run second)
{
    const test_path path = joined(root.s, "cut checkpoint");
    cut_run straight = first;
    straight.copies = straight.parts = 1;
    straight.zero = 0;
    straight.epochs = second.epochs = CUT_EPOCHS;
    first.epochs = CUT_EPOCHS / 2;
    first.path = second.path = path.s;
    second.resume = true;
    second.seed = first.seed + 1;
    second.adam = first.adam;
    second.keep_best = first.keep_best;
    assert_true(runs(straight));
    memcpy(cut_weights[0], cut_weights[1], sizeof *cut_weights);
    if (!runs(first))
        return;
    if (runs(second))
        for (int i = 0; i < CUT_MOST; i++)
            assert_close(cut_weights[1][i], cut_weights[0][i], 1e-5);
    assert_int_equal(unlink(path.s), 0);
}

static void cut_networks(void **state)
{
    (void)state;
    static const int turns[][2][3] = {/* copies, parts, stage of ZeRO */
                                      {{1, 2, 0}, {1, 2, 0}}, {{2, 2, 0}, {2, 2, 0}}, {{1, 2, 0}, {2, 1, 0}},
                                      {{1, 1, 0}, {2, 2, 0}}, {{2, 2, 1}, {2, 2, 2}}, {{2, 2, 3}, {1, 2, 0}},
                                      {{2, 1, 3}, {2, 2, 3}}};
    for (int i = 0; i < PC__COUNT(turns); i++)
        for (int best = 0; best < 2; best++) {
            const int *a = turns[i][0], *b = turns[i][1];
            goes_on_cut_otherwise(
                (cut_run){.copies = a[0], .parts = a[1], .zero = a[2], .adam = i % 2, .keep_best = best},
                (cut_run){.copies = b[0], .parts = b[1], .zero = b[2]});
        }
}

/* The rank that writes cannot, and all fail. */
static void cut_without_a_folder(rank_work *r)
{
    const cut_run c = {.copies = 1, .parts = r->size, .epochs = 1, .path = r->context};
    float own[CUT_MOST];
    const pc_status status = run_cut(&c, r->group, NULL, r->device, own);
    RANK_TRUE(status != PC_OK && strstr(pc_error_last()->message, "no folder"));
    pc_error_clear();
}

static void cut_networks_whose_file_fails(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "no folder/checkpoint");
    if (ranks_most() >= 2)
        ranks_work(2, cut_without_a_folder, (void *)path.s);
}

/* --- norms --- */

static void alike(void **state)
{
    (void)state;
    for (int zero = 1; zero <= STAGES; zero++) {
        come_to_the_same_bits(
            (job){.kind = TENSORS, .wide = true, .zero = zero, .norm = true, .batch = NORMED, .epochs = EPOCHS});
        come_to_the_same_bits((job){.kind = PRICES,
                                    .wide = true,
                                    .zero = zero,
                                    .mixed = PC_MIXED_BF16,
                                    .norm = true,
                                    .batch = NORMED,
                                    .epochs = 2,
                                    .keep_best = true});
        come_to_the_same_bits((job){.kind = TENSORS,
                                    .wide = true,
                                    .zero = zero,
                                    .accumulate = 2,
                                    .mixup = 0.4,
                                    .dropout = 0.3,
                                    .epochs = EPOCHS});
    }
}

/* Statistics are those of parts: one update for each. */
static void norms_see_parts(void **state)
{
    (void)state;
    enum { N = 12, ROWS = 6 };
    for (int parts = 1; parts <= 3; parts++) {
        int64_t updates = -1;
        pc_seed(1);
        pc_module *net = pc_sequential(pc_linear(WIDTH, 4), pc_batch_norm1d(4), pc_linear(4, CLASSES));
        assert_ok(pc_module_to(net, test_device(), PC_F32));
        pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
        pc_loader *loader = NULL;
        PC_SCOPE {
            loader =
                pc_loader_from_tensors(values(N, WIDTH, 0), labels(N, false), .batch = ROWS, .device = test_device());
        }
        assert_ok(pc_fit(net, sgd, loader, (pc_fit_options){.accumulate = parts}, NULL));
        pc_parameter list[16];
        const int count = pc_module_state_list(net, list, 16);
        for (int i = 0; i < count; i++)
            if (strstr(list[i].name, "num_batches_tracked"))
                assert_ok(pc_read(list[i].tensor, &updates, sizeof updates));
        assert_int_equal(updates, N / ROWS * parts);
        pc_loader_free(loader);
        pc_optimizer_free(sgd);
        pc_module_free(net);
    }
}

/* --- one recording --- */

typedef struct recorder {
    int steps, recorded;
} recorder;

typedef struct trial {
    int zero, accumulate;
    uint64_t collectives; /* of rank 0 */
} trial;

static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    recorder *r = context;
    if (!result) {
        r->steps++;
        r->recorded += fit->step && !pc_step_why(fit->step);
    }
    return PC_OK;
}

static pc_status recorded_in(trial *t, pc_group *group, int rank, pc_device device)
{
    const job job_of = {.kind = TENSORS, .wide = true}, *j = &job_of;
    const int fine = 0;
    recorder r = {0};
    pc_fit_options none = {0};
    pc_module *net = network(j, rank);
    pc_status status = pc_module_to(net, device, PC_F32);
    pc_zero *zero = status == PC_OK && t->zero ? pc_zero(net, group, .stage = t->zero) : NULL;
    pc_optimizer *adam = pc_adam(zero ? pc_zero_part(zero) : net);
    pc_loader *loader = samples(j, device, true, &fine, COUNT, 4); /* all are whole */
    pc__fit fit = {.net = net,
                   .optimizer = adam,
                   .train = loader,
                   .judge = pc__judge_of(loader, &none),
                   .epochs = EPOCHS,
                   .passed = passed,
                   .context = &r,
                   .accumulate = t->accumulate,
                   .group = pc_group_size(group) > 1 ? group : NULL};
    status = adam && loader ? pc__fit_share_out(&fit, "a test", zero) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc__fit_run(&fit);
    if (status == PC_OK)
        status = pc_device_synchronize(device);
    if (!rank)
        t->collectives = group->end[device.type].comm.begun;
    if (status == PC_OK && (r.steps != EPOCHS || r.recorded != (device.type == PC_CPU ? 0 : EPOCHS)))
        status = pc_fail(PC_ERR_STATE, "%d steps of %d are recorded", r.recorded, r.steps);
    pc__free(fit.parameters);
    pc_optimizer_free(adam);
    pc_zero_free(zero);
    pc_module_free(net);
    pc_loader_free(loader);
    return status;
}

static void record(rank_work *r)
{
    RANK_OK(recorded_in(r->context, r->group, r->rank, r->device));
}

static uint64_t collectives(int ranks, int zero, int accumulate)
{
    trial t = {.zero = zero, .accumulate = accumulate};
    ranks_work(ranks, record, &t);
    return t.collectives;
}

/* With pc_ddp the ranks exchange gradients once, with all stages of ZeRO behind each part. */
static void one_recording(void **state)
{
    (void)state;
    const int most = ranks_most() < 3 ? ranks_most() : 3;
    for (int zero = 0; zero <= STAGES; zero++) {
        (void)collectives(1, zero, 2);
        const uint64_t once = collectives(most, zero, 1), thrice = collectives(most, zero, 3);
        if (most == 1 || test_device().type == PC_CUDA) /* whose launches nobody counts */
            continue;
        assert_true(once > 0);
        assert_true(zero ? thrice >= once + 2 * EPOCHS : thrice == once);
    }
}

/* --- errors --- */

static void no_number(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    for (int zero = 1; zero <= STAGES; zero++)
        fails_with((job){.kind = TENSORS, .bad_sample = 11, .wide = true, .zero = zero, .accumulate = 2}, 3,
                   PC_ERR_RANGE, "x is NaN, in ");
    job alone = {.kind = TENSORS, .bad_sample = 11, .accumulate = 2, .epochs = 2};
    watcher w;
    assert_fails(train(&alone, NULL, 0, test_device(), &w, &alone.want, alone.weights, &alone.numbers), PC_ERR_RANGE,
                 "x is NaN, in sample 11");
}

static void other_settings(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    fails_with((job){.kind = TENSORS, .accumulate = 2, .other_parts_in = 2}, 3, PC_ERR_STATE,
               "rank 0 from batches in 2 parts with stage 0 of ZeRO (0: none), and rank 2 in 3 with 0");
    fails_with((job){.kind = TENSORS, .wide = true, .zero = 2, .mixed = PC_MIXED_F16}, 2, PC_ERR_ARGUMENT,
               "take bfloat16");
}

static pc_status misused(pc_group *group, pc_device device, bool whole, bool without_group)
{
    const int fine = 0;
    job j = {.kind = TENSORS};
    pc_module *net = network(&j, 0);
    pc_status status = pc_module_to(net, device, PC_F32);
    pc_zero *zero = status == PC_OK ? pc_zero(net, group) : NULL;
    status = zero ? pc_device_synchronize(device) : pc_error_last()->status;
    pc_optimizer *sgd = status == PC_OK ? pc_sgd(whole ? net : pc_zero_part(zero), .lr = 0.1) : NULL;
    pc_loader *loader = samples(&j, device, true, &fine, BATCH, 4);
    status = sgd && loader
                 ? pc_fit(net, sgd, loader, (pc_fit_options){.zero = zero, .group = without_group ? NULL : group}, NULL)
                 : pc_error_last()->status;
    pc_optimizer_free(sgd);
    pc_zero_free(zero);
    pc_module_free(net);
    pc_loader_free(loader);
    return status;
}

static void misuse(rank_work *r)
{
    const bool *whole = r->context;
    const pc_status status = misused(r->group, r->device, *whole, !*whole);
    RANK_TRUE(status == PC_ERR_ARGUMENT);
    RANK_TRUE(strstr(pc_error_last()->message, *whole ? "pc_zero_part(zero)" : ".group"));
    pc_error_clear();
}

static void wrong(void **state)
{
    (void)state;
    if (ranks_most() < 2)
        skip();
    ranks_work(2, misuse, &(bool){true});
    ranks_work(2, misuse, &(bool){false});
    job j = {.kind = TENSORS, .accumulate = -1};
    watcher w;
    assert_fails(train(&j, NULL, 0, test_device(), &w, &j.want, j.weights, &j.numbers), PC_ERR_ARGUMENT,
                 "accumulate -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_parts_alone),
        cmocka_unit_test(in_parts_in_ranks),
        cmocka_unit_test(shared_out),
        cmocka_unit_test(chosen),
        cmocka_unit_test(with_another_stage),
        cmocka_unit_test(stopped),
        cmocka_unit_test(in_other_dtypes),
        cmocka_unit_test(cut_networks),
        cmocka_unit_test(cut_networks_whose_file_fails),
        cmocka_unit_test(alike),
        cmocka_unit_test(norms_see_parts),
        cmocka_unit_test(one_recording),
        cmocka_unit_test(no_number),
        cmocka_unit_test(other_settings),
        cmocka_unit_test(wrong),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
