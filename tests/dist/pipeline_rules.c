/* What pipelines promise besides what is learnt: memory, stages of every kind, cuts, what is drawn. */
#include "dist/threads.h"

#include <math.h>

enum { WIDTH = 256, EACH = 64, MANY = 12 };

static pc_tensor *mean_square(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return pc_mse(y, target);
}

/* --- memory --- */

typedef struct probe {
    pc_device device;
    int64_t first,
        most; /* bytes in use at the step's forward passes: the first one's, and the most; first < 0: none yet */
} probe;

static pc_tensor *look(void *context, pc_tensor *x)
{
    probe *p = context;
    pc_memory_stats stats;
    if (pc_memory_query(p->device, &stats) != PC_OK)
        return NULL;
    p->first = p->first < 0 ? stats.in_use : p->first;
    p->most = stats.in_use > p->most ? stats.in_use : p->most;
    return x;
}

/* How many bytes more than in its first forward pass a stage has in use, at most. */
static int64_t growth(rank_work *r, pc_pipeline_schedule schedule)
{
    probe at = {.device = r->device};
    pc_module *net =
        pc_sequential(pc_linear(WIDTH, WIDTH), pc_activation(PC_ACTIVATION_TANH), pc_function_module(look, &at));
    pc_pipeline *pipe = NULL;
    pc_status status = pc_module_to(net, r->device, PC_F32);
    if (status == PC_OK)
        pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = MANY, .schedule = schedule);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(MANY * EACH, WIDTH), PC_F32, r->device);
        for (int step = 0; pipe && step < 2 && status == PC_OK; step++) {
            at.first = at.most = -1;
            status = pc_pipeline_step(pipe, x, x, NULL);
        }
    }
    if (!pipe || status != PC_OK)
        at.first = at.most + 1;
    pc_pipeline_free(pipe);
    pc_module_free(net);
    return at.most - at.first;
}

static void compare_growth(rank_work *r)
{
    const int64_t steady = growth(r, PC_PIPELINE_1F1B), all = growth(r, PC_PIPELINE_GPIPE), each = all / (MANY - 1);
    RANK_TRUE(steady >= 0 && all >= 0);
    RANK_TRUE(each >= EACH * WIDTH * 4);
    RANK_TRUE(steady <= (r->size - 1 - r->rank) * each + each / 2);
}

static void activations_of_what_is_in_flight(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU && !ranks_are_processes())
        skip(); /* all ranks in one memory */
    for (int stages = 2; stages <= 4 && stages <= ranks_most(); stages++)
        ranks_work(stages, compare_growth, NULL);
}

/* --- stages of every kind --- */

static pc_tensor *itself(void *context, pc_tensor *x)
{
    (void)context;
    return x;
}

/* The middle one hands on what it gets, the first one learns nothing, the last one does not look at what it gets. */
static void odd_stages(rank_work *r)
{
    static const float start = 2;
    RANK_OK(pc_device_set_current(r->device));
    pc_module *net = r->rank == 1 ? pc_function_module(itself, NULL) : pc_linear(1, 1);
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    if (r->rank == 0)
        RANK_OK(pc_module_freeze(net, "*"));
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 2, .share_loss = true);
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    RANK_TRUE(pipe && sgd);
    RANK_OK(pc_optimizer_set_clip(sgd, PC_CLIP_NORM, 1e-3));
    RANK_OK(pc_group_set_timeout(r->group, 60));
    PC_SCOPE {
        float loss = -1;
        pc_tensor *x = pc_full(PC_SHAPE(4, 1), start, PC_F32, r->device), *mean;
        RANK_OK(pc_pipeline_step(pipe, x, x, &mean));
        RANK_OK(pc_read(mean, &loss, sizeof loss));
        RANK_TRUE(loss >= 0);
        RANK_TRUE((pc_module_parameter_elements(net) == 2) == (r->rank != 1));
        if (r->rank == 2)
            RANK_TRUE(pc_grad(pc_module_parameter(net, "weight")));
        pc_tensor *norms = pc_zeros(PC_SHAPE(3), PC_F64, r->device);
        double norm, all[3];
        RANK_OK(pc_pipeline_update(pipe, sgd));
        RANK_OK(pc_optimizer_gradient_norm(sgd, &norm));
        RANK_OK(pc_group_all_gather(r->group, norms, pc_full(PC_SHAPE(1), norm, PC_F64, r->device)));
        RANK_OK(pc_read(norms, all, sizeof all));
        RANK_TRUE(norm > 0 && all[0] == norm && all[1] == norm && all[2] == norm);
    }
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static void stages_that_learn_nothing(void **state)
{
    (void)state;
    if (ranks_most() >= 3)
        ranks_work(3, odd_stages, NULL);
}

/* --- cuts --- */

static pc_module *layers(void)
{
    return pc_sequential(pc_linear(10, 10, .no_bias = true), pc_activation(PC_ACTIVATION_RELU),
                         pc_linear(10, 2, .no_bias = true), pc_linear(2, 20, .no_bias = true), pc_flatten(),
                         pc_linear(20, 3, .no_bias = true));
}

static void balanced_cuts(void **state)
{
    (void)state;
    /* numbers: 100, 0, 20, 40, 0, 60 */
    static const int want[][7] = {{0, 6}, {0, 3, 6}, {0, 2, 5, 6}, {0, 2, 3, 5, 6}, {0}, {0, 1, 2, 3, 4, 5, 6}};
    pc_module *net = layers();
    int first[PC_PIPELINE_STAGES + 1];
    for (int stages = 1; stages <= 6; stages++) {
        assert_ok(pc_pipeline_balance(net, stages, first));
        for (int i = 0; i <= stages; i++)
            if (stages != 5 && first[i] != want[stages - 1][i])
                fail_msg("%d stages: stage %d begins at %d, not %d", stages, i, first[i], want[stages - 1][i]);
        for (int i = 0; i < stages; i++)
            assert_true(first[i] < first[i + 1]);
    }
    assert_fails(pc_pipeline_balance(net, 7, first), PC_ERR_ARGUMENT, "7 stages of 6 layers; there are 1 to 6");
    assert_fails(pc_pipeline_balance(net, 0, first), PC_ERR_ARGUMENT, "0 stages of 6 layers");
    assert_fails(pc_pipeline_balance(pc_module_child(net, 0), 1, first), PC_ERR_ARGUMENT, "a Linear cannot be cut");
    assert_fails(pc_pipeline_cut(net, 2, 2), PC_ERR_RANGE, "children 2 to 1 of 6; at least one is left");
    assert_fails(pc_pipeline_cut(net, -1, 2), PC_ERR_RANGE, "of 6");
    assert_fails(pc_pipeline_cut(net, 2, 7), PC_ERR_RANGE, "of 6");
    pc_module_free(net);
}

static void a_stage_of_a_checkpoint(void **state)
{
    (void)state;
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    const int64_t live = pc_allocator_live();
    pc_parameter whole[4], part[4];
    pc_load_report report;
    pc_module *net = layers(), *stage = layers();
    assert_ok(pc_pipeline_cut(stage, 3, 6));
    assert_int_equal(pc_module_child_count(stage), 3);
    assert_int_equal(pc_module_parameter_list(stage, part, 4), 2);
    assert_string_equal(part[0].name, "3.weight");
    assert_string_equal(part[1].name, "5.weight");
    assert_int_equal(pc_module_parameter_list(net, whole, 4), 4);
    assert_ok(pc_module_load_matching(stage, whole, 4, &report));
    assert_int_equal(report.loaded, 2);
    assert_int_equal(report.missing, 0);
    assert_memory_equal(pc_data(part[1].tensor), pc_data(whole[3].tensor), 60 * sizeof(float));
    pc_module_free(stage);
    pc_module_free(net);
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(pc_allocator_live(), live);
}

/* --- dropout --- */

enum { DROP_STEPS = 3, DROP_SAMPLES = 12, DROP_WIDTH = 6, DROP_NUMBERS = DROP_SAMPLES * DROP_WIDTH };

typedef struct dropping {
    pc_pipeline *pipe;
    pc_tensor *x, *seen; /* what the stage made at last */
    bool checkpointed, recorded;
} dropping;

static pc_tensor *see(void *context, pc_tensor *x)
{
    const dropping *d = context;
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc_copy(d->seen, x);
    }
    return status == PC_OK ? x : NULL;
}

static pc_status drop(void *context)
{
    const dropping *d = context;
    return pc_pipeline_step(d->pipe, d->x, d->x, NULL);
}

/* The zeros of each step. */
static pc_status drop_steps(rank_work *r, dropping *d, bool zeros[DROP_STEPS][DROP_NUMBERS])
{
    pc_seed(6);
    pc_module *inside = pc_sequential(pc_dropout(0.5), pc_function_module(see, d));
    pc_module *net = pc_sequential(pc_linear(DROP_WIDTH, DROP_WIDTH), inside);
    pc_status status = pc_module_to(net, r->device, PC_F32);
    pc_module_set_checkpoint(inside, d->checkpointed);
    d->pipe = status == PC_OK ? pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 1) : NULL;
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    PC_SCOPE {
        d->x = pc_ones(PC_SHAPE(DROP_SAMPLES, DROP_WIDTH), PC_F32, r->device);
        d->seen = pc_zeros(PC_SHAPE(DROP_SAMPLES, DROP_WIDTH), PC_F32, r->device);
        pc_step *step = d->recorded ? pc_step_new(drop, d, sgd) : NULL;
        status = d->pipe && sgd && d->seen ? PC_OK : pc_error_last()->status;
        for (int i = 0; i < DROP_STEPS && status == PC_OK; i++) {
            float made[DROP_NUMBERS];
            status = step ? pc_step_run(step) : drop(d);
            if (status == PC_OK)
                status = pc_read(d->seen, made, sizeof made);
            for (int k = 0; k < DROP_NUMBERS; k++)
                zeros[i][k] = made[k] == 0;
        }
        if (status == PC_OK && step && pc_step_why(step))
            status = pc_fail(PC_ERR_STATE, "%s", pc_step_why(step));
        pc_step_free(step);
    }
    pc_optimizer_free(sgd);
    pc_pipeline_free(d->pipe);
    pc_module_free(net);
    return status;
}

static bool drop_zeros[RANKS_MAX][DROP_STEPS][DROP_NUMBERS];

static void drops(rank_work *r)
{
    bool again[DROP_STEPS][DROP_NUMBERS];
    RANK_OK(drop_steps(r, &(dropping){0}, drop_zeros[r->rank]));
    for (int way = 1; way < 4; way++) {
        RANK_OK(drop_steps(r, &(dropping){.checkpointed = way & 1, .recorded = way & 2}, again));
        RANK_TRUE(memcmp(again, drop_zeros[r->rank], sizeof again) == 0);
    }
    if (r->rank) /* a stage alone draws what the first one does */
        return;
    pc_generator before, after;
    pc_seed(6);
    PC_SCOPE {
        before = pc_generator_get();
        pc_module *alone = pc_linear(DROP_WIDTH, DROP_WIDTH);
        pc_tensor *y = pc_fn_dropout(pc_ones(PC_SHAPE(DROP_SAMPLES, DROP_WIDTH), PC_F32, r->device), 0.5);
        after = pc_generator_get();
        float made[DROP_NUMBERS];
        RANK_OK(pc_read(y, made, sizeof made));
        RANK_TRUE(before.seed == after.seed);
        for (int k = 0; k < DROP_NUMBERS; k++)
            RANK_TRUE((made[k] == 0) == drop_zeros[0][0][k]);
        pc_module_free(alone);
    }
}

static void other_zeros_in_each_stage(void **state)
{
    (void)state;
    if (ranks_most() < 2 || ranks_are_processes())
        return;
    ranks_work(2, drops, NULL);
    for (int a = 0; a < DROP_STEPS; a++) {
        int same = 0, later = 0;
        for (int k = 0; k < DROP_NUMBERS; k++) {
            same += drop_zeros[0][a][k] == drop_zeros[1][a][k];
            later += drop_zeros[1][a][k] == drop_zeros[1][(a + 1) % DROP_STEPS][k];
        }
        assert_in_range(same, DROP_NUMBERS / 4, DROP_NUMBERS * 3 / 4);
        assert_in_range(later, DROP_NUMBERS / 4, DROP_NUMBERS * 3 / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_of_what_is_in_flight),
        cmocka_unit_test(stages_that_learn_nothing),
        cmocka_unit_test(balanced_cuts),
        cmocka_unit_test(a_stage_of_a_checkpoint),
        cmocka_unit_test(other_zeros_in_each_stage),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}
