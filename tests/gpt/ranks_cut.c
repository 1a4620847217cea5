/* A GPT that is cut up among ranks while it is trained, and copies of it that share batches: losses and weights are those of
 * one device; a checkpoint is anybody's, and goes on to the bits of a training that was never stopped. */
#include "dist/threads.h"

#include "failing.h"
#include "ranks.h"

/* The checkpoint of the run, for comparisons. */
static void keep(void)
{
    char from[LONGEST], to[LONGEST];
    assert_int_equal(rename(in_folder(from, "run/checkpoint"), in_folder(to, "kept")), 0);
}

/* How far weights and moments are from those that were kept. */
static double off_kept(void)
{
    char path[LONGEST], other[LONGEST];
    pc_weights *a = pc_weights_open(in_folder(path, "run/checkpoint")), *b = pc_weights_open(in_folder(other, "kept"));
    double off = 0;
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    assert_int_equal(pc_weights_count(a), pc_weights_count(b));
    for (int i = 0; i < pc_weights_count(a); i++)
        PC_SCOPE {
            pc_weights_entry e;
            assert_ok(pc_weights_query(a, i, &e));
            pc_tensor *got = pc_weights_read(a, e.name, PC_DEVICE_CPU);
            pc_tensor *want = pc_weights_read(b, e.name, PC_DEVICE_CPU);
            if (e.name[0] == 'c' || e.name[0] == 't') /* "curve", "tested" */
                break;
            const double most = pc_item(pc_max(pc_abs(pc_sub(got, want))));
            off = isnan(most) ? INFINITY : fmax(off, most); /* fmax passes over NaN */
        }
    pc_weights_free(a);
    pc_weights_free(b);
    return off;
}

typedef struct turn {
    int ranks, cut, zero, accumulate, batch;
} turn;

static job job_of(turn t)
{
    return (job){.cut = t.cut, .zero = t.zero, .accumulate = t.accumulate, .batch = t.batch};
}

static void all_learn_the_same(void **state)
{
    (void)state;
    static const turn turns[] = {{2, 2, 0, 1, 0}, {4, 4, 0, 2, 0}, {4, 2, 0, 3, 0}, {4, 2, 1, 1, 0}, {4, 2, 2, 2, 0},
                                 {4, 2, 3, 1, 0}, {2, 2, 3, 1, 0}, {2, 1, 0, 1, 0}, {4, 2, 0, 1, 7}, {6, 2, 2, 1, 7}};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        static job want;
        if (!i || turns[i].batch != turns[i - 1].batch) {
            want = job_of((turn){.batch = turns[i].batch});
            drop_run();
            assert_ok(train(&want, NULL, 0, test_device()));
            keep();
        }
        if (turns[i].ranks > ranks_most())
            continue;
        job j = job_of(turns[i]);
        drop_run();
        ranks_work(turns[i].ranks, work, &j);
        assert_learnt(&j, &want);
        assert_int_equal(j.parameters, want.parameters);
        assert_string_equal(j.sample, want.sample);
        if (!(off_kept() < 1e-5))
            fail_msg("turn %d: weights or moments are off by %g", (int)i, off_kept());
    }
}

/* The folder's network is the whole one, for anybody, and to begin from. */
static void files_are_whole(void **state)
{
    char run[LONGEST], base[LONGEST];
    (void)state;
    if (ranks_most() < 4)
        skip();
    drop_run();
    job j = {.cut = 2};
    ranks_work(4, work, &j);
    pc_module *gpt = pc_gpt_open(in_folder(run, "run"), PC_DEVICE_CPU);
    pc_gpt_options o;
    assert_not_null_ok(gpt);
    assert_ok(pc_gpt_query(gpt, &o));
    assert_int_equal(o.heads, HEADS);
    assert_int_equal(pc_module_parameter_elements(gpt), j.parameters);
    pc_module_free(gpt);
    assert_int_equal(rename(run, in_folder(base, "base")), 0);
    job alone = {.from = base}, cut = {.from = base, .cut = 2};
    assert_ok(train(&alone, NULL, 0, test_device()));
    keep();
    drop_run();
    ranks_work(4, work, &cut);
    assert_learnt(&cut, &alone);
    assert_true(alone.loss < j.loss && off_kept() < 1e-5);
    drop_run();
    (void)remove(run);
    assert_int_equal(rename(base, run), 0);
}

static void another_cut_goes_on(void **state)
{
    (void)state;
    static const turn turns[][2] = {{{4, 2, 3, 1, 0}, {1, 1, 0, 1, 0}},
                                    {{1, 1, 0, 1, 0}, {4, 2, 2, 1, 0}},
                                    {{2, 2, 0, 1, 0}, {4, 4, 0, 2, 0}},
                                    {{4, 2, 0, 1, 0}, {2, 1, 1, 1, 0}},
                                    {{4, 4, 0, 1, 0}, {4, 2, 3, 2, 0}}};
    const job want = undisturbed();
    keep();
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (turns[i][0].ranks > ranks_most() || turns[i][1].ranks > ranks_most())
            continue;
        drop_run();
        for (int k = 0; k < 2; k++) {
            job j = job_of(turns[i][k]);
            j.resume = true, j.stop_at = k ? 0 : STEPS / 2;
            ranks_work(turns[i][k].ranks, work, &j);
            if (k)
                assert_learnt(&j, &want);
            else
                assert_true(j.interrupted && j.steps < STEPS);
        }
        if (!(off_kept() < 1e-5))
            fail_msg("turn %d: weights or moments are off by %g", (int)i, off_kept());
    }
}

/* With dropout, too: what the ranks of a network draw is alike where it is whole, and other than in its copies. */
static void goes_on_to_the_same_bits(void **state)
{
    (void)state;
    if (ranks_most() < 4)
        skip();
    for (int zero = 0; zero <= 3; zero += 3) {
        job want = {.cut = 2, .zero = zero, .dropout = 0.1}, begun = want, ended = want, other = want;
        drop_run();
        ranks_work(4, work, &want);
        keep();
        drop_run();
        begun.stop_at = STEPS / 2;
        ranks_work(4, work, &begun);
        assert_true(begun.interrupted);
        ended.resume = true;
        ranks_work(4, work, &ended);
        assert_true(ended.loss == want.loss && ended.test_loss == want.test_loss && off_kept() == 0);
        drop_run();
        other.dropout = 0.2;
        ranks_work(4, work, &other);
        assert_true(off_kept() > 1e-4);
    }
}

static void in_bfloat16(void **state)
{
    (void)state;
    if (ranks_most() < 4)
        skip();
    job want = {.precision = "bf16"};
    drop_run();
    assert_ok(train(&want, NULL, 0, test_device()));
    for (int zero = 0; zero <= 3; zero += 3) {
        job j = {.cut = 2, .zero = zero, .precision = "bf16"};
        drop_run();
        ranks_work(4, work, &j);
        assert_close(j.loss, want.loss, 2e-2);
        assert_close(j.test_loss, want.test_loss, 2e-2);
    }
}

static void assert_refused(int n, job j, pc_status status, const char *words)
{
    rank_work ranks[RANKS_MAX];
    drop_run();
    ranks_run(n, ranks, work, &j);
    for (int i = 0; i < n; i++)
        if (ranks[i].error.status != status || !strstr(ranks[i].error.message, words))
            fail_msg("rank %d of %d: no \"%s\" in \"%s\"", i, n, words, ranks[i].error.message);
}

static void wrong_numbers(void **state)
{
    (void)state;
    job alone = {.cut = 2}, below = {.cut = -1};
    assert_fails(train(&alone, NULL, 0, test_device()), PC_ERR_ARGUMENT,
                 "1 rank cannot be put together into networks of 2");
    assert_fails(train(&below, NULL, 0, test_device()), PC_ERR_ARGUMENT, "tensor_parallel -1");
    if (ranks_most() < 4)
        skip();
    assert_refused(3, (job){.cut = 2}, PC_ERR_ARGUMENT,
                   "3 ranks cannot be put together into networks of 2 (tensor_parallel); take a multiple of 2 ranks");
    assert_refused(4, (job){.cut = 8}, PC_ERR_ARGUMENT, "a number that divides 4");
    assert_refused(3, (job){.cut = 3}, PC_ERR_ARGUMENT, "3 ranks cannot share 4 heads");
    assert_refused(4, (job){.cut = 2, .batch = 1}, PC_ERR_ARGUMENT,
                   "a batch of 1 is too small for 2 copies of the network, each of 2 ranks");
}

/* What goes wrong in the first rank alone is heard in all others, in whatever group they wait. */
static void one_that_fails(void **state)
{
    char path[LONGEST];
    rank_work ranks[RANKS_MAX];
    (void)state;
    if (ranks_most() < 4 || ranks_are_processes())
        skip();
    job j = {.cut = 2};
    drop_run();
    (void)remove(in_folder(path, "run"));
    assert_ok(pc__file_write(path, "a file", 6));
    ranks_run(4, ranks, work, &j);
    assert_int_equal(ranks[0].error.status, PC_ERR_FILE);
    for (int i = 1; i < 4; i++)
        if (!strstr(ranks[i].error.message, "rank 0"))
            fail_msg("rank %d: %s", i, ranks[i].error.message);
    (void)remove(path);
}

/* --- the last rank alone is out of memory, at the end of the training, which is in its checkpoint --- */

static _Thread_local bool last;
static atomic_int counted, refused; /* allocations of the last rank; the number of one that fails */

static bool refuses(void)
{
    return last && atomic_fetch_add(&counted, 1) == atomic_load(&refused);
}

static void *last_alloc(void *context, size_t bytes, size_t alignment)
{
    return refuses() ? NULL : failing_alloc(context, bytes, alignment);
}

static void *last_resize(void *context, void *block, size_t bytes)
{
    return refuses() ? NULL : failing_resize(context, block, bytes);
}

static void work_counted(rank_work *r)
{
    last = r->rank == 3;
    const pc_status status = train(r->context, r->group, r->rank, r->device);
    last = false;
    RANK_OK(status);
}

static int train_refusing(int number, rank_work ranks[RANKS_MAX])
{
    job j = {.cut = 2, .zero = 1};
    drop_run();
    atomic_store(&counted, 0);
    atomic_store(&refused, number);
    ranks_run(4, ranks, work_counted, &j);
    return atomic_load(&counted);
}

static void one_that_is_out_of_memory(void **state)
{
    enum { AT_THE_END = 8 };
    rank_work ranks[RANKS_MAX];
    char path[LONGEST];
    int told = 0;
    (void)state;
    if (ranks_most() < 4 || ranks_are_processes() || test_device().type != PC_CPU)
        skip();
    (void)train_refusing(-1, ranks); /* what is kept of memory is there then */
    const int all = train_refusing(-1, ranks);
    for (int i = 1; i <= AT_THE_END || (!told && i <= 4 * AT_THE_END); i++) { /* a run may have some less */
        (void)train_refusing(all - i, ranks);
        if (ranks[3].error.status == PC_OK)
            continue;
        assert_int_equal(ranks[3].error.status, PC_ERR_MEMORY);
        for (int k = 0; k < 3; k++)
            if (strncmp(ranks[k].error.message, "rank 3", 6) != 0)
                fail_msg("rank %d: %s", k, ranks[k].error.message);
        assert_int_equal(access(in_folder(path, "run/checkpoint"), F_OK), -1);
        told++;
    }
    assert_true(told > 0);
}

int main(void)
{
    static const pc_allocator counting = {last_alloc, last_resize, failing_free, NULL};
    if (pc_allocator_set(&counting) != PC_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_the_same),  cmocka_unit_test(files_are_whole),
        cmocka_unit_test(another_cut_goes_on), cmocka_unit_test(goes_on_to_the_same_bits),
        cmocka_unit_test(in_bfloat16),         cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(one_that_fails),      cmocka_unit_test(one_that_is_out_of_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
