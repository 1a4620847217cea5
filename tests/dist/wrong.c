/* What ranks do wrong: other calls, none at all, arguments that cannot be. Nobody hangs, and errors name ranks. */
#include "comma.h"
#include "dist/threads.h"

static void has(const rank_work *r, const char *words)
{
    if (r->error.status == PC_OK || !strstr(r->error.message, words))
        fail_msg("rank %d: want \"%s\", got: %s", r->rank, words, r->error.message);
}

static void another_op(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, r->device);
        RANK_OK(r->rank == 1 ? pc_group_broadcast(r->group, t, 0) : pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
    }
}

static void another_count(rank_work *r)
{
    PC_SCOPE {
        RANK_OK(
            pc_group_all_reduce(r->group, pc_ones(PC_SHAPE(r->rank == 1 ? 5 : 4), PC_F32, r->device), PC_GROUP_SUM));
    }
}

static void another_dtype(rank_work *r)
{
    PC_SCOPE {
        RANK_OK(pc_group_all_reduce(r->group, pc_ones(PC_SHAPE(4), r->rank == 1 ? PC_F64 : PC_F32, r->device),
                                    PC_GROUP_MAX));
    }
}

static void another_root(rank_work *r)
{
    PC_SCOPE {
        RANK_OK(pc_group_broadcast(r->group, pc_ones(PC_SHAPE(4), PC_F32, r->device), r->rank == 1));
    }
}

static void another_order(rank_work *r)
{
    const bool turns = r->rank == 1;
    PC_SCOPE { /* where one dimension has all the elements there is one order */
        pc_tensor *t = pc_zeros(turns ? PC_SHAPE(3, 1) : PC_SHAPE(1, 3), PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, turns ? pc_transpose(t, 0, 1) : t, PC_GROUP_SUM));
        t = pc_zeros(turns ? PC_SHAPE(3, 2) : PC_SHAPE(2, 3), PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, turns ? pc_transpose(t, 0, 1) : t, PC_GROUP_SUM));
    }
}

/* NCCL does not compare what ranks bring. */
static void calls_that_do_not_fit(void **state)
{
    (void)state;
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 3 || test_device().type == PC_CUDA)
        skip();
    static const struct {
        void (*work)(rank_work *);
        const char *words;
    } cases[] = {{another_op, "rank 0 calls all_reduce and rank 1 broadcast"},
                 {another_count, "rank 0 has 4 float32 and rank 1 5 float32"},
                 {another_dtype, "rank 0 has 4 float32 and rank 1 4 float64"},
                 {another_root, "rank 0 and rank 1 name another root"},
                 {another_order, "rank 0 has its elements in C order and rank 1 in memory order 1 0"}};
    for (int c = 0; c < 5; c++) {
        ranks_run(3, ranks, cases[c].work, NULL);
        for (int i = 0; i < 3; i++)
            has(&ranks[i], cases[c].words);
    }
}

/* The last rank comes to one call less than the others. */
static void too_few(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM)); /* starts the engine, which may take seconds */
        RANK_OK(pc_group_set_timeout(r->group, 0.5));
        if (r->rank < r->size - 1)
            RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
    }
}

static void a_rank_that_does_not_come(void **state)
{
    (void)state;
    rank_work ranks[RANKS_MAX];
    const int n = ranks_most() < 3 ? ranks_most() : 3;
    if (n < 2)
        skip();
    ranks_run(n, ranks, too_few, NULL);
    for (int i = 0; i < n - 1; i++) {
        has(&ranks[i], "has waited 0.5 s for rank");
        has(&ranks[i], "(last in all_reduce, number ");
    }
}

/* Arguments of one rank: told at once, and the group is as good as before. */
static void arguments(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, r->device), *flags = pc_ones(PC_SHAPE(4), PC_BOOL, r->device);
        pc_tensor *whole = pc_ones(PC_SHAPE(4), PC_I32, r->device);
        static const pc_status want[] = {PC_ERR_RANGE, PC_ERR_DTYPE, PC_ERR_DTYPE,    PC_ERR_SHAPE,
                                         PC_ERR_DTYPE, PC_ERR_SHAPE, PC_ERR_ARGUMENT, PC_ERR_ARGUMENT};
        const pc_status got[] = {pc_group_broadcast(r->group, t, r->size),
                                 pc_group_all_reduce(r->group, flags, PC_GROUP_SUM),
                                 pc_group_all_reduce(r->group, whole, PC_GROUP_MEAN),
                                 pc_group_all_gather(r->group, t, t),
                                 pc_group_all_to_all(r->group, t, whole),
                                 pc_group_reduce_scatter(r->group, t, t, PC_GROUP_SUM),
                                 pc_group_send(r->group, t, r->rank),
                                 pc_group_set_timeout(r->group, -1)};
        pc_error_clear();
        for (int i = 0; i < 8; i++)
            RANK_TRUE(got[i] == want[i]);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
        RANK_TRUE(pc_item(pc_sum(t)) == 4.0 * r->size);
    }
}

static void arguments_are_told(void **state)
{
    (void)state;
    pc_group *groups[1];
    if (ranks_most() < 2)
        skip();
    ranks_work(2, arguments, NULL);
    assert_fails(pc_group_threads(0, groups), PC_ERR_ARGUMENT, "0 ranks; a process has 1 to 64");
    assert_fails(pc_group_threads(65, groups), PC_ERR_ARGUMENT, "65 ranks");
    static const char *const seconds[] = {"30s", "-1", "nan", "inf", "long"};
    const char *was = getenv("PARACORD_GROUP_TIMEOUT");
    char before[32];
    snprintf(before, sizeof before, "%s", was ? was : "");
    for (int i = 0; i < 5; i++) {
        setenv("PARACORD_GROUP_TIMEOUT", seconds[i], 1);
        assert_fails(pc_group_threads(1, groups), PC_ERR_ARGUMENT, "PARACORD_GROUP_TIMEOUT is");
    }
    char folder[] = "/tmp/paracord-wrong-XXXXXX", place[64] = "";
    assert_non_null(mkdtemp(folder));
    (void)comma_locale(folder, place, sizeof place);
    setenv("PARACORD_GROUP_TIMEOUT", "2.5", 1);
    const pc_status status = pc_group_threads(1, groups);
    comma_locale_end(place);
    rmdir(folder);
    assert_int_equal(status, PC_OK);
    pc_group_free(groups[0]);
    setenv("PARACORD_GROUP_TIMEOUT", before, 1); /* empty: as if it were not set */
}

/* --- data parallel training --- */

static void another_network(rank_work *r)
{
    pc_module *net = pc_sequential(pc_linear(4, 3), pc_linear(3, r->rank == 1 ? 2 : 1));
    pc_ddp *ddp = pc_module_to(net, r->device, PC_F32) == PC_OK ? pc_ddp(net, r->group) : NULL;
    if (ddp)
        snprintf(r->error.message, sizeof r->error.message, "it was made");
    pc_ddp_free(ddp);
    pc_module_free(net);
}

static void networks_that_differ(void **state)
{
    (void)state;
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 2)
        skip();
    ranks_run(2, ranks, another_network, NULL);
    for (int i = 0; i < 2; i++)
        has(&ranks[i], "rank 0 has 1.weight, float32 [1, 3], and rank 1 1.weight, float32 [2, 3]");
}

/* Each rank makes what its case says of it: buckets, dtype, and a stage of ZeRO or, by 0, pc_ddp. */
typedef struct manner {
    pc_zero_options rank[2];
    bool frozen; /* a layer, in rank 1 */
    const char *words;
} manner;

static void another_manner(rank_work *r)
{
    const manner *m = r->context;
    const pc_zero_options *o = &m->rank[r->rank];
    pc_module *net = pc_sequential(pc_linear(4, 3), pc_linear(3, 2));
    if (m->frozen && r->rank == 1)
        RANK_OK(pc_module_freeze(net, "0.*"));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = o->stage ? NULL : pc_ddp(net, r->group, .bucket_mb = o->bucket_mb, .reduce_dtype = o->reduce_dtype);
    pc_zero *zero = o->stage ? pc_zero_new(net, r->group, *o) : NULL;
    if (ddp || zero)
        snprintf(r->error.message, sizeof r->error.message, "it was made");
    pc_zero_free(zero);
    pc_ddp_free(ddp);
    pc_module_free(net);
}

static void manners_that_differ(void **state)
{
    (void)state;
    static const manner cases[] = {
        {.rank = {{.stage = 0}, {.reduce_dtype = PC_BF16}},
         .words =
             "rank 0 has pc_ddp, bucket_mb 25, reduce_dtype float32, and rank 1 pc_ddp, bucket_mb 25, reduce_dtype "
             "bfloat16"},
        {.rank = {{.bucket_mb = 25}, {.bucket_mb = 1}}, .words = "and rank 1 pc_ddp, bucket_mb 1,"},
        {.rank = {{.stage = 0}, {.stage = 1}}, .words = "and rank 1 pc_zero, stage 1, ahead 0, bucket_mb 25"},
        {.rank = {{.stage = 2}, {.stage = 3}}, .words = "and rank 1 pc_zero, stage 3"},
        {.rank = {{.stage = 3}, {.stage = 3, .ahead = 2}}, .words = "and rank 1 pc_zero, stage 3, ahead 2"},
        {.rank = {{.stage = 1, .reduce_dtype = PC_F16}, {.stage = 1}}, .words = "reduce_dtype float16, and rank 1"},
        {.frozen = true,
         .words = "rank 0 has 0.weight, float32 [3, 4], and rank 1 0.weight, float32 [3, 4], not trained"}};
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 2)
        skip();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        ranks_run(2, ranks, another_manner, (void *)(uintptr_t)&cases[c]);
        for (int i = 0; i < 2; i++)
            has(&ranks[i], cases[c].words);
    }
}

/* 0 is what it stands for. */
static void manners_that_are_the_same(rank_work *r)
{
    pc_module *net = pc_sequential(pc_linear(4, 3), pc_linear(3, 2));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = r->rank ? pc_ddp(net, r->group, .bucket_mb = 25) : pc_ddp(net, r->group, .reduce_dtype = PC_F32);
    RANK_TRUE(ddp);
    pc_ddp_free(ddp);
    pc_zero *zero = r->rank ? pc_zero(net, r->group, .stage = 1) : pc_zero(net, r->group);
    RANK_TRUE(zero);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void settings_that_are_the_usual_ones(void **state)
{
    (void)state;
    if (ranks_most() < 2)
        skip();
    ranks_work(2, manners_that_are_the_same, NULL);
}

static void unused_parameters(rank_work *r)
{
    pc_module *a = pc_linear(4, 2), *b = pc_linear(4, 2), *net = pc_module_list(a, b);
    pc_ddp *ddp = pc_module_to(net, r->device, PC_F32) == PC_OK ? pc_ddp(net, r->group) : NULL;
    RANK_TRUE(ddp);
    RANK_TRUE(!pc_ddp(net, r->group) && strstr(pc_error_last()->message, "is in another pc_ddp"));
    pc_error_clear();
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 4), PC_F32, r->device);
        RANK_OK(pc_backward(pc_sum(pc_forward(r->rank ? b : a, x)))); /* each rank uses another layer */
        pc_parameter list[4];
        RANK_TRUE(pc_module_parameter_list(net, list, 4) == 4);
        for (int i = 0; i < 4; i++) {
            const double ranks = i < 2 ? 1 : r->size - 1, n = i % 2 ? 2 : 8;
            const double sum = pc_item(pc_sum(pc_grad(list[i].tensor)));
            RANK_TRUE(sum - n * ranks / r->size < 1e-5 && n * ranks / r->size - sum < 1e-5);
        }
    }
    pc_ddp_free(ddp);
    pc_module_free(net);
}

static void parameters_that_a_rank_does_not_use(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 2; n <= most; n++)
        ranks_work(n, unused_parameters, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_do_not_fit),
        cmocka_unit_test(a_rank_that_does_not_come),
        cmocka_unit_test(arguments_are_told),
        cmocka_unit_test(networks_that_differ),
        cmocka_unit_test(manners_that_differ),
        cmocka_unit_test(settings_that_are_the_usual_ones),
        cmocka_unit_test(parameters_that_a_rank_does_not_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
