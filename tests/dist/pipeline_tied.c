/* Parameters of which several stages of a pipeline have a copy, and stages that are cut up: what is learnt is what one network
 * learns. */
#include "dist/threads.h"

#include <math.h>

static pc_tensor *mean_square(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return pc_mse(y, target);
}

enum { TIED_STEPS = 3, TIED_SAMPLES = 12, TIED_WIDTH = 6 };

/* Matrix a twice, with b between. */
static pc_tensor *twice(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = pc_tanh(pc_forward_child(module, "a", x));
    return pc_forward_child(module, "a", pc_tanh(pc_forward_child(module, "b", y)));
}

static const pc_module_class twice_class = {.name = "Twice", .forward = twice};

static pc_tensor *by_b(pc_module *module, pc_tensor *x)
{
    return pc_forward_child(module, "b", x);
}

static const pc_module_class aside_class = {.name = "Aside", .forward = by_b};

static pc_module *square(int seed)
{
    pc_seed((uint64_t)seed);
    return pc_linear(TIED_WIDTH, TIED_WIDTH, .no_bias = true);
}

static pc_optimizer *clipped(pc_module *net)
{
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.3, .momentum = 0.9);
    return sgd && pc_optimizer_set_clip(sgd, PC_CLIP_NORM, 0.05) == PC_OK ? sgd : NULL;
}

static pc_tensor *inputs(pc_device device)
{
    float x[TIED_SAMPLES * TIED_WIDTH];
    for (int i = 0; i < TIED_SAMPLES * TIED_WIDTH; i++)
        x[i] = (float)((i * 37 + 11) % 29) / 29.0f - 0.4f;
    return pc_from_data(x, PC_SHAPE(TIED_SAMPLES, TIED_WIDTH), PC_F32, device);
}

static float tied_want[2][TIED_WIDTH * TIED_WIDTH];

static void learn_twice(void)
{
    pc_module *net = pc_module_of(&twice_class, {"a", square(1)}, {"b", square(2)});
    assert_ok(pc_module_to(net, test_device(), PC_F32));
    pc_optimizer *sgd = clipped(net);
    for (int step = 0; step < TIED_STEPS; step++)
        PC_SCOPE {
            pc_tensor *x = inputs(test_device());
            assert_ok(pc_backward(pc_mse(pc_forward(net, x), x)));
            assert_ok(pc_optimizer_step(sgd));
        }
    assert_ok(pc_read(pc_module_parameter(net, "a.weight"), tied_want[0], sizeof *tied_want));
    assert_ok(pc_read(pc_module_parameter(net, "b.weight"), tied_want[1], sizeof *tied_want));
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

/* The last rank's copy begins with other numbers. */
static void learn_tied(rank_work *r)
{
    const bool middle = r->rank == 1;
    pc_module *layer = square(r->rank == 0 ? 1 : middle ? 2 : 7);
    pc_module *net = r->rank == 2 ? pc_sequential(layer) : pc_sequential(layer, pc_activation(PC_ACTIVATION_TANH));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_tensor *weight = pc_module_parameter(net, "0.weight");
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 5);
    RANK_TRUE(pipe);
    RANK_OK(pc_pipeline_tie(pipe, middle ? NULL : weight));
    pc_optimizer *sgd = clipped(net);
    for (int step = 0; step < TIED_STEPS; step++)
        PC_SCOPE {
            pc_tensor *x = inputs(r->device);
            RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
            RANK_OK(pc_pipeline_update(pipe, sgd));
        }
    float got[TIED_WIDTH * TIED_WIDTH];
    RANK_OK(pc_read(weight, got, sizeof got));
    for (int i = 0; i < TIED_WIDTH * TIED_WIDTH; i++)
        RANK_TRUE(fabsf(got[i] - tied_want[middle][i]) <= 1e-6f);
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static void one_parameter_in_two_stages(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        return;
    learn_twice();
    ranks_work(3, learn_tied, NULL);
}

/* The last stage's own takes no part in its loss, and its pc_ddp has zeros in the place of the gradient. */
static void learn_tied_by_ddp(rank_work *r)
{
    pc_group *own;
    RANK_OK(pc_group_split(r->group, r->rank, 0, &own));
    pc_module *layer = square(r->rank), *net = layer;
    if (r->rank)
        net = pc_module_of(&aside_class, {"0", layer}, {"b", square(2)});
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = pc_ddp(net, own);
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 2, .ddp = ddp);
    RANK_TRUE(ddp && pipe);
    pc_tensor *weight = pc_module_parameter(layer, "weight");
    RANK_OK(pc_pipeline_tie(pipe, weight));
    pc_optimizer *sgd = clipped(net);
    PC_SCOPE {
        pc_tensor *x = inputs(r->device), *before = pc_clone(weight);
        for (int step = 0; step < 2; step++) {
            RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
            RANK_OK(pc_pipeline_update(pipe, sgd));
        }
        pc_tensor *both = pc_zeros(PC_SHAPE(2 * TIED_WIDTH, TIED_WIDTH), PC_F32, r->device);
        RANK_OK(pc_group_all_gather(r->group, both, pc_detach(weight)));
        pc_tensor *first = pc_slice(both, 0, 0, TIED_WIDTH, 1),
                  *last = pc_slice(both, 0, TIED_WIDTH, 2 * TIED_WIDTH, 1);
        RANK_TRUE(pc_item(pc_max(pc_abs(pc_sub(first, before)))) > 0);
        RANK_TRUE(pc_item(pc_max(pc_abs(pc_sub(first, last)))) == 0);
    }
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_ddp_free(ddp);
    pc_module_free(net);
    pc_group_free(own);
}

static void a_copy_that_its_stage_leaves_out(void **state)
{
    (void)state;
    if (ranks_most() >= 2)
        ranks_work(2, learn_tied_by_ddp, NULL);
}

/* An infinite gradient of a copy: the norm is infinite, so that no other parameter moves. */
static void steps_by_no_norm(rank_work *r)
{
    pc_module *layer = square(4), *net = pc_module_of(&aside_class, {"0", layer}, {"b", square(5)});
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 2);
    RANK_TRUE(pipe);
    pc_tensor *weight = pc_module_parameter(layer, "weight"), *other = pc_module_parameter(net, "b.weight");
    RANK_OK(pc_pipeline_tie(pipe, weight));
    pc_optimizer *sgd = clipped(net);
    PC_SCOPE {
        pc_tensor *x = inputs(r->device), *before = pc_clone(other);
        double norm;
        RANK_OK(pc_backward(pc_mul_scalar(pc_sum(weight), INFINITY)));
        RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
        RANK_OK(pc_pipeline_update(pipe, sgd));
        RANK_OK(pc_optimizer_gradient_norm(sgd, &norm));
        RANK_TRUE(isinf(norm));
        RANK_TRUE(pc_item(pc_max(pc_abs(pc_sub(other, before)))) == 0);
    }
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static void a_copy_whose_gradient_is_infinite(void **state)
{
    (void)state;
    if (ranks_most() >= 2)
        ranks_work(2, steps_by_no_norm, NULL);
}

static _Thread_local bool rests; /* the copy is in no loss of this rank's */

static pc_tensor *by_both(pc_module *module, pc_tensor *x)
{
    return pc_forward_child(module, "b", rests ? x : pc_forward_child(module, "0", x));
}

static const pc_module_class both_class = {.name = "Both", .forward = by_both};

/* Of the first stage's loss, of none, of the last one's: momentum and decay move it with a gradient alone. */
static void learn_tied_that_rests(rank_work *r)
{
    static const bool uses[][2] = {{true, false}, {false, false}, {false, true}, {false, false}, {true, true}};
    const bool *by_ddp = r->context;
    pc_group *own;
    RANK_OK(pc_group_split(r->group, r->rank, 0, &own));
    pc_module *layer = square(4), *net = pc_module_of(&both_class, {"0", layer}, {"b", square(5)});
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = *by_ddp ? pc_ddp(net, own) : NULL;
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 2, .ddp = ddp);
    RANK_TRUE(pipe);
    pc_tensor *weight = pc_module_parameter(layer, "weight");
    RANK_OK(pc_pipeline_tie(pipe, weight));
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.1);
    for (int step = 0; step < 5; step++)
        PC_SCOPE {
            pc_tensor *x = inputs(r->device), *before = pc_clone(weight);
            rests = !uses[step][r->rank];
            RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
            RANK_OK(pc_pipeline_update(pipe, sgd));
            RANK_TRUE((pc_item(pc_max(pc_abs(pc_sub(weight, before)))) > 0) == (uses[step][0] || uses[step][1]));
            pc_tensor *all = pc_zeros(PC_SHAPE(2 * TIED_WIDTH, TIED_WIDTH), PC_F32, r->device);
            RANK_OK(pc_group_all_gather(r->group, all, pc_detach(weight)));
            all = pc_sub(pc_slice(all, 0, 0, TIED_WIDTH, 1), pc_slice(all, 0, TIED_WIDTH, 2 * TIED_WIDTH, 1));
            RANK_TRUE(pc_item(pc_max(pc_abs(all))) == 0);
        }
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_ddp_free(ddp);
    pc_module_free(net);
    pc_group_free(own);
}

static void a_copy_that_nobody_uses(void **state)
{
    (void)state;
    for (int by_ddp = 0; by_ddp < 2 && ranks_most() >= 2; by_ddp++)
        ranks_work(2, learn_tied_that_rests, &(bool){by_ddp});
}

/* An optimiser for each parameter, the tied one's first or last: as one for both, with a norm of each. */
static void learn_tied_by_two(rank_work *r)
{
    float got[2][2][TIED_WIDTH * TIED_WIDTH];
    double norm[2][2];
    for (int by_two = 0; by_two < 2; by_two++) {
        pc_module *net = pc_module_of(&both_class, {"0", square(4)}, {"b", square(5 + r->rank)});
        RANK_OK(pc_module_to(net, r->device, PC_F32));
        pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 2);
        pc_tensor *weights[2] = {pc_module_parameter(net, "0.weight"), pc_module_parameter(net, "b.weight")};
        RANK_TRUE(pipe);
        RANK_OK(pc_pipeline_tie(pipe, weights[0]));
        pc_optimizer *sgd[2] = {NULL};
        for (int i = 0; i <= by_two; i++) {
            sgd[i] = pc_sgd(by_two ? pc_module_child(net, i) : net, .lr = 0.1, .momentum = 0.9);
            RANK_OK(pc_optimizer_set_clip(sgd[i], PC_CLIP_NORM, 100));
        }
        for (int step = 0; step < 2; step++)
            PC_SCOPE {
                pc_tensor *x = inputs(r->device);
                RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
                for (int i = 0; i <= by_two; i++)
                    RANK_OK(pc_pipeline_update(pipe, sgd[step ? by_two - i : i]));
            }
        for (int i = 0; i < 2; i++) {
            RANK_OK(pc_read(weights[i], got[by_two][i], sizeof got[by_two][i]));
            if (sgd[i])
                RANK_OK(pc_optimizer_gradient_norm(sgd[i], &norm[by_two][i]));
            pc_optimizer_free(sgd[i]);
        }
        pc_pipeline_free(pipe);
        pc_module_free(net);
    }
    RANK_TRUE(memcmp(got[0], got[1], sizeof got[0]) == 0);
    RANK_TRUE(fabs(hypot(norm[1][0], norm[1][1]) - norm[0][0]) <= 1e-6 * norm[0][0]);
}

static void two_optimisers_of_a_stage(void **state)
{
    (void)state;
    if (ranks_most() >= 2)
        ranks_work(2, learn_tied_by_two, NULL);
}

static void ties_other_shapes(rank_work *r)
{
    pc_module *net = pc_linear(4, r->rank ? 4 : 3);
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL);
    RANK_TRUE(pipe);
    RANK_TRUE(pc_pipeline_tie(pipe, pc_module_parameter(net, "weight")) == PC_ERR_SHAPE);
    RANK_TRUE(strstr(pc_error_last()->message, "rank 0 has float32 [3, 4], and rank 1 float32 [4, 4]"));
    pc_error_clear();
    PC_SCOPE {
        RANK_TRUE(pc_pipeline_tie(pipe, pc_ones(PC_SHAPE(2), PC_F32, r->device)) == PC_ERR_ARGUMENT);
        pc_error_clear();
    }
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static void copies_that_differ(void **state)
{
    (void)state;
    if (ranks_most() >= 2)
        ranks_work(2, ties_other_shapes, NULL);
}

/* --- stages that are cut up --- */

enum { GRID_WIDE = 8 };

/* a twice, each time with another row layer behind it. */
static pc_tensor *by_rows(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = pc_forward_child(module, "b", pc_forward_child(module, "a", x));
    return pc_forward_child(module, "c", pc_forward_child(module, "a", y));
}

static const pc_module_class rows_class = {.name = "Rows", .forward = by_rows};

/* NULL: it is whole. */
static pc_module *column_of(pc_group *group)
{
    pc_seed(1);
    return group ? pc_column_linear(TIED_WIDTH, GRID_WIDE, group) : pc_linear(TIED_WIDTH, GRID_WIDE);
}

static pc_module *row_of(pc_group *group, int seed)
{
    pc_seed((uint64_t)seed);
    return group ? pc_row_linear(GRID_WIDE, TIED_WIDTH, group) : pc_linear(GRID_WIDE, TIED_WIDTH);
}

static struct {
    double norm[TIED_STEPS];
    float column[GRID_WIDE * TIED_WIDTH], bias[2][TIED_WIDTH];
} grid_want;

static void learn_by_rows(void)
{
    pc_module *net = pc_module_of(&rows_class, {"a", column_of(NULL)}, {"b", row_of(NULL, 2)}, {"c", row_of(NULL, 3)});
    assert_ok(pc_module_to(net, test_device(), PC_F32));
    pc_optimizer *sgd = clipped(net);
    for (int step = 0; step < TIED_STEPS; step++)
        PC_SCOPE {
            pc_tensor *x = inputs(test_device());
            assert_ok(pc_backward(pc_mse(pc_forward(net, x), x)));
            assert_ok(pc_optimizer_step(sgd));
            assert_ok(pc_optimizer_gradient_norm(sgd, &grid_want.norm[step]));
        }
    assert_ok(pc_read(pc_module_parameter(net, "a.weight"), grid_want.column, sizeof grid_want.column));
    assert_ok(pc_read(pc_module_parameter(net, "b.bias"), grid_want.bias[0], sizeof grid_want.bias[0]));
    assert_ok(pc_read(pc_module_parameter(net, "c.bias"), grid_want.bias[1], sizeof grid_want.bias[1]));
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

static bool all_near(const float *want, pc_tensor *got, int64_t n)
{
    float at[GRID_WIDE * TIED_WIDTH];
    bool near = pc_read(got, at, (size_t)n * sizeof *at) == PC_OK;
    for (int64_t i = 0; i < n && near; i++)
        near = fabsf(at[i] - want[i]) <= 1e-6f;
    return near;
}

/* Two stages of two parts each, with a cut parameter that both stages have. */
static void learn_in_a_grid(rank_work *r)
{
    const int stage = r->rank / 2;
    pc_group *parts, *stages;
    RANK_OK(pc_group_split(r->group, stage, r->rank, &parts));
    RANK_OK(pc_group_split(r->group, r->rank % 2, r->rank, &stages));
    pc_module *net = pc_sequential(column_of(parts), row_of(parts, 2 + stage));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_pipeline *pipe = pc_pipeline(net, stages, mean_square, NULL, .microbatches = 3);
    RANK_TRUE(pipe);
    RANK_OK(pc_pipeline_tie(pipe, pc_module_parameter(net, "0.weight")));
    RANK_OK(pc_pipeline_tie(pipe, pc_module_parameter(net, "0.bias")));
    pc_optimizer *sgd = clipped(net);
    RANK_OK(pc_tensor_parallel_clip(net, sgd, 0.05));
    for (int step = 0; step < TIED_STEPS; step++)
        PC_SCOPE {
            double norm;
            pc_tensor *x = inputs(r->device);
            RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
            RANK_OK(pc_pipeline_update(pipe, sgd));
            RANK_OK(pc_optimizer_gradient_norm(sgd, &norm));
            RANK_TRUE(fabs(norm - grid_want.norm[step]) <= 1e-6 * norm);
        }
    PC_SCOPE {
        pc_tensor *column = pc_gather_from_group(pc_detach(pc_module_parameter(net, "0.weight")), parts, 0);
        RANK_TRUE(all_near(grid_want.column, column, GRID_WIDE * TIED_WIDTH));
        RANK_TRUE(all_near(grid_want.bias[stage], pc_module_parameter(net, "1.bias"), TIED_WIDTH));
        pc_optimizer *other = clipped(net);
        pc_tensor *x = inputs(r->device);
        RANK_OK(pc_pipeline_step(pipe, x, x, NULL));
        RANK_OK(pc_device_synchronize(r->device)); /* the first that is refused ends the groups of all: */
        RANK_OK(pc_group_barrier(r->group));       /* not before their steps are through */
        RANK_TRUE(pc_pipeline_update(pipe, other) == PC_ERR_STATE);
        RANK_TRUE(strstr(pc_error_last()->message, "pc_tensor_parallel_clip in the place"));
        pc_error_clear();
        pc_optimizer_free(other);
    }
    pc_optimizer_free(sgd);
    pc_pipeline_free(pipe);
    pc_module_free(net);
    (void)!pc_device_synchronize(r->device); /* the pipelines' groups have ended */
    pc_error_clear();
    pc_group_free(parts);
    pc_group_free(stages);
}

static void one_norm_of_stages_and_parts(void **state)
{
    (void)state;
    if (ranks_most() < 4)
        return;
    learn_by_rows();
    ranks_work(4, learn_in_a_grid, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_parameter_in_two_stages),  cmocka_unit_test(a_copy_that_its_stage_leaves_out),
        cmocka_unit_test(a_copy_that_nobody_uses),      cmocka_unit_test(a_copy_whose_gradient_is_infinite),
        cmocka_unit_test(two_optimisers_of_a_stage),    cmocka_unit_test(copies_that_differ),
        cmocka_unit_test(one_norm_of_stages_and_parts),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}
